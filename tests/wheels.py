"""Names of the wheels of our dependencies: `python -m tests.wheels` asks the index and writes `wheels.txt`.

It uses uv, which `make lock` installs. The dependencies are those of the light core and of all extras.
"""

import re
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.markers import Marker, default_environment
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_suffix(".txt")
Package = tuple[str, str, str, list[str]]
"""Name, version, marker and wheels of a package."""

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux x86_64": ("linux", "x86_64", r"manylinux.*_x86_64"),
    "Linux aarch64": ("linux", "aarch64", r"manylinux.*_aarch64"),
    "macOS arm64": ("darwin", "arm64", r"macosx_\d+_\d+_(arm64|universal2)"),
}
"""Values of `sys.platform` and of the machine, and the pattern of the platform in a wheel's name."""

HEAD = "# Wheels of the packages in requirements.lock. Written by: python -m tests.wheels\n"


def asked() -> list[Package]:
    """Return name, version, marker and wheels of every package that we install, as the index has them."""
    uv = str(ROOT / "build" / "lock-venv" / "bin" / "uv")
    command = [uv, "pip", "compile", "pyproject.toml", "--universal", "--python-version", PYTHONS[0]]
    command += ["--extra", "all", "--format", "pylock.toml", "--constraint", "requirements.lock", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [
        (
            each["name"],
            each["version"],
            each.get("marker", ""),
            [wheel.get("name") or wheel["url"].rpartition("/")[2] for wheel in each.get("wheels", ())],
        )
        for each in tomllib.loads(done.stdout)["packages"]
    ]


def listed(packages: Iterable[Package]) -> str:
    """Return the file: a line for each package, below it its wheels for our interpreters and platforms."""
    lines = []
    for name, version, marker, wheels in packages:
        lines.append(f"{name}=={version}" + (f" ; {marker}" if marker else ""))
        lines += [f"  {wheel}" for wheel in sorted(wheels) if any(fits(wheel, *at) for at in places())]
    return HEAD + "\n".join(lines) + "\n"


def read(text: str) -> list[Package]:
    """Return the packages that a file lists."""
    found: list[Package] = []
    for line in text.splitlines():
        if line.startswith("  "):
            found[-1][3].append(line.strip())
        elif not line.startswith("#"):
            pin, _, marker = line.partition(" ; ")
            name, _, version = pin.partition("==")
            found.append((name, version, marker, []))
    return found


def places() -> list[tuple[str, str]]:
    """Return every pair of an interpreter and a platform."""
    return [(python, platform) for python in PYTHONS for platform in PLATFORMS]


def fits(wheel: str, python: str, platform: str) -> bool:
    """Return whether an interpreter on a platform can install a wheel."""
    tags = parse_wheel_filename(wheel)[3]
    return any(_runs(tag, python) and _on(tag, platform) for tag in tags)


def _runs(tag: Tag, python: str) -> bool:
    minor = int(python.partition(".")[2])
    if match := re.fullmatch(r"cp3(\d+)", tag.interpreter):
        exact = int(match[1]) == minor and tag.abi in {f"cp3{minor}", "none"}
        return exact or (tag.abi == "abi3" and int(match[1]) <= minor)
    return tag.abi == "none" and tag.interpreter in {"py3", f"py3{minor}"}


def _on(tag: Tag, platform: str) -> bool:
    return tag.platform == "any" or re.fullmatch(PLATFORMS[platform][2], tag.platform) is not None


def needed(marker: str, python: str, platform: str) -> bool:
    """Return whether a package is installed by an interpreter on a platform."""
    system, machine, _ = PLATFORMS[platform]
    values = {**default_environment(), "sys_platform": system, "platform_machine": machine}
    values |= {"python_version": python, "python_full_version": f"{python}.4", "os_name": "posix"}
    values |= {"platform_system": "Darwin" if system == "darwin" else "Linux"}
    return not marker or Marker(marker).evaluate({key: str(value) for key, value in values.items()})


def missing(packages: Iterable[Package]) -> set[tuple[str, str, str]]:
    """Return the packages without a wheel, each with an interpreter and a platform that would need it."""
    return {
        (name, *at)
        for name, _, marker, wheels in packages
        for at in places()
        if needed(marker, *at) and not any(fits(wheel, *at) for wheel in wheels)
    }


if __name__ == "__main__":
    FILE.write_text(listed(asked()))
    print("without a wheel:", sorted(missing(read(FILE.read_text()))) or "none")
