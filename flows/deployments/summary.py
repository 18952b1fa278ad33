"""Summaries of computed points, for a log and a table: few lines for any number of batches."""

from dataclasses import dataclass, field
from math import ceil
from typing import Any

from flows.runs.batches import StatusTally
from privcore.answer import FAILURES
from tasks.work import Done

LINES = 30  # about finished batches, at most
NAMED = 3  # workers in a line, at most
WARNINGS = 20  # about batches with failures, at most


@dataclass
class _Sum(StatusTally):
    """Sums of batches, with the workers that computed them."""

    workers: set[str] = field(default_factory=set)

    def add(self, done: Done) -> None:
        """Add a batch."""
        super().add(done)
        self.workers |= {done.worker} - {""}


class Computed:
    """Sums of batches, with a line about new batches from time to time."""

    def __init__(self, batches: int) -> None:
        """Expect this number of batches; there are more if the engine splits a batch."""
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
        """Return a line about the batches since the last line, or None if it is not due yet.

        Up to 30 batches get a line each; of more batches, several share a line.
        """
        enough = self._collected >= ceil(self.expected / LINES) and self._lines < LINES - 1
        return self.rest() if enough else None

    def rest(self) -> str | None:
        """Return a line about the batches since the last line, or None without new batches."""
        if not self._collected:
            return None
        text = "; ".join(_said(method, each) for (_, method), each in self._unsaid.items())
        self._unsaid = {}
        self._collected = 0
        self._lines += 1
        return f"{text} ({min(self.finished, self.expected)} of {self.expected} batches)"

    def warning(self, done: Done) -> str | None:
        """Return a warning with the failures of a batch and their reasons; None after 20 warnings."""
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
        """Return a warning about the failed points that had no warning, or None."""
        return f"{self._quiet} more points failed." if self._quiet else None

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each problem and method: points, counts by status, seconds."""
        return [
            {
                "problem": problem,
                "method": method,
                "points": each.points,
                "statuses": ", ".join(f"{n} {status}" for status, n in sorted(each.statuses.items())),
                "seconds": float(f"{each.seconds:.3g}"),
            }
            for (problem, method), each in sorted(self._sums.items())
        ]


def _said(method: str, each: _Sum) -> str:
    many = f" in {each.batches} batches" if each.batches > 1 else ""
    workers = sorted(each.workers)
    others = f" and {len(workers) - NAMED} others" if len(workers) > NAMED else ""
    by = f", on {', '.join(workers[:NAMED])}{others}" if workers else ""
    return f"{method}: {each.points} points{many}, {each.seconds:.3g} s{by}"
