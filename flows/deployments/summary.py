"""Summaries of computed points, for a log and a table: few lines, however many batches there are."""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from privcore.answer import FAILURES
from tasks.work import Done

LINES = 30  # on batches that are done, at most
NAMED = 3  # workers in a line, at most
WARNINGS = 20  # on batches with failures, at most


@dataclass
class _Sum:
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    batches: int = 0
    workers: set[str] = field(default_factory=set)

    def add(self, done: Done) -> None:
        self.statuses.update({str(status): n for status, n in done.statuses.items()})
        self.seconds += done.seconds
        self.batches += 1
        self.workers |= {done.worker} - {""}


class Computed:
    """Adds up batches, and says from time to time what was added."""

    def __init__(self, batches: int) -> None:
        """Expect so many batches; there are more where the engine cuts one into halves."""
        self.expected = batches
        self.finished = 0
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._unsaid: dict[tuple[str, str], _Sum] = {}
        self._collected = 0
        self._lines = 0
        self._warnings = 0
        self._quiet = 0

    def add(self, done: Done) -> None:
        """Add a batch."""
        self.finished += 1
        self._collected += 1
        for sums in (self._sums, self._unsaid):
            sums.setdefault((done.problem, done.method), _Sum()).add(done)

    def line(self) -> str | None:
        """Return what is new since the last line, None while the next one is not due.

        Up to 30 batches get a line each; of more, several share one.
        """
        enough = self._collected >= ceil(self.expected / LINES) and self._lines < LINES - 1
        return self.rest() if enough else None

    def rest(self) -> str | None:
        """Return what is new since the last line, None if that is nothing."""
        if not self._collected:
            return None
        text = "; ".join(_said(method, each) for (_, method), each in self._unsaid.items())
        self._unsaid = {}
        self._collected = 0
        self._lines += 1
        return f"{text} ({min(self.finished, self.expected)} of {self.expected} batches)"

    def warning(self, done: Done) -> str | None:
        """Return what a batch has no answers to, and why; None if it has all, or after 20 warnings."""
        failed = sum(n for status, n in done.statuses.items() if status in FAILURES)
        if not failed:
            return None
        if self._warnings == WARNINGS:
            self._quiet += failed
            return None
        self._warnings += 1
        more = " ..." if failed > len(done.reasons) else ""
        reasons = "; ".join(dict.fromkeys(done.reasons))
        return f"{failed} of {done.points} points of {done.method} failed: {reasons}{more}"

    def warning_of_rest(self) -> str | None:
        """Return how many points failed without a warning of their own, None if there are none."""
        return f"{self._quiet} more points failed." if self._quiet else None

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each problem and method: points, how many with which status, seconds."""
        return [
            {
                "problem": problem,
                "method": method,
                "points": sum(each.statuses.values()),
                "statuses": ", ".join(f"{n} {status}" for status, n in sorted(each.statuses.items())),
                "seconds": float(f"{each.seconds:.3g}"),
            }
            for (problem, method), each in sorted(self._sums.items())
        ]


def _said(method: str, each: _Sum) -> str:
    points = sum(each.statuses.values())
    many = f" in {each.batches} batches" if each.batches > 1 else ""
    workers = sorted(each.workers)
    others = f" and {len(workers) - NAMED} others" if len(workers) > NAMED else ""
    by = f", on {', '.join(workers[:NAMED])}{others}" if workers else ""
    return f"{method}: {points} points{many}, {each.seconds:.3g} s{by}"
