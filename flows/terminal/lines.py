"""Lines at the end of a terminal that are replaced in place."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from flows.terminal.window import Piece, painted, width_of

EVERY = 0.25
"""Seconds between two pictures of lines that are replaced in place."""
PAUSED = 1.0
"""Seconds without a picture after which the process has probably been stopped."""


class BottomLines:
    """Lines at the end of a terminal that are replaced in place until the block ends, which removes them.

    The cursor is never hidden, so that a crash or a stopped job leaves nothing to restore. Nothing is drawn
    while the job is in the background.

    Args:
        lines: Returns the lines for a number of columns; called in a thread of its own.
        after: Seconds before they are drawn for the first time.
    """

    def __init__(self, lines: Callable[[int], Sequence[Sequence[Piece]]], *, after: float = 0.0) -> None:
        self._lines, self._after = lines, after
        self._stream = sys.stderr
        self._drawn: list[int] = []
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="lines", daemon=True)
        self._before: Any = None

    def __enter__(self) -> Self:
        """Return the region; the first picture follows."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGCONT, self._forget)
        _active.append(self)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the lines."""
        _active.remove(self)
        self._over.set()
        self._thread.join()
        with self.hidden():
            pass
        if self._before is not None:
            signal.signal(signal.SIGCONT, self._before)

    def draw(self) -> None:
        """Replace the lines."""
        with self._lock:
            if self._over.is_set() or not self._in_front():
                return
            width = (width_of(self._stream) or 80) - len("^C") - 1  # keys are echoed behind the lines
            lines = [list(_cut(line, width)) for line in self._lines(width)]
            text = "\n".join(painted(line, self._stream) for line in lines)
            self._write(self._erasing() + text)
            self._drawn = [sum(len(part) for part, _ in line) for line in lines]

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the lines until the next picture, which is not drawn before the block ends."""
        with self._lock:
            self._write(self._erasing())
            self._drawn = []
            yield

    def _erasing(self) -> str:
        """Return the control sequence that removes the lines; a narrower window has broken them."""
        if not self._drawn:
            return ""
        width = width_of(self._stream) or 80
        rows = sum(max(1, -(-length // width)) for length in self._drawn)
        return (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\r\x1b[J"

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _forget(self, *_: object) -> None:
        """After a pause, the shell has written below the lines."""
        self._drawn = []

    def _in_front(self) -> bool:
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True

    def _go_on(self) -> None:
        if self._over.wait(self._after):
            return
        last = time.monotonic()
        while True:
            if (
                time.monotonic() - last < PAUSED
            ):  # else the main thread first handles the signal of a resumed job
                self.draw()
            last = time.monotonic()
            if self._over.wait(EVERY):
                return


_active: list[BottomLines] = []


@contextmanager
def above_region() -> Iterator[None]:
    """Print above the lines that are replaced in place, if there are any."""
    if not _active:
        yield
        return
    with _active[-1].hidden():
        yield


def _cut(line: Sequence[Piece], width: int) -> Iterator[Piece]:
    """Yield the pieces that fit."""
    for text, style in line:
        if width > 0:
            yield text[:width], style
        width -= len(text)
