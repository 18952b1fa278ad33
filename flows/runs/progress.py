"""Progress of a run: a bar on a terminal and in a notebook, a line every ten seconds elsewhere."""

import sys
import time
from typing import TYPE_CHECKING, Any, Self

from flows.printing import say
from flows.runs.heartbeat import Pace
from flows.runs.notebook import NotebookBar, in_notebook

if TYPE_CHECKING:
    from flows.runs.plan import Plan
    from tasks.work import Done

EVERY = 10.0  # seconds between lines without a terminal


class Progress:
    """Shows progress on standard error, or in the notebook.

    It is called with the plan, with words on the start of the engine, and with every finished batch.
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._notebook: NotebookBar | None = None
        self._pace = Pace()
        self._told = time.monotonic()

    def __enter__(self) -> Self:
        """Return the progress; nothing is shown before the first call."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar; that of a notebook stays as it is."""
        if self._bar is not None:
            self._bar.stop()
        if self._notebook is not None:
            self._notebook.stop()

    def __call__(self, plan: "Plan", done: "Done | str | None") -> None:
        """Show the plan at the start, then the start of the engine, then the progress after each batch."""
        if done is None:
            self._begin(plan)
            return
        if isinstance(done, str):
            self._show_start(done)
            return
        self._pace.add(done)
        finished, failed = self._pace.points, self._pace.failed
        if self._bar is not None:
            self._bar.update(self._task, completed=finished, failed=failed, engine="")
            return
        line = (f", {failed} failed" if failed else "") + self._left(plan.new)
        if self._notebook is not None:
            self._notebook.show(finished, line)
        elif time.monotonic() - self._told >= EVERY:
            self._told = time.monotonic()
            self._say(f"{finished} of {plan.new} points{line}")

    def _begin(self, plan: "Plan") -> None:
        if not plan.new:
            return
        heading = f"computing {plan.new} of {plan.total} points, {sum(plan.stored.values())} are stored"
        if in_notebook():
            self._notebook = NotebookBar(heading, plan.new)
            return
        self._say(heading)
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TextColumn("points, {task.fields[failed]} failed,"),
                progress.TimeElapsedColumn(),
                progress.TextColumn("spent,"),
                progress.TimeRemainingColumn(),
                progress.TextColumn("left {task.fields[engine]}"),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task("points", total=plan.new, failed=0, engine="")
            self._bar.start()

    def _show_start(self, words: str) -> None:
        if self._notebook is not None:
            self._notebook.show(0, f" ({words})")
        elif self._bar is None:
            self._say(words)
        else:
            self._bar.update(self._task, engine=f"({words})")

    def _left(self, new: int) -> str:
        pace = self._pace.per_second
        left = new - self._pace.points
        return f", {duration(left / pace)} left" if pace and left else ""

    def _say(self, line: str) -> None:
        say(line, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a time in a readable unit.

    Example:
        >>> duration(0.34), duration(75), duration(9000), duration(400_000)
        ('0.3 s', '75 s', '2.5 h', '4.6 days')
    """
    for unit, length, limit in (("s", 1.0, 120.0), ("min", 60.0, 120.0), ("h", 3600.0, 48.0)):
        if seconds < limit * length:
            return f"{seconds / length:.{0 if seconds / length >= 10 else 1}f} {unit}"
    return f"{seconds / 86_400:.1f} days"


def size(count: float) -> str:
    """Return a number of bytes in a readable unit.

    Example:
        >>> size(1500), size(2.5e9)
        ('1.5 kB', '2.5 GB')
    """
    for unit, length in (("GB", 1e9), ("MB", 1e6)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count / 1e3:.1f} kB"
