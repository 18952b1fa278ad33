"""Lower bounds of k-of-t allocation from sums of losses."""

import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from privcore import Answer, Point, Status, evaluate, find
from privcore.allocation.sums import SEARCH, _Run, most_sums
from privcore.likelihood_ratio.profile import delta_lower
from privcore.likelihood_ratio.steps import GaussianStep, ResponseStep
from tests.privcore.draws import problem

pytestmark = pytest.mark.sampled(8)


def ask(method: str, kind: str, **fields: Any) -> Answer:
    asked = "epsilon" if "delta" in fields else "delta"
    return evaluate(Point(problem=problem(f"{kind}-{asked}", **fields), method=find(method)()))


@pytest.mark.parametrize(
    ("sigma", "steps", "participations", "delta", "monte_carlo"),
    [(1.0, 10, 3, 1e-6, 5.69), (0.5, 10, 3, 1e-6, 17.13)],
)
def test_sums_come_close_to_the_epsilon_by_simulation(
    sigma: float, steps: int, participations: int, delta: float, monte_carlo: float
) -> None:
    """The simulated values have standard errors of 0.015 and 0.01."""
    found = ask(
        "allocation.sums", "allocation", sigma=sigma, steps=steps, participations=participations, delta=delta
    )
    assert 0.98 * monte_carlo <= found.lower <= monte_carlo + 0.06


@pytest.mark.parametrize("seed", range(40))
def test_sums_never_exceed_the_upper_end_and_mostly_exceed_the_lower_one(seed: int) -> None:
    rng = random.Random(seed)
    steps = rng.choice([3, 10, 50, 300])
    fields: dict[str, Any] = {"steps": steps, "participations": rng.randint(2, steps - 1)}
    fields["epochs"] = rng.choice([1, 1, 3])
    kind = rng.choice(["allocation", "allocation", "sampled-allocation", "laplace-allocation"])
    if kind == "laplace-allocation":
        fields["scale"] = rng.uniform(1.0, 4.0)
    else:
        fields["sigma"] = rng.uniform(0.6, 5.0)
        fields["adjacency"] = rng.choice(["remove", "add", "add-remove"])
    if kind == "sampled-allocation":
        fields["sampling_probability"] = rng.choice([0.1, 0.9])
    fields |= (
        {"delta": 10.0 ** -rng.randint(3, 9)} if rng.random() < 0.6 else {"epsilon": rng.uniform(0.0, 6.0)}
    )
    found, known = (ask(method, kind, **fields) for method in ("allocation.sums", "allocation.certified"))
    assert found.status is Status.OK, found
    assert found.lower <= known.upper
    assert found.lower >= 0.9 * known.lower


def test_a_loss_beyond_the_first_threshold_is_found() -> None:
    found = ask("allocation.sums", "allocation", sigma=1.0, steps=100, participations=50, delta=1e-6)
    assert 38.4 <= found.lower <= 40.6


@pytest.mark.thorough
def test_the_threshold_of_the_search_does_not_limit_the_result() -> None:
    found = ask("allocation.sums", "allocation", sigma=1.0, steps=10_000, participations=1000, delta=1e-6)
    assert 129.0 <= found.lower <= 135.7


@pytest.mark.parametrize("participations", [1, 10])
def test_one_step_and_all_steps_are_left_to_the_certified_method(participations: int) -> None:
    found = ask(
        "allocation.sums", "allocation", sigma=1.0, steps=10, participations=participations, delta=1e-6
    )
    assert found.status is Status.NOT_APPLICABLE
    assert "allocation.certified" in found.detail


@pytest.mark.parametrize("tail", [1e-2, 1e-4])
@pytest.mark.parametrize("rate", [0.5, 0.05, 0.001])
def test_sampled_epochs_count_the_tails_at_the_thresholds_before_sampling(rate: float, tail: float) -> None:
    """An epoch sampled with a rate at kappa uses the profile of the whole epoch at about kappa / rate."""
    ups, chosen = np.arange(31), np.arange(13)
    weights = hypergeom.pmf(chosen[None, :], 30, ups[:, None], 12)
    ratios = np.where(weights > 0.0, weights * np.exp(2.0 * chosen - 12.0), 0.0).sum(axis=1)
    masses = binom.pmf(ups, 30, 1.0 / (1.0 + math.e))
    run = _Run(ResponseStep(1.0), 12, 30, 1, rate)
    for epsilon in (0.01, 0.5, 1.0):
        law = run.law(0.3, (0.08, 4_000, 16_000), tail, epsilon, multiplied=True)
        assert law is not None
        exact = float(masses @ np.maximum(1.0 - rate + rate * ratios - math.exp(epsilon), 0.0))
        assert delta_lower(law, epsilon, "remove") <= exact * (1.0 + 1e-12)


@pytest.mark.parametrize(("sigma", "delta"), [(0.1, 1e-6), (0.3, 1e-90)])
def test_ratios_that_became_zero_have_a_loss(sigma: float, delta: float) -> None:
    fields: dict[str, Any] = {"sigma": sigma, "steps": 3, "participations": 2, "delta": delta}
    found, known = (
        ask(method, "allocation", **fields) for method in ("allocation.sums", "allocation.certified")
    )
    assert found.status is Status.OK, found
    assert 0.0 < found.lower <= known.upper


def test_heavy_tails_of_a_few_steps_have_no_more_sums_than_the_cost_allows() -> None:
    law = _Run(GaussianStep(0.37), 2, 300, 1, 1.0).law(0.001, SEARCH, 1e-80, 300.0, multiplied=False)
    assert law is not None
    assert law.x.size <= 1.1 * most_sums(SEARCH, 300)
