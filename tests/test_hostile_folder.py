"""Files of the working folder with the names of packages: no command, engine or child imports them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli.app import COMMANDS
from tests.hostile import fill

PRIVSWEEP = Path(sys.executable).with_name("privsweep")
RUN = ["--sigma", "1", "--steps", "100", "--delta", "1e-6"]
QUESTION = ["unamplified-epsilon", "sigma=1", "delta=1e-5"]
AUDIT = ["--counts", "100", "50", "40", "--delta", "1e-5"]

SESSION = [
    ["plan", *QUESTION],
    ["run", *QUESTION],
    ["status"],
    ["schema"],
    ["epsilon", *RUN, "--sampling", "none"],
    ["noise", "--epsilon", "1", "--delta", "1e-5", "--sampling", "none"],
    ["profile", "--sigma", "1", "--steps", "1", "--delta", "1e-5", "--sampling", "none"],
    ["steps", "--examples", "1000", "--batch-size", "100"],
    ["compare", *RUN, "--stored-only"],
    ["ask", *QUESTION],
    ["methods"],
    ["lookup", *QUESTION],
    ["sql", "select * from best"],
    ["export", "select * from best", "--out", "best.csv"],
    ["labels", "--bag-size", "2", "--prior", "point(0.5)"],
    ["audit", *AUDIT],
    ["membership", "--epsilon", "1"],
    ["verify"],
    ["repair"],
    ["compact"],
    ["gc"],
    ["report", "sweep", "SWEEP"],
    ["report", "compare-training"],
    ["report", "compare-labels"],
    ["report", "compare-audits"],
    ["report", "compare-membership"],
    ["report", "figures", "labels", "--figure", "labels1"],
    ["table", "publish", "--out", "tables"],
    ["table", "show", "TABLE"],
    ["table", "import", "TABLE", "--store", "other"],
    ["table", "diff", "TABLE", "TABLE"],
    ["page", "build"],
    ["serve", "--port", "0"],
]
"""A session with every command; SWEEP and TABLE are made on the way."""


def command_of(words: list[str]) -> str:
    return " ".join(words[:2]) if words[0] in {"report", "table", "page"} else words[0]


def test_the_session_has_every_listed_command() -> None:
    assert {command_of(words) for words in SESSION} == {name for name, (_, said) in COMMANDS.items() if said}


@pytest.mark.thorough
def test_no_command_imports_a_file_of_its_folder(tmp_path: Path) -> None:
    mark = fill(tmp_path)
    for words in SESSION:
        made = {"SWEEP": sweep_in(tmp_path), "TABLE": table_in(tmp_path)}
        assert done(tmp_path, [str(PRIVSWEEP), *(made.get(word, word) for word in words)]), words
        assert not mark.exists(), (words, mark.read_text())


def done(folder: Path, command: list[str]) -> bool:
    """Run a command to its end, a server until it listens; return whether its imports succeeded."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        if command[1] == "serve":
            assert b"http://127.0.0.1" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    return process.returncode in {0, 2, 3, 130} and b"Traceback" not in err and b"imported" not in err


def sweep_in(folder: Path) -> str:
    found = sorted((folder / "store").glob("sweeps/*.json"))
    return found[0].name.rpartition("-")[0] if found else ""


def table_in(folder: Path) -> str:
    return str(next((folder / "tables").glob("*.parquet"), ""))


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
def test_neither_ray_nor_prefect_nor_a_guard_imports_a_file_of_the_folder(tmp_path: Path) -> None:
    mark = fill(tmp_path)
    command = [str(PRIVSWEEP), "run", *QUESTION, "--engine", "ray"]
    home = os.environ | {"PREFECT_HOME": str(tmp_path / "prefect")}
    ended = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "1 computed" in ended.stdout
    assert not mark.exists(), mark.read_text()


SCRIPT = """
import sys
import privsweep as ps
answer = ps.epsilon(sigma=1.0, delta=1e-5, sampling="none")
grid = {"problem": "unamplified-epsilon", "methods": ["unamplified.exact"]}
grid["product"] = {"sigma": [1.0, 2.0], "delta": 1e-5}
report = ps.run({"name": "two", "grid": [grid]}, "store", progress=False)
print(answer.upper, report.computed)
"""


@pytest.mark.thorough
def test_a_script_beside_files_with_the_names_of_our_packages_gets_ours_and_is_warned(tmp_path: Path) -> None:
    mark = fill(tmp_path, ("tasks.py", "flows/__init__.py", "storage.py", "privcore.py"))
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith(" 2\n")
    assert not mark.exists(), mark.read_text()
    for name in ("flows", "privcore", "storage", "tasks"):
        assert f"`import {name}` means that package from now on" in ended.stderr


def test_a_module_of_the_user_that_is_imported_already_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "storage.py").write_text("")
    (tmp_path / "script.py").write_text("import storage\nimport privsweep\n")
    command = [sys.executable, "script.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("ImportError: Expected our package storage, but ")
    assert last.endswith("storage.py is imported under that name: rename it.")


def test_the_module_is_the_command(tmp_path: Path) -> None:
    mark = fill(tmp_path)
    command = [sys.executable, "-m", "privsweep", "ask", *QUESTION]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "epsilon in [4.37717" in ended.stdout
    assert ended.stderr == ""
    assert not mark.exists(), mark.read_text()
