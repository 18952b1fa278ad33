"""Running the command line in a process of its own, with methods that misbehave in its registry."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

SUPPORT = Path(__file__).with_name("support")
SCRIPT = SUPPORT / "privsweep_with_faults.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for stores, sweeps and the home directory of the processes of one module."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "home").mkdir()
    return folder


@pytest.fixture(scope="module")
def start(folder: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start `privsweep ARGUMENTS`; what is still running at the end is ended."""
    started: list[subprocess.Popen[str]] = []
    environment = os.environ | {"PYTHONPATH": str(SUPPORT), "HOME": str(folder / "home")}
    environment.pop("RAY_AUTH_MODE", None)  # what a user has: nothing

    def start(*arguments: object) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *map(str, arguments)],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group of its own, to be signalled like by a terminal
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            family = psutil.Process(process.pid).children(recursive=True)
            for member in (psutil.Process(process.pid), *family):
                member.kill()
        process.communicate()


@pytest.fixture(scope="module")
def privsweep(start: Callable[..., "subprocess.Popen[str]"]) -> Callable[..., Any]:
    """Run `privsweep ARGUMENTS` to its end; return code, standard output, standard error."""

    def privsweep(*arguments: object) -> tuple[int, str, str]:
        process = start(*arguments)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    return privsweep
