"""An answer with its source: from the store where that serves, else computed now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.ask import LIMIT_SECONDS, Asked, ask, is_tight
from flows.printing import listed
from privcore import Method, Problem
from storage import Found

COMPUTED = "computed"
TIGHT = 0.01
"""Relative width of a bracket after which no more methods are asked."""


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A bracket, who gave its ends, and where it is from.

    Attributes:
        problem: The question.
        bracket: What the store said, or what the methods said together.
        lower_by: Name of the method that gave the lower end; empty where none did.
        upper_by: Name of the method that gave the upper end; empty where none did.
        source: `store`, `store-monotone` or `computed`.
        told: The source in words.
    """

    problem: Problem
    bracket: Found | Asked
    lower_by: str
    upper_by: str
    source: str
    told: str

    @property
    def lower(self) -> float:
        """No truth lies below."""
        return self.bracket.lower

    @property
    def upper(self) -> float:
        """No truth lies above."""
        return self.bracket.upper

    @property
    def confidence(self) -> float:
        """Probability of the bracket; what is stored as a bracket is proved."""
        return self.bracket.confidence if isinstance(self.bracket, Asked) else 1.0

    @property
    def status(self) -> str:
        """`ok`, or why there is no answer."""
        return str(self.bracket.status) if isinstance(self.bracket, Asked) else "ok"

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return self.status == "ok"

    @property
    def detail(self) -> str:
        """For `ok`, empty; else the reason, in one sentence."""
        return self.bracket.detail if isinstance(self.bracket, Asked) else ""

    @property
    def corners(self) -> dict[str, Any]:
        """The stored problems that gave the ends, by end."""
        found = self.bracket if isinstance(self.bracket, Found) else None
        return {
            "lower_from": found.lower_from if found else None,
            "upper_from": found.upper_from if found else None,
        }


def from_store(problem: Problem, found: Found) -> Sourced:
    """Return what a store found out about a problem, with the stored problems told that gave its ends."""
    told, source = "store, this very problem", "store"
    fields = problem.as_fields()
    ends = {"lower": found.lower_from, "upper": found.upper_from}
    if not found.exact or any(corner not in (None, fields) for corner in ends.values()):
        corners = [
            f"{end} end from {listed(difference(problem, corner)) or 'this very problem'}"
            for end, corner in ends.items()
            if corner
        ]
        told, source = f"store, by monotonicity: {', '.join(corners)}", "store-monotone"
    return Sourced(
        problem=problem,
        bracket=found,
        lower_by=found.lower_method or "",
        upper_by=found.upper_method or "",
        source=source,
        told=told,
    )


def computed(
    problem: Problem,
    methods: Sequence[Method] | None = None,
    *,
    width: float = TIGHT,
    limit_seconds: float = LIMIT_SECONDS,
) -> Sourced:
    """Return what methods say about a problem, the cheapest first, until the bracket is tight.

    Args:
        problem: The question.
        methods: As in `ask`.
        width: Relative width of a bracket that is tight.
        limit_seconds: As in `ask`.
    """
    asked = ask(problem, methods, limit_seconds=limit_seconds, until=lambda asked: is_tight(asked, width))
    seconds = sum(reply.seconds for reply in asked.replies)
    return Sourced(
        problem=problem,
        bracket=asked,
        lower_by=asked.lower_by,
        upper_by=asked.upper_by,
        source=COMPUTED,
        told=f"computed now, {seconds:.2g} s",
    )


def difference(problem: Problem, corner: Mapping[str, object]) -> dict[str, object]:
    """Return the fields in which a stored problem differs from the question, as they are stored."""
    fields = problem.as_fields()
    return {name: value for name, value in corner.items() if fields[name] != value}
