"""Progress of a run: its pace and heartbeats, as a bar, in a notebook, or as a line each ten seconds."""

import math
import secrets
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Self

from flows.printing import counted, marked, say
from flows.runs.plan import PER_BATCH, PER_POINT, Plan
from flows.spec.sweep import Sweep
from flows.terminal.lines import BottomLines
from flows.terminal.window import Piece, moves_cursor, shows
from storage.heartbeats import EVERY, EVERY_IN_BUCKET, Heartbeat, beat, remove_dead, stop
from tasks.tally import Outcomes, Tally
from tasks.work import Done

if TYPE_CHECKING:
    from storage.place.folder import Folder

REDRAW_EVERY = 0.5
"""Seconds between two pictures of the bar, at least."""


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    module = sys.modules.get("IPython")  # a kernel has loaded it
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
        if first or time.monotonic() - self._shown >= REDRAW_EVERY:
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


TYPICAL = 0.3
"""Measured seconds of whole sweeps, as a multiple of the estimated seconds, which are on the safe side."""

TRUSTED = 0.5
"""Estimated seconds of each method that count as measured before any of its batches is."""

LATE = 1.25
"""Factor by which a batch that takes longer than expected is expected to exceed its present time."""


class Pace:
    r"""Progress of a run, with the remaining work weighted by the measured costs of its methods.

    Estimates are on the safe side, by factors from 1 to 1000 that are similar for the points of a method. A
    batch of n points with the estimate e is expected to take $d = r_m e + 0.03 + 0.00019 n$ seconds, where

    $$ r_m = \frac{s_m + r c}{f_m + c}, $$

    $s_m$ and $f_m$ are the measured and the estimated seconds of the finished batches of its method m, r is
    the geometric mean of `TYPICAL` and of the same ratio for all methods, and c = `TRUSTED`. Batches start in
    the order of the plan, so those that are being computed and the time since they started are known. The
    time left is the work left, without the part of it that is done, divided among the workers, but at least
    the rest of every batch that has started.

    Attributes:
        plan: The work of the run.
        tally: Its finished batches.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.tally = plan, Tally()
        self._first: tuple[int, float] | None = None
        self._planned: dict[tuple[str, str], float] = defaultdict(float)  # estimated seconds of each method
        for group in plan.groups:
            self._planned[group.name] += group.seconds
        self._started: dict[int, float] = {}
        self._next = 0

    def add(self, done: Done) -> None:
        """Add a batch."""
        now = time.monotonic()
        self.tally.add(done)
        if self._first is None:
            self._first = self.tally.points, now
            self._start(now - done.seconds)
        self._end(done)
        self._start(now)

    def _start(self, moment: float) -> None:
        """Note the start of the next batches, as many as there are free workers."""
        while len(self._started) < self.plan.workers and self._next < len(self.plan.batches):
            self._started[self._next] = moment
            self._next += 1

    def _end(self, done: Done) -> None:
        """Note the end of the batch with this outcome, or of the first one if a worker has taken another."""
        for number in self._started:
            if self._of(number) == ((done.problem, done.method), done.points, done.estimate):
                del self._started[number]
                return
        self._started.pop(min(self._started, default=-1), None)

    def _of(self, number: int) -> tuple[tuple[str, str], int, float]:
        """Return method, points and estimated seconds of a batch."""
        batches = self.plan.batches
        name = self.plan.groups[int(batches.group[number])].name
        return name, int(batches.points[number]), float(batches.seconds[number])

    @property
    def per_second(self) -> float | None:
        """Points per second since the first finished batch, before which workers were starting."""
        before, moment = self._first or (0, 0.0)
        seconds, points = time.monotonic() - moment, self.tally.points
        return (points - before) / seconds if points > before > 0 and seconds > 0 else None

    @property
    def share(self) -> float:
        """Finished share of the work, from 0 to 1."""
        took = self.tally.seconds
        return took / (took + self._work(self._ratios())) if took else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the last batch ends, or None before the first batch."""
        if self._first is None:
            return None
        now, ratios = time.monotonic(), self._ratios()
        work, longest = self._work(ratios), 0.0
        for number, began in list(self._started.items()):  # another thread may add a batch
            name, points, estimate = self._of(number)
            expected = ratios[name] * estimate + PER_BATCH + PER_POINT * points
            elapsed = now - began
            if elapsed > expected:  # it takes longer than expected
                work += LATE * elapsed - expected
                expected = LATE * elapsed
            longest = max(longest, expected - elapsed)
            work -= elapsed
        return max(work / max(len(self._started), 1), longest, 0.0)

    def _ratios(self) -> dict[tuple[str, str], float]:
        """Return the measured seconds of each method, as a multiple of the estimated seconds."""
        took, estimated = self.tally.seconds, self.tally.estimate
        usual = math.sqrt(TYPICAL * (took + TYPICAL * TRUSTED) / (estimated + TRUSTED))
        found = {name: self.tally.by_method.get(name, Outcomes()) for name in self._planned}
        return {name: (n.seconds + usual * TRUSTED) / (n.estimate + TRUSTED) for name, n in found.items()}

    def _work(self, ratios: Mapping[tuple[str, str], float]) -> float:
        """Return the seconds of one core that all unfinished batches probably take together."""
        overhead = PER_POINT * (self.plan.new - self.tally.points)
        overhead += PER_BATCH * (len(self.plan.batches) - self._next + len(self._started))
        work = max(overhead, 0.0)
        for name, planned in self._planned.items():
            finished = self.tally.by_method.get(name, Outcomes()).estimate
            work += max(planned - finished, 0.0) * ratios[name]
        return work


@contextmanager
def beating(place: "Folder", sweep: Sweep, pace: Pace, *, started: datetime) -> Iterator[None]:
    """Write heartbeats with the progress of a run inside the block.

    Args:
        place: The store.
        sweep: The sweep.
        pace: The progress of the run.
        started: When it began, in UTC.
    """
    over = threading.Event()
    every = EVERY_IN_BUCKET if place.is_remote else EVERY
    heartbeat = Heartbeat(
        run=secrets.token_hex(8),
        sweep=sweep.name,
        digest=sweep.digest,
        total=pace.plan.total,
        new=pace.plan.new,
        started_at=started,
        every=every,
    )

    def go_on() -> None:
        now = heartbeat
        while True:
            beat(place, now)
            if over.wait(every):
                return
            now = replace(
                now,
                number=now.number + 1,
                beaten_at=datetime.now(UTC),
                done=pace.tally.points,
                failed=pace.tally.failed,
                points_per_second=pace.per_second,
                work_seconds_left=pace.seconds_left,
            )

    remove_dead(place, sweep.digest)
    thread = threading.Thread(target=go_on, name="heartbeats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        stop(place, heartbeat.run)


LINE_EVERY = 10.0  # seconds between lines without a terminal
LONGEST = 40  # characters of the bar
FULL = "#0072b2"  # contrast of at least 4 to white and to black


class Progress:
    """Shows progress on standard error, or in the notebook.

    It is called with the pace, with words on the start of the engine, and with every finished batch.
    """

    def __init__(self) -> None:
        self._region: BottomLines | None = None
        self._notebook: NotebookBar | None = None
        self._bar = ProgressBar(Pace(Plan(total=0)))
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

    def __call__(self, pace: Pace, done: Done | str | None) -> None:
        """Show the plan at the start, then the start of the engine, then the progress after each batch."""
        if done is None:
            self._begin(pace)
            return
        bar = self._bar
        if isinstance(done, str):
            bar.words, bar.began = done, time.monotonic()
            if self._notebook is not None:
                self._notebook.show(0, f" ({done})")
            elif self._region is None:
                self._say(done)
            return
        points = pace.tally.points
        if self._notebook is not None:
            self._notebook.show(points, bar.rest)
        elif self._region is None and time.monotonic() - self._told >= LINE_EVERY:
            self._told = time.monotonic()
            self._say(f"{points} of {pace.plan.new} points{bar.rest}")

    def _begin(self, pace: Pace) -> None:
        plan = pace.plan
        if not plan.new:
            return
        self._bar = ProgressBar(pace)
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
        pace: The progress of the run.

    Attributes:
        words: Words on the start of the engine.
        began: Time of these words.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.words, self.began = "", time.monotonic()
        self._share = 0.0
        self._expected: Counter[str] = Counter()
        for group in pace.plan.groups:
            self._expected[group.method.name] += group.points

    @property
    def rest(self) -> str:
        """Failed points and the time left, to follow a number of points."""
        tally, left = self._pace.tally, self._pace.seconds_left
        failed = f", {tally.failed} failed" if tally.failed else ""
        is_over = tally.points >= self._pace.plan.new
        return failed + ("" if left is None or is_over else f", {time_left(left)}")

    def heading(self) -> tuple[str, str]:
        """Return the number of points, and the rest of the size of the run in words."""
        plan = self._pace.plan
        of = f" of {plan.total}" if plan.new != plan.total else ""
        several = counted(len({group.method for group in plan.groups}), "method")
        work = duration(plan.cpu_seconds / plan.workers)
        after = f", {several}, at most about {work} on {counted(plan.workers, 'core')}"
        return f"  {plan.new}{of} points", after

    def lines(self, width: int) -> list[list[Piece]]:
        """Return the bar, and the methods below it.

        Args:
            width: Columns of the terminal.
        """
        self._share = max(self._share, self._pace.share)  # a bar never goes back
        points = f"{self._pace.tally.points} of {self._pace.plan.new}"
        words = f" {self._share:4.0%}   {points}{self.rest.replace(', ', '   ')}"
        return [
            [("  ", ""), *bar(self._share, min(width - 3 - len(words), LONGEST)), (words, "")],
            [("  ", ""), (self._methods(), "dim")],
        ]

    def _methods(self) -> str:
        """Return finished and expected points of each unfinished method, or the start or the end."""
        if not self._pace.tally.points:
            return f"{self.words} ... {time.monotonic() - self.began:.0f} s" if self.words else ""
        finished: Counter[str] = Counter()
        for (_, name), sums in list(self._pace.tally.by_method.items()):
            finished[name] += sums.points
        unfinished = (
            f"{name} {finished[name]}/{number}"
            for name, number in self._expected.items()
            if finished[name] < number
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
