"""The status line of a computation on a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from flows.printing import say
from flows.terminal.lines import BottomLines
from flows.terminal.window import Piece, moves_cursor

PATIENCE = 0.3
"""Seconds of waiting before the activity is shown."""

COMPILING = "privsweep: compiling for this processor (some seconds, once after an installation)"


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show an activity on standard error while the block runs; yield a function that names another one.

    Args:
        what: The activity, such as `computing allocation-epsilon`.
    """
    now = [what]
    if not moves_cursor(sys.stderr):
        yield now.append
        return
    announce_compilation()
    began = time.monotonic()

    def lines(_width: int) -> list[list[Piece]]:
        return [[(f"{now[-1]} ... ", ""), (f"{time.monotonic() - began:.0f} s", "dim")]]

    with BottomLines(lines, after=PATIENCE):
        yield now.append


@cache
def announce_compilation() -> None:
    """Say it before the first compilation of this process, and only then."""
    from privcore.numerics.compiled import announce

    announce(lambda: say(COMPILING, file=sys.stderr))
