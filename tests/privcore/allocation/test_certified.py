"""Brackets of random allocation with several participations, other noise and sampled users."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from privcore import Answer, Point, evaluate, find
from tests.privcore.draws import problem


def ask(kind: str, tolerance: float = 0.01, **fields: Any) -> Answer:
    asked = "epsilon" if "delta" in fields else "delta"
    method = find("allocation.certified").from_knobs({"tolerance": tolerance})
    answer = evaluate(Point(problem=problem(f"{kind}-{asked}", **fields), method=method))
    assert answer.rigorous, answer
    return answer


def intersect(one: Answer, other: Answer) -> bool:
    return one.lower <= other.upper and other.lower <= one.upper


@pytest.mark.parametrize(
    ("sigma", "steps", "participations", "delta", "widest"),
    [
        (0.8, 10_000, 10, 1e-8, 1.01),
        (1.0, 10**6, 10, 1e-8, 1.01),
        (5.0, 1000, 100, 1e-5, 1.01),
        (0.7, 10**6, 100, 1e-5, 1.015),
        (0.5, 10**6, 64, 1e-5, 1.015),
        (1.0, 1000, 10, 1e-8, 1.02),
        (1.0, 1003, 10, 1e-8, 1.02),
        (2.0, 100, 2, 1e-6, 1.01),
        (5.0, 10_000, 100, 1e-10, 1.01),
        (0.5, 100, 10, 1e-6, 1.13),
    ],
)
def test_several_participations_are_bracketed_closely(
    sigma: float, steps: int, participations: int, delta: float, widest: float
) -> None:
    answer = ask("allocation", sigma=sigma, steps=steps, participations=participations, delta=delta)
    assert answer.lower < answer.upper <= widest * answer.lower


@pytest.mark.parametrize("adjacency", ["remove", "add", "add-remove"])
def test_more_participations_never_reveal_less(adjacency: str) -> None:
    answers = [
        ask("allocation", sigma=1.5, steps=60, participations=k, delta=1e-6, adjacency=adjacency)
        for k in (1, 2, 3, 7, 20, 31, 59, 60)
    ]
    for fewer, more in itertools.pairwise(answers):
        assert fewer.lower <= more.upper


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 18.0])
def test_a_bracket_that_misses_its_tolerance_says_so(epsilon: float) -> None:
    answer = ask("allocation", sigma=1.0, steps=10, epsilon=epsilon)
    wide = answer.upper > 1.01 * answer.lower
    assert wide == (epsilon > 1.0)  # deltas below 1e-30 vary by more than their logarithms
    assert answer.detail.endswith("; wider than the tolerance of 0.01") == wide


@pytest.mark.parametrize("epochs", [10**3, 10**5])
def test_a_hundred_thousand_epochs_have_both_ends(epochs: int) -> None:
    answer = ask("allocation", sigma=1.0, steps=10_000, epochs=epochs, delta=1e-8)
    assert answer.lower < answer.upper <= 1.02 * answer.lower


def test_ten_thousand_participations_have_both_ends() -> None:
    answer = ask("allocation", sigma=3.0, steps=10**8, participations=10**4, epochs=10, delta=1e-8)
    assert 0.0 < answer.lower < answer.upper <= 1.2 * answer.lower


@pytest.mark.parametrize("kind", ["allocation", "laplace-allocation", "response-allocation"])
@pytest.mark.parametrize("delta", [1e-12, 1e-30, 1e-70])
@pytest.mark.parametrize("steps", [10, 1000, 10**5, 10**7])
def test_small_deltas_after_many_steps_are_still_bracketed(kind: str, delta: float, steps: int) -> None:
    noise = {"allocation": {"sigma": 1.0}, "laplace-allocation": {"scale": 1.0}}.get(
        kind, {"local_epsilon": 0.5}
    )
    answer = ask(kind, tolerance=0.05, steps=steps, delta=delta, **noise)
    assert 0.0 < answer.lower <= answer.upper <= 1.1 * answer.lower


@pytest.mark.parametrize("seed", range(8))
def test_users_who_are_always_sampled_are_plain_allocation(seed: int) -> None:
    rng = random.Random(seed)
    fields: dict[str, Any] = {
        "sigma": rng.choice([0.5, 1.0, 4.0]),
        "steps": rng.choice([3, 50, 1000]),
        "participations": rng.choice([1, 3]),
        "epochs": rng.choice([1, 4]),
        "adjacency": rng.choice(["remove", "add", "add-remove"]),
        "delta": 10.0 ** rng.uniform(-10, -2),
    }
    plain = ask("allocation", **fields)
    assert intersect(ask("sampled-allocation", sampling_probability=1.0, **fields), plain)
    assert ask("sampled-allocation", sampling_probability=0.1, **fields).lower <= plain.upper


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_sampling_users_before_one_step_is_poisson_sampling(adjacency: str) -> None:
    fields: dict[str, Any] = {"sigma": 0.8, "sampling_probability": 0.05, "adjacency": adjacency}
    poisson = evaluate(
        Point(
            problem=problem("poisson-epsilon", steps=12, delta=1e-6, **fields),
            method=find("poisson.certified")(),
        )
    )
    assert intersect(ask("sampled-allocation", steps=1, epochs=12, delta=1e-6, **fields), poisson)


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize(("local_epsilon", "steps"), [(0.5, 4), (1.0, 100), (3.0, 1000), (8.0, 50)])
def test_allocated_responses_agree_with_the_binomial_law(
    local_epsilon: float, steps: int, adjacency: str
) -> None:
    low, high = math.exp(-local_epsilon), math.exp(local_epsilon)
    count = np.arange(steps + 1)
    ratio = (count * high + (steps - count) * low) / steps
    mass = binom.pmf(count, steps, low / (1.0 + low))
    for epsilon in (-0.4, 0.0, 0.1, 0.5, 2.0):
        kappa = math.exp(epsilon)
        excess = ratio - kappa if adjacency == "remove" else 1.0 - kappa * ratio
        truth = float(mass @ np.maximum(excess, 0.0))
        answer = ask(
            "response-allocation",
            local_epsilon=local_epsilon,
            steps=steps,
            epsilon=epsilon,
            adjacency=adjacency,
        )
        assert answer.lower <= truth * (1.0 + 1e-9) + 1e-18
        assert truth * (1.0 - 1e-9) - 1e-18 <= answer.upper
        assert answer.upper <= 1.05 * answer.lower + 1e-15


def test_randomized_response_dominates_the_laplace_noise_of_the_same_privacy() -> None:
    for steps in (1, 10, 1000):
        laplace = ask("laplace-allocation", scale=0.5, steps=steps, delta=1e-6)
        response = ask("response-allocation", local_epsilon=2.0, steps=steps, delta=1e-6)
        assert laplace.lower <= response.upper


@pytest.mark.parametrize("kind", ["laplace-allocation", "response-allocation"])
def test_pure_privacy_is_never_exceeded(kind: str) -> None:
    noise = {"scale": 0.5} if kind == "laplace-allocation" else {"local_epsilon": 2.0}
    for steps, participations, epochs in ((1, 1, 1), (1, 1, 3), (40, 1, 2), (6, 6, 2), (6, 5, 1)):
        answer = ask(kind, steps=steps, participations=participations, epochs=epochs, delta=1e-90, **noise)
        assert answer.upper <= 2.0 * participations * epochs * (1.0 + 1e-12)


def test_questions_about_one_mechanism_share_its_laws() -> None:
    """Twenty deltas of one distribution take less than twice the work of the first."""
    from privcore.allocation.reduction import one_of

    one_of.cache_clear()
    for delta in np.geomspace(1e-9, 1e-7, 20):
        ask("allocation", sigma=1.234, steps=777, delta=float(delta))
    assert one_of.cache_info().misses <= 3
    assert one_of.cache_info().hits >= 17


@pytest.mark.parametrize("probability", [1e-9, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("sigma", [0.01, 0.3, 5.0])
def test_the_loss_of_adding_to_a_poisson_sample_has_a_bound_for_every_noise(
    sigma: float, probability: float
) -> None:
    """Each step leaves the example out with probability 1 - lambda: its loss is at most -ln(1 - lambda)."""
    times, method = 6, find("poisson.certified")()
    run = {"sigma": sigma, "steps": 3, "epochs": 2, "sampling_probability": probability, "adjacency": "add"}
    most = -times * math.log1p(-probability)
    found = evaluate(Point(problem=problem("poisson-epsilon", **run, delta=1e-9), method=method))
    assert found.lower <= most * (1 + 1e-12)
    assert found.upper <= most * (1 + 1e-12)
    for epsilon, largest in ((most * (1 + 1e-9), 0.0), (most * (1 - 1e-3), 1.0)):
        at = problem("poisson-delta", **run, epsilon=epsilon)
        answer = evaluate(Point(problem=at, method=method))
        assert 0.0 <= answer.lower <= answer.upper <= largest
