"""Summaries of computed points, for a log and a table: few lines for any number of batches."""

from math import ceil
from typing import Any

from tasks.tally import Outcomes, Tally
from tasks.work import Done

LINES = 30  # about finished batches, at most
NAMED = 3  # workers in a line, at most
WARNINGS = 20  # about batches with failures, at most


class Computed:
    """The computed points of a run in words, with a line about new batches from time to time.

    Args:
        batches: Number of batches; there are more if the engine splits a batch.
        tally: The outcomes of the run.
    """

    def __init__(self, batches: int, tally: Tally) -> None:
        self._expected, self._tally, self._unsaid = batches, tally, Tally()
        self._lines = self._warnings = self._quiet = 0

    @property
    def batches(self) -> str:
        """Number of finished batches, of all."""
        return f"{min(self._tally.batches, self._expected)} of {self._expected} batches"

    @property
    def share(self) -> float:
        """Finished share of the batches, from 0 to 1."""
        return min(1.0, self._tally.batches / self._expected)

    def line(self, done: Done) -> str | None:
        """Return a line about a batch and those since the last line, or None if it is not due yet.

        Up to 30 batches get a line each; of more batches, several share a line.
        """
        self._unsaid.add(done)
        enough = self._unsaid.batches >= ceil(self._expected / LINES) and self._lines < LINES - 1
        return self.rest() if enough else None

    def rest(self) -> str | None:
        """Return a line about the batches since the last line, or None without new batches."""
        if not self._unsaid.batches:
            return None
        text = "; ".join(_said(method, each) for (_, method), each in self._unsaid.by_method.items())
        self._unsaid = Tally()
        self._lines += 1
        return f"{text} ({self.batches})"

    def warning(self, done: Done) -> str | None:
        """Return a warning with the failures of a batch and their reasons; None after 20 warnings."""
        if not (failed := done.failed):
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
            for (problem, method), each in sorted(self._tally.by_method.items())
        ]


def _said(method: str, each: Outcomes) -> str:
    many = f" in {each.batches} batches" if each.batches > 1 else ""
    workers = sorted(each.workers)
    others = f" and {len(workers) - NAMED} others" if len(workers) > NAMED else ""
    by = f", on {', '.join(workers[:NAMED])}{others}" if workers else ""
    return f"{method}: {each.points} points{many}, {each.seconds:.3g} s{by}"
