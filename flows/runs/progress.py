"""Progress of a run: a bar on a terminal and in a notebook, a line every ten seconds elsewhere."""

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Self

from flows.printing import marked, say
from flows.runs.notebook import NotebookBar, in_notebook
from flows.runs.pace import Pace
from flows.terminal.lines import BottomLines
from flows.terminal.window import Piece, moves_cursor, shows

if TYPE_CHECKING:
    from flows.runs.plan import Plan
    from tasks.work import Done

EVERY = 10.0  # seconds between lines without a terminal
LONGEST = 40  # characters of the bar
FULL = "#0072b2"  # contrast of at least 4 to white and to black


class Progress:
    """Shows progress on standard error, or in the notebook.

    It is called with the plan, with words on the start of the engine, and with every finished batch.
    """

    def __init__(self) -> None:
        self._region: BottomLines | None = None
        self._notebook: NotebookBar | None = None
        self._bar = ProgressBar()
        self._told = time.monotonic()

    def __enter__(self) -> Self:
        """Return the progress; nothing is shown before the first call."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar; that of a notebook stays as it is."""
        if self._region is not None:
            self._region.__exit__()
            self._region = None
        if self._notebook is not None:
            self._notebook.stop()

    def __call__(self, plan: "Plan", done: "Done | str | None") -> None:
        """Show the plan at the start, then the start of the engine, then the progress after each batch."""
        if done is None:
            self._begin(plan)
            return
        bar = self._bar
        if isinstance(done, str):
            bar.words, bar.began = done, time.monotonic()
            if self._notebook is not None:
                self._notebook.show(0, f" ({done})")
            elif self._region is None:
                self._say(done)
            return
        bar.add(done)
        if self._notebook is not None:
            self._notebook.show(bar.pace.points, bar.rest)
        elif self._region is None and time.monotonic() - self._told >= EVERY:
            self._told = time.monotonic()
            self._say(f"{bar.pace.points} of {plan.new} points{bar.rest}")

    def _begin(self, plan: "Plan") -> None:
        if not plan.new:
            return
        self._bar = ProgressBar(plan)
        heading = f"computing {plan.new} of {plan.total} points, {sum(plan.stored.values())} are stored"
        if in_notebook():
            self._notebook = NotebookBar(heading, plan.new)
        elif moves_cursor(sys.stderr):
            marked(*self._bar.heading(), style="bold", file=sys.stderr)
            self._region = BottomLines(self._bar.lines).__enter__()
        else:
            self._say(heading)

    def _say(self, line: str) -> None:
        say(line, file=sys.stderr, flush=True)


class ProgressBar:
    """The bar of a run on a terminal, and the words next to it.

    Args:
        plan: The work of the run; None if nothing is known of it yet.

    Attributes:
        pace: The finished batches, and the time that is left.
        words: Words on the start of the engine.
        began: Time of these words.
    """

    def __init__(self, plan: "Plan | None" = None) -> None:
        self._plan = plan
        self.pace = Pace(plan)
        self.words, self.began = "", time.monotonic()
        self._share = 0.0
        self._expected: Counter[str] = Counter()
        self._finished: Counter[str] = Counter()
        if plan is not None:
            for number, (_, method) in enumerate(plan.batches.of_groups):
                self._expected[method.name] += int(plan.batches.points[plan.batches.group == number].sum())

    def add(self, done: "Done") -> None:
        """Count a batch."""
        self.pace.add(done)
        self._finished[done.method] += done.points
        self._share = max(self._share, self.pace.share)  # a bar never goes back

    @property
    def rest(self) -> str:
        """Failed points and the time left, to follow a number of points."""
        failed = f", {self.pace.failed} failed" if self.pace.failed else ""
        left = self.pace.seconds_left
        return failed + (f", {time_left(left)}" if left is not None and self._left else "")

    @property
    def _left(self) -> int:
        return self._plan.new - self.pace.points if self._plan else 0

    def heading(self) -> tuple[str, str]:
        """Return the number of points, and the rest of the size of the run in words."""
        plan = self._plan
        assert plan is not None
        of = f" of {plan.total}" if plan.new != plan.total else ""
        several = counted(len({method for _, method in plan.batches.of_groups}), "method")
        work = duration(plan.cpu_seconds / plan.workers)
        after = f", {several}, at most about {work} on {counted(plan.workers, 'core')}"
        return f"  {plan.new}{of} points", after

    def lines(self, width: int) -> list[list[Piece]]:
        """Return the bar, and the methods below it.

        Args:
            width: Columns of the terminal.
        """
        assert self._plan is not None
        words = (
            f" {self._share:4.0%}   {self.pace.points} of {self._plan.new}{self.rest.replace(', ', '   ')}"
        )
        return [
            [("  ", ""), *bar(self._share, min(width - 3 - len(words), LONGEST)), (words, "")],
            [("  ", ""), (self._methods(), "dim")],
        ]

    def _methods(self) -> str:
        """Return finished and expected points of each unfinished method, or the start or the end."""
        if not self.pace.points:
            return f"{self.words} ... {time.monotonic() - self.began:.0f} s" if self.words else ""
        unfinished = (
            f"{name} {self._finished[name]}/{number}"
            for name, number in self._expected.items()
            if self._finished[name] < number
        )
        return "   ".join(unfinished) or "finishing ..."


def bar(share: float, length: int) -> list[Piece]:
    """Return a bar whose first part is full.

    Example:
        >>> "".join(text for text, _ in bar(0.5, 4))
        '━━──'
    """
    full, empty = ("━", "─") if shows(sys.stderr, "━─") else ("#", "-")
    done = round(share * max(length, 0))
    return [(full * done, FULL), (empty * (length - done), "dim")]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, "core"), counted(2, "core")
        ('1 core', '2 cores')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def time_left(seconds: float) -> str:
    """Return the time that is left, as a phrase.

    Example:
        >>> time_left(0.2), time_left(3.4), time_left(9000)
        ('1 s left', '3 s left', '2.5 h left')
    """
    return f"{max(round(seconds), 1)} s left" if seconds < 120 else f"{duration(seconds)} left"


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
