"""The tally of a run: the outcomes of its batches, together and for each problem and method.

A run has one tally. Its heartbeats, its display, its task runs in Prefect and its end read it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from privcore.answer import FAILURES, Status
from tasks.work import Done


@dataclass
class Outcomes:
    """Sums of the outcomes of batches.

    Attributes:
        statuses: Number of points by status.
        seconds: Wall time of their evaluations together.
        estimate: Estimated seconds of the batches.
        batches: Number of batches.
        workers: Hosts and processes that evaluated the points.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    estimate: float = 0.0
    batches: int = 0
    workers: set[str] = field(default_factory=set)

    def add(self, done: Done) -> None:
        """Add a batch."""
        self.statuses.update({str(status): n for status, n in done.statuses.items()})
        self.seconds += done.seconds
        self.estimate += done.estimate
        self.batches += 1
        self.workers |= {done.worker} - {""}

    @property
    def points(self) -> int:
        """Number of points."""
        return self.statuses.total()

    @property
    def failed(self) -> int:
        """Number of points without an answer, except points to which the method does not apply."""
        return sum(self.statuses[status] for status in FAILURES)

    @property
    def is_silent(self) -> bool:
        """Whether points failed, and no point has an answer."""
        return bool(self.failed) and not self.statuses[Status.OK]

    def __str__(self) -> str:
        """Return the sums in words."""
        failed = f", {self.failed} failed ({failures(self.statuses)})" if self.failed else ""
        return f"{self.points} points{failed}, {self.seconds:.3g} s of one core"


@dataclass
class Tally(Outcomes):
    """Sums of the outcomes of all batches.

    Attributes:
        by_method: The outcomes for each name of a problem with each name of a method.
        parts: Names of the parts of the batches, relative to the data folder.
    """

    by_method: dict[tuple[str, str], Outcomes] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)

    def add(self, done: Done) -> None:
        """Add a batch."""
        super().add(done)
        self.by_method.setdefault((done.problem, done.method), Outcomes()).add(done)
        if done.part:
            self.parts.add(f"problem={done.problem}/{done.part}")


def failures(statuses: Mapping[str, int]) -> str:
    """Return the numbers of failed points by status, in words.

    Example:
        >>> failures({"ok": 5, "timeout": 2, "crashed": 1})
        '1 crashed, 2 timeout'
    """
    return ", ".join(f"{n} {word}" for word, n in sorted(statuses.items()) if word in FAILURES and n)
