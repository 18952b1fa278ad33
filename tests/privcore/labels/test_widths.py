"""Widths of simulated advantages for priors with labels that are nearly all 0."""

import math

import mpmath
import numpy as np
import pytest
import scipy

from privcore import Answer, Point, evaluate
from privcore.distributions.prior_notation import prior
from privcore.labels.problems import LabelAdvantage, LabelRatioQuantile
from privcore.labels.sampling import LabelsSampling

mp = mpmath.mp
QUICK = 1e-7
"""Relative error of quick values, ten times the error that their tables claim."""


def simulated(law: str, bag_size: int, *, samples: int = 100_000, confidence: float = 0.5) -> Answer:
    problem = LabelAdvantage(mechanism="llp", prior=law, bag_size=bag_size)
    return evaluate(Point(problem=problem, method=LabelsSampling(samples=samples, confidence=confidence)))


def normal_widths(answer: Answer, confidence: float = 0.5) -> float:
    """Return the width of an interval, in widths of a normal interval by the standard error of its detail."""
    error = float(answer.detail.split("standard error ")[1].split(",")[0])
    return (answer.upper - answer.lower) / (2.0 * error * float(scipy.special.ndtri(0.5 + 0.5 * confidence)))


def pairs(m: float, s: float) -> mpmath.mpf:
    r"""Return the advantage in bags of 2 for a logit-normal prior with negligible mass above 1/2.

    The sum 1 overturns $(\eta - \eta')_+$ and the sum 2 $\eta \eta'$, so it is $\int F (1 - F) + (E \eta)^2$
    with the distribution function F of eta, integrated over z = logit(eta).
    """
    edges = [m + j * s for j in range(-12, 13)]

    def slope(z: mpmath.mpf) -> mpmath.mpf:
        return mp.exp(-z) / (1 + mp.exp(-z)) ** 2

    def below(z: mpmath.mpf) -> mpmath.mpf:
        return mp.ncdf((z - m) / s)

    mean = mp.quad(lambda z: mp.npdf(z, m, s) / (1 + mp.exp(-z)), edges)
    return mp.quad(lambda z: below(z) * (1 - below(z)) * slope(z), edges) + mean**2


@pytest.mark.parametrize(
    ("law", "bag_size"), [("logit-normal(-12,1)", 3), ("logit-normal(-20,5)", 3), ("beta(0.05,1000)", 3)]
)
def test_an_interval_for_a_rare_label_is_less_than_three_times_as_wide_as_a_normal_one(
    law: str, bag_size: int
) -> None:
    answer = simulated(law, bag_size)
    assert normal_widths(answer) < 3.0
    assert "normal widths" not in answer.detail


@pytest.mark.parametrize(("m", "s"), [(-12.0, 1.0), (-15.0, 2.0)])
def test_pairs_of_rare_labels_have_the_advantage_of_an_integral(m: float, s: float) -> None:
    answer = simulated(f"logit-normal({m:g},{s:g})", 2, confidence=1.0 - 1e-9)
    truth = pairs(m, s)
    assert answer.lower <= truth <= answer.upper
    assert answer.value == pytest.approx(float(truth), rel=0.05)


def test_an_interval_that_is_much_wider_says_so() -> None:
    """A part of a bag has a far larger advantage than the bag, and nothing else bounds the rare bags."""
    answer = simulated("beta(1,1000)", 64)
    assert answer.detail.endswith(" normal widths")
    assert float(answer.detail.split()[-3]) == pytest.approx(normal_widths(answer), rel=0.05)
    assert normal_widths(answer) > 3.0


@pytest.mark.parametrize(
    "law", ["logit-normal(-12,1)", "logit-normal(12,1)", "beta(0.05,1000)", "beta(1000,1)"]
)
def test_quick_values_of_a_prior_near_an_end_are_accurate(law: str) -> None:
    rng = np.random.default_rng(5)
    distance = np.concatenate([10.0 ** rng.uniform(-4.0, 2.7, 500), rng.uniform(0.0, 30.0, 500)])
    one = 10.0 ** rng.uniform(-20.0, 0.0, distance.size)
    swapped = rng.random(distance.size) < 0.5
    zero = one * np.exp(-distance)
    one, zero = np.where(swapped, zero, one), np.where(swapped, one, zero)
    exact, quick = prior(law).overturned(one, zero), prior(law).overturned_quickly(one, zero)
    known = exact > 1e-220
    assert known.sum() > 300
    assert np.abs(quick[known] / exact[known] - 1.0).max() < QUICK
    assert prior(law).quick_error < QUICK
    ends = np.array([1.0, 0.0, 0.3, 0.0]), np.array([0.0, 1.0, 0.3, 0.0])
    assert prior(law).overturned_quickly(*ends).sum() == pytest.approx(prior(law).blind)
    assert math.isclose(prior(law).overturned_quickly(*ends)[2], 0.0)


@pytest.mark.parametrize(("level", "wide"), [(0.9, False), (0.9999, True)])
def test_a_quantile_near_level_one_says_how_wide_its_interval_is(level: float, wide: bool) -> None:
    problem = LabelRatioQuantile(mechanism="llp", prior="uniform", bag_size=32, level=level)
    answer = evaluate(Point(problem=problem, method=LabelsSampling(samples=50_000, confidence=0.5)))
    assert ("normal widths" in answer.detail) == wide


def test_the_width_of_an_interval_of_bags_that_hardly_differ_is_named_too() -> None:
    """The standard error is 1e-9 of the value, far above rounding."""
    problem = LabelAdvantage(
        mechanism="llp-laplace", prior="logit-normal(-15,2)", bag_size=3, label_epsilon=0.01
    )
    answer = evaluate(Point(problem=problem, method=LabelsSampling(samples=100_000, confidence=0.5)))
    assert answer.detail.endswith("14000 normal widths")
