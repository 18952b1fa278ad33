"""Confidence bounds of a mean against their formulas, with sums that err by nearly as much as is allowed."""

import math

import pytest
from scipy.optimize import brentq

from privcore.numerics.bounded_mean import Tally
from privcore.numerics.rounding import SAMPLE_SUMS

N = 1000


def entropy(q: float, p: float) -> float:
    other = (1.0 - q) * math.log((1.0 - q) / (1.0 - p)) if q < 1.0 else 0.0
    return q * math.log(q / p) + other


def formulas(successes: int, error: float) -> tuple[float, float]:
    """Both ends for zeros and ones, each end by two inequalities that share its error equally."""
    q, half = successes / N, 0.5 * error
    reached = lambda p: N * entropy(q, p) - math.log(1.0 / half)
    low = brentq(reached, 1e-9, q, xtol=1e-16)
    high = brentq(reached, q, 1.0 - 1e-12, xtol=1e-16) if q < 1.0 else 1.0
    variance = N / (N - 1.0) * q * (1.0 - q)
    log_error = math.log(2.0 / half)
    off = math.sqrt(2.0 * variance * log_error / N) + 7.0 * log_error / (3.0 * (N - 1.0))
    return max(0.0, low, q - off), min(1.0, high, q + off)


@pytest.mark.parametrize("error", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("successes", [40, 300, 700, 999, 1000])
def test_sums_that_err_within_their_slack_move_no_bound_inward(successes: int, error: float) -> None:
    lower, upper = formulas(successes, error)
    for off in (-0.9 * SAMPLE_SUMS, 0.0, 0.9 * SAMPLE_SUMS):
        total = successes * (1.0 + off)
        tally = Tally(samples=N, total=total, squares=total)
        assert lower * (1.0 - 1e-6) <= tally.lower(error) <= lower * (1.0 + 1e-12)
        assert upper * (1.0 - 1e-12) <= tally.upper(error) <= upper * (1.0 + 1e-6)
