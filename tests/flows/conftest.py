"""Running the command line: in this process, or in one of its own with methods that misbehave."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.flows.small_store import Command

SUPPORT = Path(__file__).with_name("support")
SCRIPT = SUPPORT / "privsweep_with_faults.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for stores, sweeps and the home directory of the processes of one module."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "home").mkdir()
    return folder


class Running:
    """A command line at work. Its output goes to files: a pipe stays open as long as any descendant lives."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environment: dict[str, str] | None = None,
        program: Sequence[str | Path] = (sys.executable, SCRIPT),
    ) -> None:
        self.output = tempfile.TemporaryFile("w+", dir=folder)  # noqa: SIM115  closed in `end`
        self.errors = tempfile.TemporaryFile("w+", dir=folder)  # noqa: SIM115
        path = os.pathsep.join(filter(None, [str(SUPPORT), os.environ.get("PYTHONPATH")]))
        bare = {
            name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"
        }  # as users have it
        environment = bare | {"PYTHONPATH": path, "HOME": str(folder / "home")} | (environment or {})
        self.process = subprocess.Popen(
            [*program, *arguments],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.errors,
            start_new_session=True,  # a group of its own, to be signalled as by a terminal
        )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def below(self) -> list[psutil.Process]:
        """All processes that descend from it."""
        return psutil.Process(self.process.pid).children(recursive=True)

    @property
    def computing(self) -> list[psutil.Process]:
        """The processes that compute its points; a process that just ended has no command line any more."""
        found = []
        for each in self.below:
            with contextlib.suppress(psutil.Error):
                found += [each] if any("tasks.guard" in word for word in each.cmdline()) else []
        return found

    def end(self, timeout: float = 200.0) -> tuple[int, str, str]:
        """Wait for the end; return code, standard output, standard error."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill_all()
            code = -999
        texts = []
        for file in (self.output, self.errors):
            file.seek(0)
            texts.append(file.read())
            file.close()
        assert code != -999, f"still running after {timeout} s: {texts}"
        return code, texts[0], texts[1]

    def kill_all(self) -> None:
        """Kill it with all that it started."""
        for member in [*self.below, psutil.Process(self.process.pid)] if self.alive else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()


Start = Callable[..., Running]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def start(folder: Path) -> Iterator[Start]:
    """Start `privsweep ARGUMENTS`; processes that still run at the end of the module are killed."""
    started: list[Running] = []

    def start(*arguments: object, **more: Any) -> Running:
        started.append(Running(tuple(map(str, arguments)), folder, **more))
        return started[-1]

    yield start
    for running in started:
        running.kill_all()


@pytest.fixture(scope="module")
def process(start: Start) -> Run:
    """Run `privsweep ARGUMENTS` to its end; return code, standard output, standard error."""
    return lambda *arguments, **more: start(*arguments, **more).end()


@pytest.fixture
def privsweep(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`privsweep ARGUMENTS` in this process, in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return Command(capsys)
