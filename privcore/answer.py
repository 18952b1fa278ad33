"""Answers of methods (an enclosure, an estimate, or a status with its reason) and their intersection."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Status(StrEnum):
    """Outcome of an evaluation; if it is not `ok`, the detail of the answer gives the reason."""

    OK = "ok"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"


FAILURES = frozenset({Status.FAILED, Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.CRASHED})
"""Statuses that may change if the point is evaluated again; `not_applicable` never does."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Both ends of an answer; every class with both ends extends this one.

    Attributes:
        lower: Lower end, rounded down; 0 if nothing better is known.
        upper: Upper end, rounded up; infinity, or the largest possible truth, if nothing better is known.
    """

    lower: float = 0.0
    upper: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Answer(Interval):
    """An enclosure: `P(lower <= truth <= upper) >= confidence`, or a status other than `ok`.

    Attributes:
        value: Best single value: an estimate without proof, or None.
        confidence: Probability of the enclosure in (0, 1]; 1 is a proof.
        status: `ok`, or the kind of failure.
        detail: For `ok`, how the answer was computed; otherwise the reason, in one sentence.
    """

    value: float | None = None
    confidence: float = 1.0
    status: Status = Status.OK
    detail: str = ""

    def __post_init__(self) -> None:
        """Reject NaN, crossed ends and a confidence outside (0, 1]."""
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
        """Return an answer that is only an upper bound."""
        return cls(upper=upper, detail=detail)

    @classmethod
    def at_least(cls, lower: float, *, confidence: float = 1.0, detail: str = "") -> Self:
        """Return an answer that is only a lower bound."""
        return cls(lower=lower, confidence=confidence, detail=detail)

    @classmethod
    def about(cls, value: float, *, detail: str) -> Self:
        """Return an estimate: a value without proof, with the trivial enclosure."""
        return cls(value=value, detail=detail)

    @classmethod
    def without(cls, status: Status, reason: str) -> Self:
        """Return the answer of an evaluation that failed: its status and the reason."""
        return cls(status=status, detail=reason)

    def said_by(self, name: str) -> "Bracket":
        """Return the enclosure as a bracket, with this method name at both ends."""
        return Bracket(
            lower=self.lower, upper=self.upper, confidence=self.confidence, lower_by=name, upper_by=name
        )


class Attribution(str):
    """Name of the method that gave an end from rows of published tables, which nothing here recomputed.

    It is the name in every other respect, so layers that pass an end on, or intersect it, pass its tables on.

    Attributes:
        tables: Versions of the tables, each once.
    """

    __slots__ = ("tables",)
    tables: tuple[str, ...]


def attributed(name: str, *tables: str | None) -> str:
    """Return the name of a method, with the published tables of its rows; none for None or "".

    Example:
        >>> ends = Bracket(lower=1.0, lower_by=attributed("renyi", "2026.11.23-c8364101"), upper_by="pld")
        >>> ends.lower_by, ends.tables
        ('renyi', ('2026.11.23-c8364101',))
    """
    found = Attribution(name)
    found.tables = tuple(dict.fromkeys(filter(None, tables)))
    return found if found.tables else name


def tables_of(*ends: "str | Bracket | None") -> tuple[str, ...]:
    """Return the published tables of the rows behind some ends, each once.

    Args:
        ends: Brackets, or the names of the methods that gave ends.
    """
    return tuple(dict.fromkeys(table for end in ends for table in getattr(end, "tables", ())))


@dataclass(frozen=True, kw_only=True)
class Bracket(Interval):
    """Joint lower and upper bound, `P(lower <= truth <= upper) >= confidence`, with the method of each.

    Attributes:
        confidence: Probability that both ends hold; 1 is a proof.
        lower_by: Name of the method that gave the lower end; empty if that end is trivial.
        upper_by: Name of the method that gave the upper end; empty if that end is trivial.
    """

    confidence: float = 1.0
    lower_by: str = ""
    upper_by: str = ""

    @property
    def tables(self) -> tuple[str, ...]:
        """Published tables with rows that gave the ends, and that nothing here recomputed."""
        return tables_of(self.lower_by, self.upper_by)

    @property
    def crossed(self) -> bool:
        """Whether the lower end exceeds the upper end, so that one of the methods is wrong."""
        return self.lower > self.upper


def intersect(brackets: Iterable[Bracket], largest: float = math.inf) -> Bracket:
    r"""Return the intersection of brackets of the same truth.

    Proofs intersect without loss of confidence. A bracket that holds with probability at least $c < 1$ fails
    with probability at most $1 - c$, so by the union bound the intersection holds with probability at least
    $$1 - \sum_i (1 - c_i).$$
    The view `best` of a store applies the same rule in SQL, to proofs only (`storage.sql.views`).

    Args:
        brackets: At least one bracket.
        largest: Largest possible truth; an upper end equal to it is trivial.

    Returns:
        The largest lower and the smallest upper end, each attributed to the first method that gave it. The
        bracket is `crossed` if the ends exclude each other; a confidence of 0 or less claims nothing.

    Example:
        >>> likely = Answer.at_least(1.0, confidence=0.95).said_by("audit")
        >>> intersect([likely, Answer.at_most(2.0).said_by("theorem")])
        Bracket(lower=1.0, upper=2.0, confidence=0.95, lower_by='audit', upper_by='theorem')
    """
    several = tuple(brackets)
    low = max(several, key=lambda bracket: bracket.lower)
    high = min(several, key=lambda bracket: bracket.upper)
    lower, upper = low.lower, min(high.upper, largest)
    doubtful = [bracket.confidence for bracket in several if bracket.confidence < 1.0]
    confidence = 1.0 - math.fsum(1.0 - each for each in doubtful)
    return Bracket(
        lower=lower,
        upper=upper,
        confidence=doubtful[0] if len(doubtful) == 1 else confidence,  # 1 - (1 - c) may differ from c
        lower_by=low.lower_by if lower > 0.0 else "",
        upper_by=high.upper_by if upper < largest or lower > upper else "",
    )
