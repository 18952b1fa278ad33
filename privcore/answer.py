"""What a method returns: an enclosure that is proved, an estimate, or a status with its reason."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Status(StrEnum):
    """How an evaluation ended; everything but `ok` says why in the answer's detail."""

    OK = "ok"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"


FAILURES = frozenset({Status.FAILED, Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.CRASHED})
"""What may go better another time; that a method does not apply is not among them."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An enclosure: `P(lower <= truth <= upper) >= confidence`, or a status other than `ok`.

    Attributes:
        lower: Lower end, rounded down; 0 where nothing better is known.
        upper: Upper end, rounded up; infinity where nothing better is known.
        value: Best single value: an estimate without proof, or None.
        confidence: Probability of the enclosure in (0, 1]; 1 is a proof.
        status: `ok`, or why there is no answer.
        detail: For `ok`, how it was reached; else the reason, in one sentence.
    """

    lower: float = 0.0
    upper: float = math.inf
    value: float | None = None
    confidence: float = 1.0
    status: Status = Status.OK
    detail: str = ""

    def __post_init__(self) -> None:
        """Refuse NaN, crossed ends and a confidence that is no probability."""
        if (
            math.isnan(self.lower)
            or math.isnan(self.upper)
            or (self.value is not None and math.isnan(self.value))
        ):
            raise ValueError(f"Expected an answer without NaN, got {self}.")
        if not self.lower <= self.upper:
            raise ValueError(f"Expected lower <= upper, got {self}.")
        if not 0.0 < self.confidence <= 1.0:
            raise ValueError(f"Expected confidence in (0, 1], got {self}.")

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return self.status is Status.OK

    @property
    def rigorous(self) -> bool:
        """Whether the enclosure is a proof, so that it may be intersected with others."""
        return self.ok and self.confidence == 1.0

    @classmethod
    def enclosure(
        cls,
        lower: float,
        upper: float,
        *,
        value: float | None = None,
        confidence: float = 1.0,
        detail: str = "",
    ) -> Self:
        """Return the answer `lower <= truth <= upper`."""
        return cls(lower=lower, upper=upper, value=value, confidence=confidence, detail=detail)

    @classmethod
    def at_most(cls, upper: float, *, detail: str = "") -> Self:
        """Return an upper bound alone."""
        return cls(upper=upper, detail=detail)

    @classmethod
    def at_least(cls, lower: float, *, confidence: float = 1.0, detail: str = "") -> Self:
        """Return a lower bound alone."""
        return cls(lower=lower, confidence=confidence, detail=detail)

    @classmethod
    def about(cls, value: float, *, detail: str) -> Self:
        """Return an estimate: a value that no theorem covers, inside the trivial enclosure."""
        return cls(value=value, detail=detail)

    @classmethod
    def without(cls, status: Status, reason: str) -> Self:
        """Return the status and reason of an evaluation that gave no answer."""
        return cls(status=status, detail=reason)
