"""The pace of a run: points per second, and the time that is left by estimated and measured costs."""

import math
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from flows.runs.workload import PER_BATCH, PER_POINT
from privcore.answer import FAILURES
from tasks.work import Done

if TYPE_CHECKING:
    from flows.runs.plan import Plan

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

    Args:
        plan: The plan; None counts points alone.

    Attributes:
        points: Number of finished points.
        failed: Number of those without an answer.
    """

    def __init__(self, plan: "Plan | None" = None) -> None:
        self.points = self.failed = 0
        self._first: tuple[int, float] | None = None
        self._plan = plan
        self._names: list[tuple[str, str]] = []
        self._left: dict[tuple[str, str], float] = defaultdict(float)
        self._finished: dict[tuple[str, str], float] = defaultdict(float)
        self._took: dict[tuple[str, str], float] = defaultdict(float)
        self._started: dict[int, float] = {}
        self._next = 0
        if plan is not None:
            batches = plan.batches
            self._names = [(kind.name, method.name) for kind, method in batches.of_groups]
            for number, name in enumerate(self._names):
                self._left[name] += float(batches.seconds[batches.group == number].sum())

    def add(self, done: Done) -> None:
        """Count a batch."""
        now = time.monotonic()
        self.points += done.points
        self.failed += sum(number for status, number in done.statuses.items() if status in FAILURES)
        name = done.problem, done.method
        if self._first is None:
            self._first = self.points, now
            self._start(now - done.seconds)
        self._left[name] = max(self._left[name] - done.estimate, 0.0)
        self._finished[name] += done.estimate
        self._took[name] += done.seconds
        self._end(name, done)
        self._start(now)

    def _start(self, moment: float) -> None:
        """Note the start of the next batches, as many as there are free workers."""
        while self._plan and len(self._started) < self._plan.workers and self._next < len(self._plan.batches):
            self._started[self._next] = moment
            self._next += 1

    def _end(self, name: tuple[str, str], done: Done) -> None:
        """Note the end of the batch with this outcome, or of the first one if a worker has taken another."""
        for number in self._started:
            if self._of(number) == (name, done.points, done.estimate):
                del self._started[number]
                return
        self._started.pop(min(self._started, default=-1), None)

    def _of(self, number: int) -> tuple[tuple[str, str], int, float]:
        """Return method, points and estimated seconds of a batch."""
        assert self._plan is not None
        batches = self._plan.batches
        name = self._names[int(batches.group[number])]
        return name, int(batches.points[number]), float(batches.seconds[number])

    @property
    def per_second(self) -> float | None:
        """Points per second since the first finished batch, before which workers were starting."""
        before, moment = self._first or (0, 0.0)
        seconds = time.monotonic() - moment
        return (self.points - before) / seconds if self.points > before > 0 and seconds > 0 else None

    @property
    def share(self) -> float:
        """Finished share of the work, from 0 to 1."""
        took, ratios = sum(self._took.values()), self._ratios()
        return took / (took + self._work(ratios)) if took else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the last batch ends, or None before the first batch."""
        if self._first is None or self._plan is None:
            return None
        now, ratios = time.monotonic(), self._ratios()
        work, longest = self._work(ratios), 0.0
        for number, began in self._started.items():
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
        took, estimated = sum(self._took.values()), sum(self._finished.values())
        usual = math.sqrt(TYPICAL * (took + TYPICAL * TRUSTED) / (estimated + TRUSTED))
        return {
            name: (self._took[name] + usual * TRUSTED) / (self._finished[name] + TRUSTED)
            for name in self._left
        }

    def _work(self, ratios: Mapping[tuple[str, str], float]) -> float:
        """Return the seconds of one core that all unfinished batches probably take together."""
        assert self._plan is not None
        overhead = PER_POINT * (self._plan.new - self.points)
        overhead += PER_BATCH * (len(self._plan.batches) - self._next + len(self._started))
        return max(overhead, 0.0) + sum(left * ratios[name] for name, left in self._left.items())
