"""Confidence intervals of simulated quantiles: valid, and nearly as narrow as normal ones."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from privcore import Answer, Point, evaluate, find, find_problem
from privcore.labels.draws import laws_of_others
from privcore.labels.problems import LabelRatioQuantile
from privcore.labels.ratio import RatioLaw, ratio_quantile, row_tails, sampled_quantile

CONTINUOUS = [
    LabelRatioQuantile(mechanism="llp", prior="uniform", bag_size=8, level=0.5),
    LabelRatioQuantile(mechanism="llp", prior="uniform", bag_size=4, level=0.5),
    LabelRatioQuantile(mechanism="llp-geometric", prior="uniform", bag_size=8, level=0.5, label_epsilon=2.0),
    LabelRatioQuantile(mechanism="llp-laplace", prior="beta(2,30)", bag_size=4, level=0.5, label_epsilon=1.0),
]


@pytest.mark.thorough
@pytest.mark.parametrize("problem", CONTINUOUS, ids=lambda each: f"{each.mechanism}-{each.bag_size}")
@pytest.mark.parametrize(("confidence", "most"), [(0.5, 3.0), (0.95, 1.8), (0.999, 1.5)])
def test_an_interval_is_less_than_three_times_as_wide_as_a_normal_one(
    problem: LabelRatioQuantile, confidence: float, most: float
) -> None:
    laws = np.concatenate(list(laws_of_others(problem.prior, problem.bag_size, 100_000)))
    rates = np.full(len(laws), problem.distribution.mean)
    low, value, high, _note = sampled_quantile(problem, laws, rates, confidence)

    def tails(x: float) -> np.ndarray:
        return row_tails(laws, problem.mechanism, problem.label_epsilon, rates, x)

    # The standard error of a quantile is that of the probability beyond it, over the density.
    beside = 2.0 * (high - low)
    density = (tails(value - beside).mean() - tails(value + beside).mean()) / (2.0 * beside)
    error = tails(value).std() / math.sqrt(len(laws)) / density
    assert low < value < high
    assert high - low < most * 2.0 * ndtri(0.5 + 0.5 * confidence) * error


@pytest.mark.thorough
@pytest.mark.parametrize("level", [0.2, 0.4])
@pytest.mark.parametrize("mechanism", ["llp", "llp-geometric", "llp-laplace"])
def test_the_interval_misses_the_quantile_at_most_as_often_as_its_confidence_allows(
    mechanism: str, level: float
) -> None:
    """Bags of 2 with a uniform prior: the truth is that of a fine grid of the other feature."""
    noise: dict[str, Any] = {} if mechanism == "llp" else {"label_epsilon": 2.0}
    problem = LabelRatioQuantile(mechanism=mechanism, prior="uniform", bag_size=2, level=level, **noise)
    rng, runs = np.random.default_rng(3), 150

    def laws(eta: np.ndarray) -> np.ndarray:
        return np.stack([1.0 - eta, eta], axis=1)

    grid = laws((np.arange(40_000) + 0.5) / 40_000)
    slack, half = problem.distribution.moment_error, np.full(len(grid), 0.5)
    law = RatioLaw.of(
        mechanism, problem.label_epsilon, slack, [(np.full(len(grid), 1.0 / len(grid)), grid, half)]
    )
    truth = ratio_quantile(law, level, 1e-7)
    missed = [0, 0]
    for _ in range(runs):
        low, _value, high, _note = sampled_quantile(problem, laws(rng.random(1000)), half[:1000], 0.5)
        missed[0] += low > truth[1]
        missed[1] += high < truth[0]
    most = binom.ppf(1.0 - 1e-4, runs, 0.25)
    assert 0 < max(missed) <= most, missed


@pytest.mark.parametrize(
    ("prior", "bag_size", "level"),
    [
        ("0.3", 8, 0.9),
        ("two-point(0.2,0.6,0.3)", 8, 0.9),
        ("0.5", 3, 0.2),
        ("two-point(0.0005,0.52,0.13)", 3, 0.1),
        ("two-point(0.2,0.29,0.61)", 2, 0.1),
        ("two-point(0.2,0.68,0.35)", 2, 0.02),
        ("two-point(0.00633,0.423,0.449)", 3, 0.1),
    ],
)
def test_of_ratios_with_an_atom_at_the_quantile_the_interval_is_the_atom(
    prior: str, bag_size: int, level: float
) -> None:
    found = simulated(mechanism="llp", prior=prior, bag_size=bag_size, level=level)
    assert found.upper - found.lower <= 1e-8 * (1.0 + found.upper)


@pytest.mark.parametrize("bag_size", [1, 3])
def test_an_infinite_quantile_is_known(bag_size: int) -> None:
    found = simulated(mechanism="llp", prior="beta(1,1000)", bag_size=bag_size, level=0.98)
    assert found.lower == math.inf


@pytest.mark.parametrize("samples", [100, 101, 2000])
def test_few_bags_give_a_wide_interval(samples: int) -> None:
    fields = {"mechanism": "llp", "prior": "uniform", "bag_size": 8, "level": 0.5}
    found = simulated(samples=samples, **fields)
    assert found.lower <= 0.662 <= found.upper
    assert found.lower > 0.5
    assert found.upper < 1.0


def simulated(*, samples: int = 10_000, **fields: object) -> Answer:
    method = find("labels.sampling").from_knobs({"samples": samples})
    return evaluate(Point(problem=find_problem("label-ratio-quantile").from_fields(fields), method=method))
