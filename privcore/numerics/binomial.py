"""Tails of binomial distributions with small relative errors, and normal quantiles of p-values of counts."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.numerics.rounding import BINOMIAL_WINDOW, DEVIANCE, NORMAL_QUANTILES

Array = NDArray[np.float64]

_WIDTH = 38.0
"""Half-width of the window in standard deviations; all beyond it is below 1e-300, or bounded so."""


@dataclass(frozen=True)
class Window:
    """Counts that are not negligible, with their probabilities.

    Attributes:
        first: Smallest count.
        law: Probabilities of the counts, from `first` on.
    """

    first: int
    law: Array

    def at_least(self, count: int) -> float:
        """Return the probability of at least `count` successes."""
        return float(self.law[max(0, count - self.first) :].sum())

    @property
    def counts(self) -> Array:
        """Counts of the window."""
        return self.first + np.arange(float(self.law.size))


def window(trials: int, p: float) -> Window:
    """Return the binomial distribution around its mode.

    Args:
        trials: Number of trials, >= 0.
        p: Probability of success in [0, 1].

    Example:
        >>> window(2, 0.5).law.tolist()
        [0.25, 0.5, 0.25]
    """
    if p <= 0.0 or p >= 1.0:
        return Window(0 if p <= 0.0 else trials, np.ones(1))
    mode = min(trials, math.floor((trials + 1) * p))
    reach = math.ceil(_WIDTH * math.sqrt(trials * p * (1.0 - p)) + 2.0 * _WIDTH**2)
    low, high = max(0, mode - reach), min(trials, mode + reach)
    s = np.arange(low, high)
    up = (trials - s) / (s + 1.0) * (p / (1.0 - p))
    place = mode - low
    law = np.empty(high - low + 1)
    with np.errstate(under="ignore"):
        law[place] = 1.0
        law[place + 1 :] = np.cumprod(up[place:])
        law[:place] = np.cumprod(1.0 / up[:place][::-1])[::-1]
    return Window(low, law / law.sum())


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
