"""The progress of a run on a terminal: a bar that lives from the start of the engine to the last batch."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from privcore import ExitCode
from tests.terminal import Terminal, program

FEW = """
name = "few"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = { sigma = { geometric = [0.5, 4, 40] }, delta = 1e-5 }
"""
SLOW = """
name = "slow"
[[grid]]
problem = "poisson-epsilon"
methods = ["poisson.pld"]
product = { sigma = { geometric = [0.5, 4, 48] }, delta = 1e-8, steps = 10000, sampling_probability = 0.001 }
"""
RUN = [sys.executable, "-m", "flows.cli", "run"]


@contextmanager
def shell(folder: Path) -> Iterator[Terminal]:
    """A shell with job control in a terminal."""
    command = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    with program(command, folder, environment={"PS1": "$ "}) as (terminal, _):
        terminal.read("$")
        yield terminal


def bars(terminal: Terminal) -> list[str]:
    """The rows of the screen that count points, next to a bar."""
    return [row for row in terminal.screen.lines if re.search(r"% +\d+ of \d+", row)]


@pytest.mark.parametrize("engine", ["serial", "ray"])
def test_a_run_on_a_terminal_stores_every_point(tmp_path: Path, engine: str) -> None:
    (tmp_path / "few.toml").write_text(FEW)
    with program([*RUN, "few.toml", "--store", "s", "--engine", engine], tmp_path) as (terminal, ending):
        text = terminal.read()
        assert ending.code == 0, text
    assert "40 computed" in text
    assert "privsweep lookup few --store s" in text
    assert "Traceback" not in text
    assert not bars(terminal)
    assert not terminal.screen.broken


@pytest.mark.parametrize("columns", [24, 80])
def test_ctrl_c_in_the_middle_of_a_run_leaves_a_clean_screen_and_the_points(
    columns: int, tmp_path: Path
) -> None:
    """In a narrow window, the key is shown behind lines that are cut at its edge."""
    (tmp_path / "slow.toml").write_text(SLOW)
    command = [*RUN, "slow.toml", "--engine", "serial"]
    with program(command, tmp_path, columns=columns) as (terminal, ending):
        terminal.read("poisson.pld")
        terminal.type(b"\x03")
        text = terminal.read()
        assert ending.code == ExitCode.INTERRUPTED, text
    assert "the same command" in " ".join(text.split())
    assert "Traceback" not in text
    assert not bars(terminal)
    assert terminal.screen.column == 0
    assert terminal.screen.cursor
    assert not terminal.screen.too_wide


def test_a_run_that_is_resized_stopped_and_resumed_draws_one_bar(tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(SLOW)
    with shell(tmp_path) as terminal:
        terminal.type(f"{' '.join(RUN)} slow.toml --engine serial\n".encode())
        terminal.read(" left")
        for columns in (50, 30, 100):
            terminal.resize(columns)
            terminal.read_for(1.0)
            assert len(bars(terminal)) == 1, terminal.screen.text
        terminal.type(b"\x1a")
        terminal.read("Stopped")
        assert terminal.screen.cursor, "the cursor is hidden in the shell"
        terminal.read_for(1.5)
        stopped = terminal.screen.text
        terminal.read_for(0.5)
        assert terminal.screen.text == stopped, "a stopped job writes nothing"
        terminal.type(b"fg\n")
        terminal.read("report   privsweep report slow")
        terminal.type(b"echo code=$?\n")
        terminal.read("code=0")
        text = terminal.screen.text
    assert "48 computed" in text
    assert "Traceback" not in text
    assert text.count("$ fg") == 1, "the line of the shell was erased"
    assert len(bars(terminal)) <= 1, "the bar that was on the screen when the job was stopped"
