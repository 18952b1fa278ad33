"""The estimate agrees with the certified bracket, and is refused if rounding would dominate it."""

import numpy as np
import pytest

from privcore import Answer, Point, Problem, Status, evaluate, find, methods_for
from privcore.allocation.poisson import choose_grid, discretise
from tests.privcore.draws import problem


def estimate(question: Problem) -> Answer:
    return evaluate(Point(problem=question, method=find("poisson.pld")()))


def bracket(question: Problem) -> Answer:
    return evaluate(
        Point(problem=question, method=find("poisson.certified").from_knobs({"tolerance": 0.003}))
    )


@pytest.mark.parametrize("adjacency", ["remove", "add", "add-remove"])
@pytest.mark.parametrize(
    ("sigma", "steps", "rate"),
    [
        (1.0, 1, 0.3),
        (1.0, 1000, 1e-3),
        (2.0, 500, 0.02),
        (0.5, 300, 1e-3),
        (10.0, 10_000, 1e-2),
        (3.0, 20, 1.0),
    ],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_the_estimate_lies_within_a_percent_of_the_bracket(
    sigma: float, steps: int, rate: float, delta: float, adjacency: str
) -> None:
    fields = {"sigma": sigma, "steps": steps, "sampling_probability": rate, "adjacency": adjacency}
    question = problem("poisson-epsilon", delta=delta, **fields)
    value, proved = estimate(question).value, bracket(question)
    assert value is not None
    assert 0.99 * proved.lower <= value <= 1.01 * proved.upper
    if value > 0.0:
        there = problem("poisson-delta", epsilon=value, **fields)
        assert estimate(there).value == pytest.approx(delta, rel=1e-6)


def test_the_worse_direction_counts_under_add_remove() -> None:
    fields = {"sigma": 1.0, "steps": 100, "sampling_probability": 0.01, "delta": 1e-6}
    remove, add, both = (
        estimate(problem("poisson-epsilon", adjacency=adjacency, **fields)).value
        for adjacency in ("remove", "add", "add-remove")
    )
    assert remove is not None
    assert add is not None
    assert both == max(remove, add)


@pytest.mark.thorough
def test_a_tiny_sampling_probability_gets_a_fine_enough_grid() -> None:
    """The fixed step 1e-4 of the package gives 0.0463 here; the truth is 0.00650."""
    question = problem("poisson-epsilon", sigma=1.0, steps=10**5, sampling_probability=1e-6, delta=1e-9)
    value, proved = estimate(question).value, bracket(question)
    assert value is not None
    assert 0.99 * proved.lower <= value <= 1.01 * proved.upper


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 1e-6), (0.3, 0.01), (20.0, 0.5), (0.5, 1.0), (1.0, 1e-12)])
def test_the_discrete_pair_keeps_both_probabilities(sigma: float, rate: float) -> None:
    step = choose_grid(sigma, rate, 1).step
    _, present, absent = discretise(sigma, rate, step)
    assert float(np.sum(absent)) == pytest.approx(1.0, abs=1e-12)
    assert float(np.sum(present)) == pytest.approx(1.0, abs=1e-12)
    assert np.all(absent >= 0.0)


def test_what_would_not_fit_or_be_lost_in_rounding_is_refused_before_it_starts() -> None:
    method = find("poisson.pld")
    for fields, reason in [
        ({"sigma": 0.01, "steps": 10, "sampling_probability": 0.1}, "overflow"),
        ({"sigma": 1.0, "steps": 10**9, "sampling_probability": 0.1}, "may change delta"),
        ({"sigma": 0.5, "steps": 10**4, "sampling_probability": 1e-9}, "points"),
    ]:
        said = methods_for(problem("poisson-epsilon", delta=1e-8, **fields))[method]
        assert said is not None
        assert reason in said


def test_a_delta_below_the_rounding_of_the_composition_is_a_failure_with_its_reason() -> None:
    answer = estimate(problem("poisson-delta", sigma=2.0, steps=1000, sampling_probability=1e-3, epsilon=2.0))
    assert answer.status is Status.FAILED
    assert answer.detail == "Delta is below the rounding error of the composition, 3.6e-12."


def test_an_epsilon_whose_exponential_overflows_is_no_infinite_answer() -> None:
    question = problem(
        "poisson-epsilon",
        sigma=0.5,
        steps=1000,
        sampling_probability=0.5,
        delta=0.01,
        epochs=2,
        adjacency="add",
    )
    answer = estimate(question)
    assert answer.value is None
    assert answer.detail == "The exponential of epsilon exceeds the range of doubles."


def test_a_delta_beyond_that_of_epsilon_0_asks_for_no_epsilon() -> None:
    asked = problem(
        "poisson-epsilon", sigma=0.3, steps=1, sampling_probability=0.5, delta=1.0 - 1e-16, epochs=2
    )
    assert evaluate(Point(problem=asked, method=find("poisson.pld")())).value == 0.0
