"""At the ends of all domains, every method soon gives an answer without NaN, or a reason."""

import itertools
import math
import re
from typing import Any

import pytest

from privcore import METHODS, PROBLEMS, Direction, DomainError, Method, Point, Problem, Status, evaluate
from privcore.constraint import AtMost

QUICK, LIMIT_SECONDS = 0.5, 20.0
"""Declared seconds up to which a point is evaluated; a sweep declines more expensive points in advance."""

ENDS: dict[str, list[Any]] = {
    "sigma": [0.05, 100.0],
    "scale": [0.05, 100.0],
    "local_epsilon": [0.01, 20.0],
    "steps": [1, 10**8],
    "sampling_probability": [1e-8, 1.0],
    "delta": [1e-300, 0.5],
    "epsilon": [-100.0, 0.0, 100.0, 1e4],
}


def extremes(kind: type[Problem]) -> list[Problem]:
    """Return the problems of this kind at all combinations of ends, for one step of t and for all."""
    names = [name for name in kind.parameters if name in ENDS]
    limits = [each for each in kind.constraints if isinstance(each, AtMost)]
    problems = []
    for values in itertools.product(*(ENDS[name] for name in names)):
        fields = dict(zip(names, values, strict=True))
        for everything in (False, True):
            if everything:
                fields |= {less.field: fields[less.bound] for less in limits if less.bound in fields}
            for adjacency in ("add-remove", "remove") if "adjacency" in kind.parameters else (None,):
                given = fields | ({"adjacency": adjacency} if adjacency else {})
                try:
                    problems.append(kind.from_fields(given))
                except (DomainError, TypeError):
                    continue
    return list(dict.fromkeys(problems))


CASES = [(method, kind) for method in METHODS for kind in method.problems if kind in PROBLEMS]


each_case = pytest.mark.parametrize(("method", "kind"), CASES, ids=lambda x: x.name)


@each_case
def test_quick_extremes_have_an_answer_or_a_reason(method: type[Method], kind: type[Problem]) -> None:
    check([problem for problem in extremes(kind) if method().cost(problem).seconds <= QUICK], method)


@pytest.mark.soak
@each_case
def test_all_extremes_have_an_answer_or_a_reason(method: type[Method], kind: type[Problem]) -> None:
    check([problem for problem in extremes(kind) if method().cost(problem).seconds <= LIMIT_SECONDS], method)


def check(problems: list[Problem], method: type[Method]) -> None:
    for problem in problems:
        answer = evaluate(Point(problem=problem, method=method()))
        assert answer.status in (Status.OK, Status.NOT_APPLICABLE, Status.FAILED), (problem, answer)
        assert answer.ok or re.fullmatch(r"[A-Z][^\n]{10,200}\.", answer.detail), (problem, answer)
        assert not re.match(r"\w+(Error|Warning|Exception)\b", answer.detail), (problem, answer)
        assert not math.isnan(answer.lower + answer.upper), (problem, answer)
        assert answer.value is None or not math.isnan(answer.value), (problem, answer)


CERTIFIED = [
    method
    for method in METHODS
    if method.direction is Direction.ENCLOSURE and "confidence" not in method.knobs
]
DELTAS = dict.fromkeys(kind for method in CERTIFIED for kind in method.problems if kind.asks == "delta")


@pytest.mark.soak
@pytest.mark.parametrize("kind", DELTAS, ids=lambda kind: kind.name)
def test_an_enclosure_of_a_delta_at_an_extreme_is_not_empty(kind: type[Problem]) -> None:
    for problem in extremes(kind):
        for method in CERTIFIED:
            if kind in method.problems:
                answer = evaluate(Point(problem=problem, method=method()))
                assert answer.rigorous, (problem, answer)
                assert answer.lower <= answer.upper <= 1.0, (problem, answer)
