"""The priority of a process that only watches: below that of the workers, until it may catch up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.own_process import NICENESS, OF_SESSION, catch_up

WATCHER = """
import os, sys
from tasks.own_process import give_way
give_way()
print(os.nice(0), flush=True)
sys.stdin.read()
"""


def test_a_process_gives_way_to_all_others_and_catches_up_with_other_sessions() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as watcher:
        assert watcher.stdout is not None
        assert int(watcher.stdout.readline()) == min(os.nice(0) + NICENESS, 19)
        session = Path(f"/proc/{watcher.pid}/autogroup")
        if not session.exists() or "nice" not in session.read_text():
            pytest.skip("this kernel does not divide processors among sessions")
        assert session.read_text().split()[-1] == str(OF_SESSION)
        catch_up(watcher.pid)
        assert session.read_text().split()[-1] == "0"
        watcher.communicate()


def test_a_process_that_ended_catches_up_with_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    catch_up(ended.pid)
