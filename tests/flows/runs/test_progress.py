"""The progress of a run on a terminal: a bar that lives from the start of the engine to the last batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.cli.test_waiting import read

SWEEP = """
name = "few"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = { sigma = { geometric = [0.5, 4, 40] }, delta = 1e-5 }
"""


@pytest.mark.parametrize("engine", ["serial", "ray"])
def test_a_run_on_a_terminal_stores_every_point(tmp_path: Path, engine: str) -> None:
    (tmp_path / "few.toml").write_text(SWEEP)
    command = [sys.executable, "-m", "flows.cli", "run", "few.toml", "--store", "s", "--engine", engine]
    ours, terminal = os.openpty()
    with subprocess.Popen(command, stderr=terminal, stdout=terminal, cwd=tmp_path) as process:
        os.close(terminal)
        shown = b""
        while block := read(ours):
            shown += block
    os.close(ours)
    text = shown.decode()
    assert process.returncode == 0, text
    assert "40 computed" in " ".join(text.split()), text
    assert "Traceback" not in text
