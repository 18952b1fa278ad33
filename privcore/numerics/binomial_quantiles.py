"""Normal quantiles of p-values of binomial counts, rounded down."""

import math
from functools import lru_cache

import numpy as np
import scipy

from privcore.numerics.binomial import Array, window
from privcore.numerics.rounding import BINOMIAL_WINDOW, DEVIANCE, NORMAL_QUANTILES

LARGEST_SUMMED = 2e5
"""Variance of a count up to which its tail is summed; beyond it, the quantile may be too small by a count."""


@lru_cache(maxsize=20_000)
def quantile_of_many(trials: int, count: int, rate: float) -> float:
    """Return a lower bound of the normal quantile of the p-value of at least `count` successes."""
    if trials * rate * (1.0 - rate) > LARGEST_SUMMED:
        value, slack = _deviance(trials, count - 1, rate)
        return value - slack
    law = window(trials, rate)
    place = max(0, count - law.first)
    return _safe(float(law.law[place:].sum()), float(law.law[:place].sum()))


@lru_cache(maxsize=20_000)
def quantile_of_few(trials: int, count: int, rate: float) -> float:
    """Return a lower bound of the normal quantile of the p-value of at most `count` successes."""
    if trials * rate * (1.0 - rate) > LARGEST_SUMMED:
        value, slack = _deviance(trials, count + 1, rate)
        return -value - slack
    law = window(trials, rate)
    place = max(0, count - law.first + 1)
    return _safe(float(law.law[:place].sum()), float(law.law[place:].sum()))


def _deviance(trials: int, count: int, rate: float) -> tuple[float, float]:
    """Return the signed root of the deviance of a count, and its error.

    It lies between the normal quantiles of the probabilities of fewer successes and of at most `count`.

    Source:
        Zubkov and Serov (2013), Theory of Probability and its Applications 57, 539-544, Theorem 1.
    """
    share, rest = count / trials, (trials - count) / trials
    apart = (count - trials * rate) / trials
    with np.errstate(divide="ignore", invalid="ignore"):
        half = scipy.special.xlog1py(share, apart / rate) + scipy.special.xlog1py(rest, -apart / (1.0 - rate))
    error = DEVIANCE * (1.0 + trials * abs(apart) / (rate * (1.0 - rate)))
    return math.copysign(math.sqrt(2.0 * trials * max(0.0, float(half))), apart), math.sqrt(2.0 * error)


def _safe(p_value: float, other: float) -> float:
    slack = 10.0 * BINOMIAL_WINDOW
    ends = np.array(p_value * (1.0 + slack) + 1e-290), np.array(other * (1.0 - slack))
    value = float(normal_quantile(*ends))
    return value - NORMAL_QUANTILES * (1.0 + abs(value))


def normal_quantile(p_value: Array, other: Array) -> Array:
    """Return the normal quantile of a p-value, which is positive if small, from it and its complement."""
    with np.errstate(divide="ignore"):
        ends: tuple[Array, Array] = -scipy.special.ndtri(p_value), scipy.special.ndtri(other)
    return np.where(p_value < other, *ends)
