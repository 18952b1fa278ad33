"""An answer with its source: from the store if it has one, else computed now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.ask import LIMIT_SECONDS, Asked, ask, is_tight
from flows.printing import listed
from privcore import Bracket, Direction, Method, Problem
from privcore.registry import TIGHT
from storage import Found
from storage.schema import import_text
from storage.table.shipped import described

COMPUTED = "computed"


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A bracket and its source.

    Attributes:
        problem: The question.
        bracket: Both ends, with the methods that gave them.
        answer: The answer of the store, or of all methods together.
        source: `store`, `store-monotone`, `store-convex` (between two stored deltas), `computed`, or
            `store-computed` if each gave an end; with `shipped` for
            `store` if the stored bracket is from the shipped table.
        told: The source in words.
        found: The stored bracket, if it gave an end of a computed answer.
        stored_ends: The ends that the store gave to a computed answer.
        table: Version of the shipped table, if the stored bracket is from there; else empty.
    """

    problem: Problem
    bracket: Bracket
    answer: Found | Asked
    source: str
    told: str
    found: Found | None = None
    stored_ends: tuple[str, ...] = ()
    table: str = ""

    @property
    def status(self) -> str:
        """`ok`, or the status of the missing answer."""
        return str(self.answer.status) if isinstance(self.answer, Asked) else "ok"

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return self.status == "ok"

    @property
    def detail(self) -> str:
        """For `ok`, empty; else the reason, in one sentence."""
        return self.answer.detail if isinstance(self.answer, Asked) else ""

    @property
    def corners(self) -> dict[str, Any]:
        """The stored problems that gave the ends, by end."""
        found = self.answer if isinstance(self.answer, Found) else self.found
        ends = self.stored_ends if isinstance(self.answer, Asked) else ("lower", "upper")
        corners = {f"{end}_from": None for end in ("lower", "upper")}
        for end in ends if found else ():
            corners[f"{end}_from"] = getattr(found, f"{end}_from")
            if also := getattr(found, f"{end}_also"):
                corners[f"{end}_also"] = also
        return corners


def from_store(problem: Problem, found: Found, table: str = "") -> Sourced:
    """Return the bracket of a store, with the stored problems that gave its ends in words.

    Args:
        problem: The question.
        found: The bracket.
        table: Version of the shipped table, if the bracket is from there; empty for the user's store.
    """
    place, name = (described(table), "shipped") if table else ("store", "store")
    told, source = f"{place}, exactly this problem", name
    fields = problem.as_fields()
    ends = {"lower": found.lower_from, "upper": found.upper_from}
    also = {"lower": found.lower_also, "upper": found.upper_also}
    if not found.exact or any(corner not in (None, fields) for corner in ends.values()):
        corners = [_corner(problem, end, ends[end], also[end]) for end in ends if ends[end]]
        told, source = f"{place}, by monotonicity: {', '.join(corners)}", f"{name}-monotone"
        if any(also.values()):
            told, source = told.replace("monotonicity", "monotonicity and convexity"), f"{name}-convex"
    bracket = Bracket(
        lower=found.lower,
        upper=found.upper,
        lower_by=found.lower_method or "",
        upper_by=found.upper_method or "",
    )
    told += import_text(bracket.tables)
    return Sourced(problem=problem, bracket=bracket, answer=found, source=source, told=told, table=table)


def _corner(
    problem: Problem, end: str, corner: Mapping[str, object] | None, also: Mapping[str, object] | None
) -> str:
    """Return the stored problems that gave an end, by the fields in which they differ from the question."""
    named = [listed(difference(problem, each)) or "exactly this problem" for each in (corner, also) if each]
    return f"{end} end from {' and '.join(named)}"


def computed(
    problem: Problem,
    methods: Sequence[Method] | None = None,
    *,
    limit_seconds: float = LIMIT_SECONDS,
) -> Sourced:
    """Ask methods about a problem, the cheapest first, until the bracket is tight.

    Args:
        problem: The question.
        methods: As in `ask`; if an estimate is among them, all are used.
        limit_seconds: As in `ask`.
    """
    asked = asked_until_tight(problem, methods, limit_seconds=limit_seconds)
    seconds = sum(reply.seconds for reply in asked.replies)
    told = f"computed now, {seconds:.2g} s"
    return Sourced(problem=problem, bracket=asked, answer=asked, source=COMPUTED, told=told)


def asked_until_tight(
    problem: Problem, methods: Sequence[Method] | None = None, *, limit_seconds: float = LIMIT_SECONDS
) -> Asked:
    """Ask methods about a problem as `computed` does; every door computes this bracket of a problem.

    Args:
        problem: The question.
        methods: As in `computed`.
        limit_seconds: As in `ask`.
    """
    estimates = any(method.direction is Direction.ESTIMATE for method in methods or ())
    until = None if estimates else lambda asked: is_tight(asked, TIGHT)  # estimates come last
    return ask(problem, methods, limit_seconds=limit_seconds, until=until)


def difference(problem: Problem, corner: Mapping[str, object]) -> dict[str, object]:
    """Return the fields in which a stored problem differs from the question, as they are stored."""
    fields = problem.as_fields()
    return {name: value for name, value in corner.items() if fields[name] != value}


def proofs(problem: Problem, corner: Mapping[str, object]) -> dict[str, str]:
    """Return the proof that a stored problem bounds the question, for each quantity in which they differ."""
    differ = difference(problem, corner).keys()
    along = {
        axis.name: axis.monotone.proof
        for axis in problem.lookup_axes()
        if axis.monotone and differ & set(axis.factors)
    }
    return along | {name: proof for name, proof in problem.irrelevant.items() if name in differ}
