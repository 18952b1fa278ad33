"""Without the packages of the extras, every command answers, or names its extra.

`make test-all` hides these packages from an interpreter; `make soak` installs the wheel and the sdist.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ray_cluster import interpreter_without
from tests.session import QUESTION, played
from tests.wheels import PYTHONS

pytestmark = pytest.mark.xdist_group("light")

MOST_MEGABYTES = 650
"""The aim is 600; numba with its LLVM, pyarrow, scipy, DuckDB and numpy alone have 607: docs/install.md."""
SENTENCE = "privsweep: `privsweep {command}` needs the package {package}: pip install 'privsweep[{extra}]'.\n"
NEEDS = {
    "serve": ("uvicorn", "page"),
    "figures": ("matplotlib", "report"),
    "plot": ("matplotlib", "report"),
    "report figures": ("matplotlib", "report"),
}
EXTRAS = {"ray", "prefect", "fastapi", "uvicorn", "sqlalchemy", "matplotlib", "altair", "s3fs", "jax"}
BESIDES = ("SQLAlchemy", "optax", "pandas", "polars", "scikit", "sklearn")
"""Other names of these packages, and packages that they bring."""


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=repository, check=True, capture_output=True)
    return folder


def interpreters() -> list[str]:
    """Other supported interpreters of this machine: on the path, or where a version manager keeps ours."""
    ours = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    names = [name for version in PYTHONS if (name := f"python{version}") != ours]
    found = [*filter(None, map(shutil.which, names))]
    found += [str(file) for name in names for file in Path(sys.base_prefix).parent.glob(f"*/bin/{name}")]
    return [
        each
        for each in found
        if not subprocess.run([each, "-V"], capture_output=True, check=False).returncode
    ]


OTHERS: list[Any] = interpreters() or [
    pytest.param("", marks=pytest.mark.skip("There is no other interpreter."))
]


@pytest.fixture(scope="module")
def light(built: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel, with the versions of the lock."""
    folder = tmp_path_factory.mktemp("light")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    lock = (repository / "requirements.lock").read_text()
    (folder / "versions.txt").write_text(
        "\n".join(re.findall(r"^[a-z0-9._-]+==[^\\\n]+", lock, re.MULTILINE))
    )
    (wheel,) = built.glob("*.whl")
    pip(folder, "install", "--no-compile", "--constraint", str(folder / "versions.txt"), str(wheel))
    return folder / "bin"


def versions(repository: Path) -> str:
    """The versions of the lock, as constraints."""
    lock = (repository / "requirements.lock").read_text()
    return "\n".join(re.findall(r"^[a-z0-9._-]+==[^\\\n]+", lock, re.MULTILINE))


def pip(environment: Path, *words: str) -> str:
    command = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *words]
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout


def run(light: Path, folder: Path, *words: str) -> tuple[int, str, str]:
    bare = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PREFECT_HOME"}}
    command = [str(light / "privsweep"), *words]
    ended = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.thorough
def test_wheel_and_sdist_name_the_commit_that_they_were_built_from(
    built: Path, repository: Path, tmp_path: Path
) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path)
    (unpacked,) = tmp_path.iterdir()
    again = tmp_path / "again"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(again)]
    subprocess.run(command, cwd=unpacked, check=True, capture_output=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True
    )
    for file in (wheel, *again.glob("*.whl")):
        target = tmp_path / file.parent.name / "site"
        shutil.unpack_archive(file, target, "zip")
        script = "from storage import provenance as p; print(p().git_commit, p().git_dirty in (None, True))"
        done = subprocess.run(
            [sys.executable, "-P", "-c", script],
            env={**os.environ, "PYTHONPATH": str(target)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [head.stdout.strip(), "True"]


@pytest.mark.soak
def test_it_is_small_and_has_no_extra(light: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [file for file in light.parent.rglob("*") if file.is_file() and not file.is_symlink()]
    packages = [f for f in files if not {"pip", "setuptools", "pkg_resources", "__pycache__"} & set(f.parts)]
    megabytes = sum(file.stat().st_size for file in packages) / 1e6
    with capsys.disabled():
        print(f"\nthe environment without extras: {megabytes:.0f} MB without pip and bytecode")
    names = {line.split("==")[0].lower() for line in pip(light.parent, "list", "--format=freeze").split()}
    assert "privsweep" in names
    assert not EXTRAS & names
    assert megabytes <= MOST_MEGABYTES


def answers_or_names_its_extra(python: Path, folder: Path) -> None:
    """Run a session with every command."""
    (folder / "work").mkdir()
    for words, code, _, err in played(folder / "work", folder / "player.py", python):
        name = next((name for name in NEEDS if words[: len(name.split())] == name.split()), None)
        if name is not None:
            package, extra = NEEDS[name]
            assert (code, err) == (2, SENTENCE.format(command=name, package=package, extra=extra))
        else:
            assert code in {0, 2, 3}, (words, err)
            assert "privsweep[" not in err or words[0] == "report", (words, err)


@pytest.mark.thorough
def test_every_command_answers_or_names_its_extra(tmp_path: Path) -> None:
    answers_or_names_its_extra(interpreter_without([*EXTRAS, *BESIDES], tmp_path), tmp_path)


@pytest.mark.soak
def test_every_installed_command_answers_or_names_its_extra(light: Path, tmp_path: Path) -> None:
    answers_or_names_its_extra(light / "python", tmp_path)


@pytest.mark.soak
def test_a_sweep_runs_in_the_process_and_ray_names_its_extra(light: Path, tmp_path: Path) -> None:
    code, out, err = run(light, tmp_path, "run", *QUESTION, "--engine", "serial")
    assert (code, "1 computed" in out) == (0, True), err
    other = ["unamplified-epsilon", "sigma=2", "delta=1e-6"]
    code, _, err = run(light, tmp_path, "run", *other, "--engine", "ray")
    last = err.splitlines()[-1]
    assert (code, last) == (
        2,
        "privsweep: The engine ray needs the package ray: pip install 'privsweep[sweep]'.",
    )


@pytest.mark.soak
def test_a_frame_of_pandas_says_that_pandas_is_missing(light: Path, tmp_path: Path) -> None:
    program = """
import privsweep as ps
with ps.open_store("empty", create=True) as store:
    assert store.frame("best").num_rows == 0
    for kind in ("pandas", "polars"):
        try:
            store.frame("best", kind)
        except ps.PrivsweepError as error:
            print(error)
"""
    command = [str(light / "python"), "-c", program]
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=True)
    kinds = ("pandas", "polars")
    assert ended.stdout.splitlines() == [
        f"A frame of {kind} needs the package {kind}: pip install {kind}." for kind in kinds
    ]


@pytest.mark.soak
@pytest.mark.parametrize("python", OTHERS)
def test_another_interpreter_installs_the_wheel_and_answers(
    python: str, built: Path, repository: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "environment"
    subprocess.run([python, "-m", "venv", str(environment)], check=True)
    (environment / "versions.txt").write_text(versions(repository))
    (wheel,) = built.glob("*.whl")
    only = ["--only-binary", ":all:", "--constraint", str(environment / "versions.txt")]
    pip(environment, "install", *only, str(wheel))
    answers_or_names_its_extra(environment / "bin" / "python", tmp_path)
    test_a_sweep_runs_in_the_process_and_ray_names_its_extra(environment / "bin", tmp_path)
    test_a_frame_of_pandas_says_that_pandas_is_missing(environment / "bin", tmp_path)


@pytest.mark.soak
def test_the_sdist_installs_the_same_files(built: Path, light: Path, tmp_path: Path) -> None:
    code, out, _ = run(light, tmp_path, "ask", *QUESTION)
    listed = pip(light.parent, "show", "--files", "privsweep")
    (sdist,) = built.glob("*.tar.gz")
    pip(light.parent, "install", "--no-deps", "--force-reinstall", "--no-compile", str(sdist))
    again = pip(light.parent, "show", "--files", "privsweep")
    assert files_of(again) == files_of(listed)
    assert run(light, tmp_path, "ask", *QUESTION)[0] == code == 0
    assert "epsilon in [4.37717" in out


def files_of(shown: str) -> set[str]:
    """The installed files, without the record of the installation and without caches."""
    lines = {line.strip() for line in shown.partition("Files:")[2].splitlines()}
    return {line for line in lines if line and ".dist-info/" not in line and "__pycache__" not in line}
