"""Intervals of rates from scores: coverage of known rates, also with ties, and exact tails."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from privcore.auditing.scores import (
    area_interval,
    area_under_curve,
    best_threshold,
    first_half,
    true_positive_rate,
)

REPETITIONS = 300
CONFIDENCE = 0.6
FEW_ENOUGH = int(binom.ppf(0.999, REPETITIONS, 1.0 - CONFIDENCE))
"""Misses that a valid interval exceeds with a probability of at most 0.001."""


def covered(truth: float, interval: tuple[float, float]) -> bool:
    return interval[0] <= truth <= interval[1]


@pytest.mark.thorough
@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_the_rate_of_two_gaussians_is_missed_rarely_enough(rate: float) -> None:
    rng = np.random.default_rng(1)
    truth = norm.sf(norm.isf(rate) - 1.0)
    found = [
        true_positive_rate(rng.normal(1.0, 1.0, 80), rng.normal(0.0, 1.0, 60), rate, CONFIDENCE)
        for _ in range(REPETITIONS)
    ]
    assert sum(not covered(truth, each) for each in found) <= FEW_ENOUGH
    assert np.mean([upper - lower for lower, upper in found]) < 0.6


@pytest.mark.thorough
def test_the_rate_of_scores_with_ties_is_missed_rarely_enough() -> None:
    """Scores 0 and 1 only: at rate 0.5, the best rule says "in" for 1, and for 0 with probability 3/8."""
    rng = np.random.default_rng(2)
    truth = 0.7 + 0.3 * (0.5 - 0.2) / 0.8
    found = [
        true_positive_rate(
            rng.binomial(1, 0.7, 80).astype(float), rng.binomial(1, 0.2, 60).astype(float), 0.5, CONFIDENCE
        )
        for _ in range(REPETITIONS)
    ]
    # without ties broken at random, the lower end is about the rule for scores above a threshold
    assert sum(not covered(truth, each) for each in found) <= FEW_ENOUGH


def test_with_few_scores_nothing_is_claimed() -> None:
    assert true_positive_rate(np.ones(5), np.zeros(5), 1e-3, 0.95) == (0.0, 1.0)


def test_the_area_is_the_share_of_ordered_pairs() -> None:
    rng = np.random.default_rng(3)
    inside, outside = rng.integers(0, 6, 17).astype(float), rng.integers(0, 5, 11).astype(float)
    pairs = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
    assert area_under_curve(inside, outside) == pytest.approx(np.mean(pairs), rel=1e-14)


@pytest.mark.parametrize(("area", "pairs"), [(0.5, 10), (0.75, 1000), (0.999, 1000), (1.0, 50), (0.0, 7)])
def test_ends_of_an_area_make_its_binomial_tail_small(area: float, pairs: int) -> None:
    lower, upper = area_interval(area, pairs, 0.95)
    assert 0.0 <= lower <= area <= upper <= 1.0
    assert lower == 0.0 or binom.sf(math.ceil(area * pairs) - 1, pairs, lower) <= 0.025
    assert upper == 1.0 or binom.cdf(math.floor(area * pairs), pairs, upper) <= 0.025


@pytest.mark.thorough
def test_the_area_of_two_gaussians_is_missed_rarely_enough() -> None:
    rng = np.random.default_rng(4)
    truth = norm.cdf(1.0 / math.sqrt(2.0))
    missed = 0
    for _ in range(REPETITIONS):
        inside, outside = rng.normal(1.0, 1.0, 40), rng.normal(0.0, 1.0, 30)
        missed += not covered(truth, area_interval(area_under_curve(inside, outside), 30, CONFIDENCE))
    assert missed <= FEW_ENOUGH


def test_a_half_depends_on_the_number_of_canaries_alone() -> None:
    assert first_half(101).sum() == 50
    assert np.array_equal(first_half(101), first_half(101))


def test_the_threshold_separates_what_can_be_separated() -> None:
    inside, outside = np.linspace(5.0, 6.0, 40), np.linspace(0.0, 1.0, 40)
    assert 1.0 <= best_threshold(inside, outside) < 5.0
