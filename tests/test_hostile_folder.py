"""Files of the working folder with the names of packages: no command, engine or child imports them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli.app import COMMANDS
from tests.hostile import fill
from tests.session import QUESTION, SESSION, played

PRIVSWEEP = Path(sys.executable).with_name("privsweep")


def command_of(words: list[str]) -> str:
    return " ".join(words[:2]) if words[0] in {"report", "table", "page"} else words[0]


def test_the_session_has_every_listed_command() -> None:
    assert {command_of(words) for words in SESSION} == {name for name, (_, said) in COMMANDS.items() if said}


@pytest.mark.thorough
def test_no_command_imports_a_file_of_its_folder(tmp_path: Path) -> None:
    folder, beside = tmp_path / "folder", tmp_path / "beside"
    folder.mkdir()
    beside.mkdir()
    mark = fill(folder)
    for words, code, _, err in played(folder, beside / "player.py", leave=("serve",)):
        assert code in {0, 2, 3}, (words, err)
        assert "imported" not in err, (words, err)
        assert not mark.exists(), (words, mark.read_text())


@pytest.mark.thorough
def test_neither_the_installed_command_nor_its_server_imports_a_file_of_its_folder(tmp_path: Path) -> None:
    mark = fill(tmp_path)
    subprocess.run([str(PRIVSWEEP), "run", *QUESTION], cwd=tmp_path, capture_output=True, check=True)
    command = [str(PRIVSWEEP), "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"http://127.0.0.1" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode in {0, 130}, err
    assert not mark.exists(), mark.read_text()


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
def test_neither_ray_nor_prefect_nor_a_guard_imports_a_file_of_the_folder(tmp_path: Path) -> None:
    mark = fill(tmp_path)
    (tmp_path / "prefect.toml").write_text('[logging]\nconfig_path = "logging.yml"\n')
    code = {"version": 1, "filters": {"theirs": {"()": "os.system", "command": f"touch {mark}"}}}
    (tmp_path / "logging.yml").write_text(json.dumps(code))  # which is YAML
    command = [str(PRIVSWEEP), "run", *QUESTION, "--engine", "ray"]
    home = os.environ | {"PREFECT_HOME": str(tmp_path / "prefect")}
    ended = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "1 computed" in ended.stdout
    assert not mark.exists(), mark.read_text() or "the logging of Prefect was configured"


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
