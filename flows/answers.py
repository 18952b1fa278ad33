"""How answers are told: ends rounded outwards, with who proved them and where they come from."""

from collections.abc import Mapping
from typing import Any, Protocol

from flows.ask import Asked
from flows.printing import as_json, exactly, listed, rounded_down, rounded_up, show
from privcore import Problem
from storage import Found


def print_found(problem: Problem, found: Found, json: bool) -> None:
    """Print a bracket from a store, with the stored problems that gave its ends."""
    exact = found.exact and all(
        corner in (None, problem.as_fields()) for corner in (found.lower_from, found.upper_from)
    )
    told = "store, this very problem"
    if not exact:
        ends = [("lower", found.lower_from), ("upper", found.upper_from)]
        corners = [f"{end} end from {_difference(problem, corner)}" for end, corner in ends if corner]
        told = f"store, by monotonicity: {', '.join(corners)}"
    print_bracket(
        problem,
        found,
        by=(found.lower_method or "", found.upper_method or ""),
        source="store" if exact else "store-monotone",
        told=told,
        json=json,
        corners={"lower_from": found.lower_from, "upper_from": found.upper_from},
    )


def _difference(problem: Problem, corner: Mapping[str, object]) -> str:
    """Return the fields in which a stored problem differs from the question."""
    fields = problem.as_fields()
    return listed({k: v for k, v in corner.items() if fields[k] != v}) or "this very problem"


class Bracket(Protocol):
    """Anything with two ends."""

    @property
    def lower(self) -> float:
        """Lower end."""

    @property
    def upper(self) -> float:
        """Upper end."""


def print_bracket(
    problem: Problem,
    bracket: Bracket,
    *,
    by: tuple[str, str],
    source: str,
    told: str,
    json: bool,
    corners: Mapping[str, object] | None = None,
) -> None:
    """Print an answer: the bracket, who gave its ends, under which adjacency, and where it is from.

    Args:
        problem: The question.
        bracket: Anything with the two ends.
        by: Names of the methods that gave the lower and the upper end; empty where none did.
        source: `store`, `store-monotone` or `computed`.
        told: The source in words.
        json: Whether to print JSON.
        corners: More keys for JSON: the stored problems that gave the ends.
    """
    fields = problem.as_fields()
    content: dict[str, Any] = {
        "problem": problem.name,
        "fields": fields,
        "lower": bracket.lower,
        "upper": bracket.upper,
        "confidence": getattr(bracket, "confidence", 1.0),
        "status": getattr(bracket, "status", "ok"),
        "lower_method": by[0] or None,
        "upper_method": by[1] or None,
        "method": methods_text(*by),
        "source": source,
        "lower_from": None,
        "upper_from": None,
    }
    if "adjacency" in fields:
        content["adjacency"] = fields["adjacency"]
    if json:
        print(as_json(content | dict(corners or {})))
        return
    if content["status"] != "ok":
        return
    print(bracket_text(problem, bracket))
    rest = {name: value for name, value in fields.items() if name != "adjacency"}
    print(f"problem    {problem.name} {listed(rest)}")
    if "adjacency" in fields:
        print(f"adjacency  {fields['adjacency']}")
    print(f"method     {methods_text(*by)}")
    print(f"source     {told}")


def bracket_text(problem: Problem, bracket: Bracket) -> str:
    """Return `epsilon in [0.06, 0.07]`, both ends rounded outwards, with a confidence below 1."""
    confidence = getattr(bracket, "confidence", 1.0)
    ends = f"{problem.asks} in [{rounded_down(bracket.lower)}, {rounded_up(bracket.upper)}]"
    return ends if confidence == 1.0 else f"{ends} with confidence {sure(confidence)}"


def sure(confidence: float) -> str:
    """Return a confidence as it was asked for, or rounded down where it has many digits.

    Example:
        >>> sure(0.95), sure(1.0 - 0.1 - 0.2 / 3.0)
        ('0.95', '0.833333')
    """
    text = exactly(confidence)
    return text if len(text) <= 8 else rounded_down(confidence)


def methods_text(lower_by: str, upper_by: str) -> str:
    """Return who gave the ends, once where it is the same method."""
    if lower_by == upper_by:
        return upper_by or "none"
    ends = {"lower end": lower_by, "upper end": upper_by}
    return ", ".join(f"{name} ({end})" for end, name in ends.items() if name)


def show_replies(asked: Asked) -> None:
    """Print a table with what each method said."""
    rows = []
    for reply in asked.replies:
        answer = reply.answer
        ends = ["", "", "", ""]
        if answer.ok:
            value = "" if answer.value is None else f"{answer.value:.6g}"
            ends = [rounded_down(answer.lower), rounded_up(answer.upper), value, exactly(answer.confidence)]
        rows.append([reply.method.name, *ends, answer.status.value, f"{reply.seconds:.2g}", answer.detail])
    names = ["method", "lower", "upper", "estimate", "confidence", "status", "seconds", "detail"]
    wanted = [k for k, name in enumerate(names) if name not in {"estimate"} or any(row[k] for row in rows)]
    show([names[k] for k in wanted], [[row[k] for k in wanted] for row in rows])
