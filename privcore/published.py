"""Published bounds as rows: a formula of the fields of a problem, its condition, its slack and its reference.

A method that only evaluates a formula is one call of `published`; it needs neither a class nor a file of its
own. Its line in `privcore.stored_names` is that of any other method.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.problem import Problem

P = TypeVar("P", bound=Problem)
Formula: TypeAlias = Callable[[P], float | tuple[float, float] | Answer]


def closed_form(problem: Problem) -> Cost:
    """Return the cost of a formula that takes a few operations."""
    return Cost(seconds=1e-4, bytes=1e4)


def published(  # noqa: PLR0913  # a row has one argument for each column
    name: str,
    problems: type[P] | tuple[type[P], ...],
    direction: Direction,
    states: str,
    formula: Formula[P],
    *,
    reference: str,
    unless: Callable[[P], str | None] = lambda problem: None,
    slack: float = 0.0,
    offset: float = 0.0,
    detail: str | Callable[[P], str] = "closed form",
    cost: Callable[[P], Cost] = closed_form,
    **claims: Any,
) -> type[Method[P]]:
    """Return the method that evaluates a published formula.

    If the truth is the least whole number from which a condition holds, both ends are rounded up at last. The
    method belongs to the calling module, under its stored name in camel case, as the registry and pickle
    expect: `MembershipSchwarz = published("membership.schwarz", ...)`.

    Args:
        name: Stored name of the method.
        problems: The problem or problems that it answers.
        direction: Kind of bound; it decides how a number becomes an answer.
        states: Documentation of the method: its first sentence, then its assumptions.
        formula: Value of the bound, or both ends of it, for a problem; or an answer that is already rounded.
        reference: Source of the formula.
        unless: Reason why the formula does not hold for a problem, or None.
        slack: Relative outward move of the value, one of those in `privcore.numerics.rounding`.
        offset: Absolute outward move, in addition.
        detail: How the answer was computed, in a few words.
        cost: Estimated time and memory.
        claims: Further claims of a method if they differ from the defaults, such as `version` or `shares`.

    Example:
        >>> from privcore.registry import find_problem
        >>> kind = find_problem("membership-bits-advantage")
        >>> ExampleBits = published(
        ...     "example.bits", kind, Direction.UPPER, "Guess the release.", lambda p: 1.0 - 0.5**p.bits,
        ...     reference="ours", slack=1e-9,
        ... )
        >>> ExampleBits().answer(kind(bits=1, records=9), 0).upper
        0.5000000005
    """

    def answer(self: Method[P], problem: P, seed: int) -> Answer:
        found = formula(problem)
        if isinstance(found, Answer):
            return found
        low, high = found if isinstance(found, tuple) else (found, found)
        text = detail if isinstance(detail, str) else detail(problem)
        if direction is Direction.ESTIMATE:
            return Answer.about(min(high, problem.largest), detail=text)
        # The first argument of min and max stays if it is NaN, which an answer refuses.
        lower = 0.0 if direction is Direction.UPPER else max(low * (1.0 - slack) - offset, 0.0)
        upper = math.inf if direction is Direction.LOWER else high * (1.0 + slack) + offset
        if problem.whole:
            lower, upper = (float(math.ceil(end)) if math.isfinite(end) else end for end in (lower, upper))
        return Answer.enclosure(lower, min(upper, problem.largest), detail=text)

    said = {
        "__doc__": states,
        "__module__": sys._getframe(1).f_globals["__name__"],
        "name": name,
        "problems": problems if isinstance(problems, tuple) else (problems,),
        "direction": direction,
        "reference": reference,
        "applies": lambda self, problem: unless(problem),
        "cost": lambda self, problem: cost(problem),
        "answer": answer,
    }
    kind = "".join(part.capitalize() for part in name.split("."))
    return cast(type[Method[P]], type(kind, (Method,), said | claims))
