"""A process that ends with its parent, even if its output is not read."""

import subprocess
import sys
import time
from pathlib import Path

CHILD = """
import sys, time
from pathlib import Path
from flows.runs.signals import end_with_parent, signals_interrupt
gone = end_with_parent()
with signals_interrupt():
    try:
        print(gone(), flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("nobody reads this", flush=True)
        print("nor this", file=sys.stderr, flush=True)
        Path(sys.argv[1]).with_suffix(".part").write_text(str(gone()))
        Path(sys.argv[1]).with_suffix(".part").rename(sys.argv[1])
"""
PARENT = """
import subprocess, sys
pipe = subprocess.PIPE
child = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=pipe, stderr=pipe)
print(child.stdout.readline().decode(), end="", flush=True)
child.wait()
"""


def test_a_child_is_interrupted_when_its_parent_is_killed_and_may_print_all_the_same(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = [sys.executable, "-c", PARENT, CHILD, str(told)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "False\n", "its parent lives"
        parent.kill()
    give_up = time.monotonic() + 30
    while not told.exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    assert told.read_text() == "True"
