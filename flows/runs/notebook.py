"""A progress bar in a notebook: one output that is replaced in place, without widgets to install."""

import sys
import time
from html import escape
from typing import Any

EVERY = 0.5
"""Seconds between two pictures of the bar, at least."""


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    module = sys.modules.get("IPython")  # a kernel has imported it
    return module is not None and getattr(module.get_ipython(), "kernel", None) is not None


class NotebookBar:
    """A bar in the output of the cell that runs.

    Args:
        heading: Words above the bar.
        total: Number of points.
    """

    def __init__(self, heading: str, total: int) -> None:
        from IPython.display import display

        self._heading, self._total = heading, total
        self._line, self._finished, self._shown = "", 0, time.monotonic()
        # The frontend can replace an output that has a name.
        self._output: Any = display(self._picture(), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def show(self, finished: int, line: str) -> None:
        """Replace the bar, unless the last one with points was shown less than half a second ago.

        Args:
            finished: Number of points that are computed.
            line: Words next to the bar.
        """
        first = self._finished == 0
        self._finished, self._line = finished, line
        if first or time.monotonic() - self._shown >= EVERY:
            self._draw()

    def stop(self) -> None:
        """Show the last state, which stays in the notebook."""
        self._draw()

    def _draw(self) -> None:
        self._shown = time.monotonic()
        self._output.update(self._picture(), raw=True)

    def _picture(self) -> dict[str, str]:
        """Return the bar as HTML, and as text for frontends without it."""
        words = f"{self._finished} of {self._total} points{self._line}"
        bar = f'<progress value="{self._finished}" max="{self._total}"></progress>'
        return {
            "text/html": f"<div>{escape(self._heading)}<br>{bar} {escape(words)}</div>",
            "text/plain": f"{self._heading}: {words}",
        }
