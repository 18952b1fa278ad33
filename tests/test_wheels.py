"""Every dependency has a wheel for each interpreter and platform, so that nobody compiles one."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.wheels import FILE, PLATFORMS, PYTHONS, Package, fits, listed, missing, needed, read


@pytest.fixture(scope="module")
def packages() -> list[Package]:
    return read(FILE.read_text())


def test_every_dependency_has_wheels_for_all_interpreters_and_platforms(packages: list[Package]) -> None:
    assert missing(packages) == set()


def test_the_file_has_the_locked_version_of_every_dependency(
    packages: list[Package], repository: Path
) -> None:
    lock = (repository / "requirements.lock").read_text()
    pinned = set(re.findall(r"^([a-z0-9._-]+)==([^ ]+)", lock, re.MULTILINE))
    assert {(name, version) for name, version, _, _ in packages} <= pinned, "run python -m tests.wheels"
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    lines = [
        *project["dependencies"],
        *(line for each in project["optional-dependencies"].values() for line in each),
    ]
    direct = {re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in lines} - {"privsweep"}
    assert direct <= {name for name, _, _, _ in packages}


def test_the_metadata_name_these_interpreters_and_platforms(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    named = [line.removeprefix(prefix) for line in project["classifiers"] if line.startswith(prefix)]
    assert [f"3.{minor}" for minor in named] == list(PYTHONS)
    assert project["requires-python"] == f">={PYTHONS[0]}"
    systems = {line.rpartition(" ")[2] for line in project["classifiers"] if "Operating System" in line}
    assert systems == {"Linux", "MacOS"}
    assert {system for system, _, _ in PLATFORMS.values()} == {"linux", "darwin"}


@pytest.mark.parametrize(
    ("wheel", "python", "platform", "expected"),
    [
        ("a-1-py3-none-any.whl", "3.14", "macOS arm64", True),
        ("a-1-cp311-cp311-manylinux_2_28_x86_64.whl", "3.11", "Linux x86_64", True),
        ("a-1-cp311-cp311-manylinux_2_28_x86_64.whl", "3.12", "Linux x86_64", False),
        ("a-1-cp311-cp311-manylinux_2_28_x86_64.whl", "3.11", "Linux aarch64", False),
        ("a-1-cp39-abi3-macosx_11_0_arm64.whl", "3.14", "macOS arm64", True),
        ("a-1-cp312-abi3-macosx_11_0_arm64.whl", "3.11", "macOS arm64", False),
        ("a-1-cp314-cp314t-macosx_11_0_arm64.whl", "3.14", "macOS arm64", False),
        ("a-1-cp312-cp312-macosx_10_13_universal2.whl", "3.12", "macOS arm64", True),
        ("a-1-cp312-cp312-macosx_10_13_x86_64.whl", "3.12", "macOS arm64", False),
        ("a-1-py3-none-manylinux2014_aarch64.whl", "3.13", "Linux aarch64", True),
        ("a-1-cp313-cp313-musllinux_1_2_x86_64.whl", "3.13", "Linux x86_64", False),
        ("a-1-py2-none-any.whl", "3.11", "Linux x86_64", False),
    ],
)
def test_a_wheel_fits_its_interpreters_and_platforms(
    wheel: str, python: str, platform: str, expected: bool
) -> None:
    assert fits(wheel, python, platform) is expected


def test_a_missing_wheel_is_found_unless_its_marker_excludes_it() -> None:
    wheel = "a-1-cp311-cp311-manylinux_2_28_x86_64.whl"
    everywhere: Package = ("a", "1", "", [wheel])
    assert len(missing([everywhere])) == len(PYTHONS) * len(PLATFORMS) - 1
    marker = "python_version < '3.12' and sys_platform == 'linux' and platform_machine == 'x86_64'"
    assert missing([("a", "1", marker, [wheel])]) == set()
    assert needed(marker, "3.11", "Linux x86_64")
    assert read(listed([everywhere])) == [everywhere]
