"""Combined bound: the least of the published bounds in each direction, and above the truth."""

import itertools
import math

import pytest

from privcore import Answer, Method, Point, Problem, evaluate, find, methods_for
from privcore.numerics.gaussian import gaussian_epsilon_bounds
from tests.privcore.draws import problem

pytestmark = pytest.mark.sampled(4)

PARTS = ("allocation.analytic", "allocation.decomposition", "allocation.direct", "allocation.recursive")


def answer(name: str, question: Problem, **knobs: float) -> Answer:
    method: Method = find(name).from_knobs(knobs)
    return evaluate(Point(problem=question, method=method))


def unamplified(question: Problem) -> float:
    kind = question.name.replace("allocation", "unamplified")
    return answer("unamplified.exact", problem(kind, **question.as_fields())).upper


SETTINGS = [
    {"sigma": 1.0, "steps": 1000},
    {"sigma": 0.3, "steps": 100},
    {"sigma": 2.0, "steps": 100},
    {"sigma": 2.0, "steps": 500, "participations": 5, "epochs": 2},
    {"sigma": 1.0, "steps": 1},
]


@pytest.mark.thorough
@pytest.mark.parametrize("fields", SETTINGS)
@pytest.mark.parametrize(
    ("kind", "threshold"), [("allocation-epsilon", {"delta": 1e-6}), ("allocation-delta", {"epsilon": 0.5})]
)
def test_it_is_the_least_of_its_parts_in_every_direction(
    fields: dict[str, float], kind: str, threshold: dict[str, float]
) -> None:
    least = {}
    for direction in ("remove", "add"):
        question = problem(kind, adjacency=direction, **fields, **threshold)
        apply = [name for name in PARTS if methods_for(question)[find(name)] is None]
        knobs: dict[str, dict[str, float]] = {"allocation.direct": {}}
        uppers = [answer(name, question, **knobs.get(name, {"tolerance": 0.1})).upper for name in apply]
        least[direction] = min(unamplified(question), *uppers)
        assert answer("allocation.combined", question, tolerance=0.1).upper == least[direction]
    both = answer("allocation.combined", problem(kind, **fields, **threshold), tolerance=0.1)
    assert both.upper == max(least.values())
    assert both.detail.count("remove: ") == both.detail.count("add: ") == 1


@pytest.mark.parametrize(
    ("fields", "delta", "winner", "low", "high"),
    [
        ({"sigma": 1.0, "steps": 1000}, 1e-8, "decomposition", 0.4729, 0.478),
        ({"sigma": 2.0, "steps": 1000}, 1e-10, "recursive", 0.128, 0.1351),
        ({"sigma": 0.3, "steps": 100}, 1e-4, "direct", 14.32, 14.34),
        ({"sigma": 0.2, "steps": 1000}, 1e-7, "direct", 32.81, 32.83),
    ],
)
def test_the_winner_changes_with_the_regime(
    fields: dict[str, float], delta: float, winner: str, low: float, high: float
) -> None:
    """Values of the authors' program, rounded outward; sharper splits reduce the recursive bound."""
    found = answer("allocation.combined", problem("allocation-epsilon", delta=delta, **fields))
    assert found.detail.startswith(f"remove: allocation.{winner}")
    assert low < found.upper < high


def test_one_step_is_the_gaussian_mechanism() -> None:
    found = answer("allocation.combined", problem("allocation-epsilon", sigma=1.0, steps=1, delta=1e-5))
    exact = gaussian_epsilon_bounds(1.0, 1e-5)[1]
    assert found.upper == pytest.approx(exact, rel=1e-9)


@pytest.mark.thorough
def test_the_truth_lies_below() -> None:
    """The lower ends of the certified enclosures are proved by other means."""
    settings = itertools.product((0.3, 2.0), ((5, 1, 1), (300, 1, 1), (60, 3, 2)), ("remove", "add"))
    for sigma, (steps, participations, epochs), adjacency in settings:
        fields = {
            "sigma": sigma,
            "steps": steps,
            "participations": participations,
            "epochs": epochs,
            "adjacency": adjacency,
        }
        for question in (
            problem("allocation-epsilon", delta=1e-5, **fields),
            problem("allocation-delta", epsilon=0.1, **fields),
            problem("allocation-delta", epsilon=-0.1, **fields),
        ):
            truth = answer("allocation.certified", question, tolerance=0.3)
            upper = answer("allocation.combined", question, tolerance=0.3).upper
            assert truth.lower <= upper, question
            assert math.isfinite(upper)
