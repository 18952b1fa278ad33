"""Identities and inequalities between the true values of problems hold between their brackets."""

import itertools
import math
import random
from typing import Any

import pytest

from privcore import Answer, Point, evaluate, find
from tests.privcore.draws import problem

pytestmark = pytest.mark.sampled(8)

CERTIFIED = {
    "allocation": "allocation.certified",
    "poisson": "poisson.certified",
    "unamplified": "unamplified.exact",
}


def ask(topic: str, **fields: Any) -> Answer:
    """Return the bracket of epsilon at a given delta, or of delta at a given epsilon."""
    asked = "epsilon" if "delta" in fields else "delta"
    answer = evaluate(Point(problem=problem(f"{topic}-{asked}", **fields), method=find(CERTIFIED[topic])()))
    assert answer.rigorous, answer
    return answer


def intersect(one: Answer, other: Answer) -> bool:
    return one.lower <= other.upper and other.lower <= one.upper


def thresholds(seed: int, count: int) -> list[dict[str, float]]:
    """Return random epsilons and deltas, one of them per draw, in the usual ranges."""
    rng = random.Random(seed)
    return [
        {"epsilon": rng.uniform(-3.0, 3.0)} if i % 2 else {"delta": 10.0 ** rng.uniform(-12.0, -0.5)}
        for i in range(count)
    ]


@pytest.mark.parametrize("adjacency", ["remove", "add", "add-remove"])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 300.0])
def test_one_step_or_all_steps_or_certain_sampling_is_no_amplification(sigma: float, adjacency: str) -> None:
    for at in thresholds(1, 6):
        same: dict[str, Any] = {"sigma": sigma, "adjacency": adjacency} | at
        gaussian = ask("unamplified", **same)
        assert intersect(ask("allocation", steps=1, **same), gaussian), at
        assert intersect(ask("poisson", steps=1, sampling_probability=1.0, **same), gaussian), at
        composed = ask("unamplified", steps=6, participations=6, epochs=2, **same)
        assert intersect(ask("allocation", steps=6, participations=6, epochs=2, **same), composed), at
        assert intersect(ask("poisson", steps=6, sampling_probability=1.0, epochs=2, **same), composed), at


@pytest.mark.parametrize(("sigma", "steps"), [(0.5, 100), (1.0, 1000), (3.0, 7), (10.0, 10**6)])
def test_sampling_amplifies(sigma: float, steps: int) -> None:
    for at in thresholds(2, 6):
        gaussian = ask("unamplified", sigma=sigma, **at)
        assert ask("allocation", sigma=sigma, steps=steps, **at).lower <= gaussian.upper, at
        rate = {"sampling_probability": 1.0 / steps}
        assert ask("poisson", sigma=sigma, steps=1, **rate, **at).lower <= gaussian.upper, at


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_the_two_directions_are_reflections_of_each_other(sigma: float) -> None:
    """delta_remove(eps) = 1 - e^eps + e^eps delta_add(-eps), for every pair."""
    questions: list[tuple[str, dict[str, float]]] = [
        ("allocation", {"steps": 100}),
        ("allocation", {"steps": 12, "participations": 12}),
        ("poisson", {"steps": 50, "sampling_probability": 0.02}),
        ("unamplified", {}),
    ]
    for (topic, fields), epsilon in itertools.product(questions, (-1.0, -0.1, 0.2, 1.5)):
        remove = ask(topic, sigma=sigma, epsilon=epsilon, adjacency="remove", **fields)
        add = ask(topic, sigma=sigma, epsilon=-epsilon, adjacency="add", **fields)
        low = -math.expm1(epsilon) + math.exp(epsilon) * add.lower
        high = -math.expm1(epsilon) + math.exp(epsilon) * add.upper
        assert remove.lower <= high + 1e-15, (topic, epsilon)
        assert low - 1e-15 <= remove.upper, (topic, epsilon)


@pytest.mark.parametrize("topic", CERTIFIED)
def test_add_remove_is_the_worse_of_the_two(topic: str) -> None:
    rate = {"sampling_probability": 0.03} if topic == "poisson" else {"participations": 3}
    fields: dict[str, Any] = {"steps": 100} | rate
    for at in thresholds(3, 6):
        remove, add, both = (
            ask(topic, sigma=1.0, adjacency=adjacency, **fields, **at)
            for adjacency in ("remove", "add", "add-remove")
        )
        assert both.lower <= max(remove.upper, add.upper), at
        assert both.upper >= max(remove.lower, add.lower), at


def test_the_profile_and_its_inverse_agree() -> None:
    """At the upper end of epsilon the profile is at most delta, at the lower end at least."""
    questions: list[tuple[str, dict[str, float]]] = [
        ("allocation", {"sigma": 1.0, "steps": 1000}),
        ("allocation", {"sigma": 0.5, "steps": 64, "epochs": 3}),
        ("poisson", {"sigma": 0.8, "steps": 200, "sampling_probability": 0.01}),
        ("unamplified", {"sigma": 2.0}),
    ]
    for (topic, fields), delta in itertools.product(questions, (1e-3, 1e-8)):
        epsilon = ask(topic, delta=delta, **fields)
        assert ask(topic, epsilon=epsilon.upper, **fields).lower <= delta, (topic, delta)
        assert ask(topic, epsilon=epsilon.lower, **fields).upper >= delta, (topic, delta)
