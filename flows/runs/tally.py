"""Sums of finished batches: points by status, and seconds."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from privcore.answer import FAILURES, Status
from tasks.work import Done


@dataclass
class StatusTally:
    """Sums of batches, such as those of one problem and method.

    Attributes:
        statuses: Number of points by status.
        seconds: Wall time of their evaluations together.
        batches: Number of batches.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    batches: int = 0

    def add(self, done: Done) -> None:
        """Add a batch."""
        self.statuses.update({str(status): n for status, n in done.statuses.items()})
        self.seconds += done.seconds
        self.batches += 1

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


def failures(statuses: Mapping[str, int]) -> str:
    """Return the numbers of failed points by status, in words.

    Example:
        >>> failures({"ok": 5, "timeout": 2, "crashed": 1})
        '1 crashed, 2 timeout'
    """
    return ", ".join(f"{n} {word}" for word, n in sorted(statuses.items()) if word in FAILURES and n)
