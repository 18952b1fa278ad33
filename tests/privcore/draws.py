"""Random problems from the declared domains of their parameters, independent of topics and methods."""

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

from privcore import Answer, DomainError, Point, Problem, evaluate, find, find_problem
from privcore.parameter import SMALLEST_NORMAL, Choice, Integer, Parameter, Real, Text, Value

NOT_NUMBERS: tuple[Any, ...] = ("1", "", "nan", None, True, False, [1.0], {}, 1j, b"1", math)
NOT_FINITE: tuple[float, ...] = (math.nan, math.inf, -math.inf, -0.0, 1e-320, -1e-320)


def problem(name: str, **fields: Any) -> Problem:
    """Return the problem of that name with these fields."""
    return find_problem(name).from_fields(fields)


def answer(name: str, method: str, knobs: Mapping[str, Any] | None = None, /, **fields: Any) -> Answer:
    """Return the answer of a method to the problem of that name."""
    return evaluate(Point(problem=problem(name, **fields), method=find(method).from_knobs(knobs or {})))


def answered(name: str, method: str, /, **fields: Any) -> Answer:
    """Return the answer, and check that it has bounds or an estimate."""
    found = answer(name, method, **fields)
    assert found.ok, found
    return found


def ends(parameter: Real | Integer) -> tuple[Value, Value]:
    """Return the smallest and the largest value that the parameter takes."""
    if isinstance(parameter, Integer):
        return parameter.lower, parameter.upper
    low = math.nextafter(parameter.lower, math.inf) if parameter.lower_open else parameter.lower
    high = math.nextafter(parameter.upper, -math.inf) if parameter.upper_open else parameter.upper
    return max(low, SMALLEST_NORMAL) if 0.0 < low < SMALLEST_NORMAL else low, high


def outside(parameter: Parameter) -> Iterator[Any]:
    """Yield values that the parameter must reject."""
    if isinstance(parameter, Text):
        yield from ("", "nan", "inf", ",", "unknown text", "beta(1)", None, True, ["0.5"], {}, b"0.5", math)
        return
    yield from (x for x in NOT_FINITE if not (isinstance(parameter, Real) and parameter.infinite and x > 1.0))
    yield 1e308
    if isinstance(parameter, Choice):
        yield from (1, "", "Remove", " remove", None, True, ["remove"])
        return
    yield from NOT_NUMBERS
    assert isinstance(parameter, Real | Integer)
    low, high = ends(parameter)
    assert not isinstance(low, str)
    assert not isinstance(high, str)
    if isinstance(parameter, Integer):
        yield from (low - 1, high + 1, low + 0.5, 10**400)
    else:
        yield from (math.nextafter(low, -math.inf), math.nextafter(high, math.inf), 10**400)
        if parameter.lower_open:
            yield parameter.lower
        if parameter.upper_open:
            yield parameter.upper


def draw_value(parameter: Parameter, rng: random.Random, *, wild: bool) -> Value:
    """Return a typical value, or a wild value: an end of the domain, or log-uniform between the ends."""
    if not wild or isinstance(parameter, Choice | Text):
        return rng.choice(list(parameter.typical_values()))
    assert isinstance(parameter, Real | Integer)
    low, high = (float(end) for end in ends(parameter))
    if rng.random() < 0.2:
        return rng.choice((low, high))
    if low > 0.0:
        x = math.exp(rng.uniform(math.log(low), math.log(high)))
    else:
        x = rng.choice((-1.0, 1.0)) * math.exp(rng.uniform(math.log(1e-12), math.log(max(-low, high))))
    x = min(max(x, low), high)
    return round(x) if isinstance(parameter, Integer) else x


def draw_problem(
    kind: type[Problem], rng: random.Random, *, wild: float = 0.0, fixed: Mapping[str, Value] | None = None
) -> Problem:
    """Return a valid problem; every field is wild with probability `wild`, and typical otherwise.

    Args:
        kind: Class of the problem.
        rng: Source of randomness.
        wild: Probability that a field is drawn from its whole domain.
        fixed: Fields with given values.
    """
    while True:
        fields = {n: draw_value(p, rng, wild=rng.random() < wild) for n, p in kind.parameters.items()}
        try:
            return kind.from_fields(fields | dict(fixed or {}))
        except DomainError:  # the fields contradict one another
            continue
