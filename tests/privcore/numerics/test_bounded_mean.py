"""Confidence bounds of a mean against their parts, with samples that err by nearly as much as is allowed."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq

from privcore.numerics.bounded_mean import SampledMean, betting_lower, betting_upper
from privcore.numerics.rounding import SAMPLE_SUMS

N = 1000


def entropy(q: float, p: float) -> float:
    other = (1.0 - q) * math.log((1.0 - q) / (1.0 - p)) if q < 1.0 else 0.0
    return q * math.log(q / p) + other


def by_sum(successes: int, error: float) -> tuple[float, float]:
    """Both ends for zeros and ones by the inequality of Hoeffding."""
    q = successes / N
    reached = lambda p: N * entropy(q, p) - math.log(1.0 / error)
    low = brentq(reached, 1e-9, q, xtol=1e-16)
    return low, brentq(reached, q, 1.0 - 1e-12, xtol=1e-16) if q < 1.0 else 1.0


def expected(exact: np.ndarray, group: int, error: float) -> tuple[float, float]:
    """Both ends by bets on exact means; with groups, the better of bets and of the sum, shares 9 and 1."""
    if group == 1:
        return betting_lower(exact, error), betting_upper(exact, error)
    means = exact.reshape(-1, group).mean(axis=1)
    low, high = by_sum(int(exact.sum()), 0.1 * error)
    return max(low, betting_lower(means, 0.9 * error)), min(high, betting_upper(means, 0.9 * error))


@pytest.mark.parametrize("error", [0.5, 0.05, 1e-6])
def test_samples_that_err_within_their_slack_move_no_bound_inward(error: float) -> None:
    for successes, group in product((4, 40, 300, 700, 999, 1000), (1, 4)):
        exact = np.random.default_rng(successes).permutation(np.arange(N) < successes).astype(float)
        lower, upper = expected(exact, group, error)
        for off in (-0.9 * SAMPLE_SUMS, 0.0, 0.9 * SAMPLE_SUMS):
            mean = SampledMean(N, N // group)
            mean.add(exact[:600] * (1.0 + off))
            mean.add(exact[600:] * (1.0 + off))
            assert lower * (1.0 - 1e-6) <= mean.lower(error) <= lower * (1.0 + 1e-12), (successes, group)
            assert upper * (1.0 - 1e-12) <= mean.upper(error) <= upper * (1.0 + 1e-6), (successes, group)
