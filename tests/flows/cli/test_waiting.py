"""The words on a terminal while a command computes."""

import os
import subprocess
import sys

from flows.cli.options import COMPILING

SCRIPT = """
from flows.cli.options import waiting
from privcore.numerics.compiled import compiled

@compiled(cache=False)
def twice(x):
    return 2.0 * x

for number in (1, 1.0):  # each type of argument is compiled
    with waiting("computing"):
        assert twice(number) == 2.0
"""


def test_compiling_is_said_once_however_many_answers_are_waited_for() -> None:
    ours, terminal = os.openpty()
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while block := read(ours):
            shown += block
    os.close(ours)
    assert process.returncode == 0, shown.decode()
    assert " ".join(shown.decode().split()).count(COMPILING) == 1


def read(terminal: int) -> bytes:
    """Return the next words, or none once the other end is closed; Linux reports that as an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
