r"""Sets of pairs of rates below a curve, and the weights with which a joint test looks at both samples.

The weights are an angle between 0, at which the first sample alone decides, and pi / 2. They depend on the
pair and the numbers of trials only, never on the counts. Any such weights give a valid test. Those in
proportion to the standard errors across the curve refute most.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.numerics.binomial import Array
from privcore.numerics.gaussian import SMALLEST_RATE
from privcore.numerics.rounding import FEW_FUNCTIONS, GAUSSIAN_RATE, NORMAL_QUANTILES

Ends = tuple[Array, Array]
"""Least and largest values of a rate or of an angle, in each rectangle."""

_GRID = 200
"""Number of rates at which a test is approximated before it is proved."""
_USUAL = 1.6
"""Least deviation, in standard errors, that a sample is expected to contribute to a refutation."""


class PairsBelow(ABC):
    """Pairs of rates (p, q) with p below a curve that grows with q."""

    @abstractmethod
    def most(self, q: Array) -> Array:
        """Return the largest p for each q, rounded up."""

    @abstractmethod
    def angles(self, trials: tuple[int, int], critical: float, p: Ends, q: Ends) -> Ends:
        """Return the least and the largest angle of the weights of the pairs in rectangles.

        Args:
            trials: Numbers of trials of both samples.
            critical: Critical value of the test.
            p: Least and largest first rates.
            q: Least and largest second rates.
        """

    def rates(self, low: float, high: float, rare: float) -> Array:
        """Return second rates from `low` to `high` at which a test is approximated; `rare` matters most."""
        return np.linspace(low, high, _GRID)


@dataclass(frozen=True, kw_only=True)
class RatesBelow(PairsBelow):
    """Pairs of rates with p <= slope q + height.

    Attributes:
        slope: The slope.
        height: The height.
        weighed: The slope for which the weights of the test are best: a number for all sets of a family, or
            None for the slope of the pair itself, p / q.
    """

    slope: float
    height: float
    weighed: float | None = None

    def most(self, q: Array) -> Array:
        return (self.slope * q + self.height) * (1.0 + FEW_FUNCTIONS)

    def angles(self, trials: tuple[int, int], critical: float, p: Ends, q: Ends) -> Ends:
        (p0, p1), (q0, q1) = p, q
        (one, other), (few, many) = _variances(p0, p1), _variances(q0, q1)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.weighed is None:  # p^2 q (1 - q) / (q^2 p (1 - p))
                squares = p0 * (1.0 - q1) / (q1 * (1.0 - p0)), p1 * (1.0 - q0) / (q0 * (1.0 - p1))
            else:
                squares = self.weighed**2 * few / other, self.weighed**2 * many / one
            return _angles(trials, squares)


@dataclass(frozen=True, kw_only=True)
class GaussianRates(PairsBelow):
    r"""Pairs of rates with $p \le \Phi(\Phi^{-1}(q) + \mu)$, those of one event under mu-GDP.

    The weights are those of the standard errors of the normal quantiles of both rates. If one sample
    cannot deviate by the critical value even if every trial has the expected outcome, its weight is at most
    the deviation that it reaches, and the other sample takes the rest.

    Attributes:
        mu: The distance mu >= 0 of two normal distributions with variance 1.

    Source:
        Dong, Roth and Su (2022), arXiv:1905.02383, Equation (6). The variance of a quantile is least at 1/2
        and grows to both sides, since the inverse Mills ratio has a derivative below 1: Sampford (1953),
        Annals of Mathematical Statistics 24, 130-132.
    """

    mu: float

    def most(self, q: Array) -> Array:
        quantile = scipy.special.ndtri(np.clip(q, SMALLEST_RATE, 1.0 - 2.0**-53))
        slack = NORMAL_QUANTILES * (1.0 + np.abs(quantile) + self.mu)
        upper = scipy.special.ndtr(quantile + self.mu + slack) * (1.0 + GAUSSIAN_RATE)
        return np.asarray(np.minimum(1.0, np.nextafter(np.maximum(upper, SMALLEST_RATE), 2.0)))

    def angles(self, trials: tuple[int, int], critical: float, p: Ends, q: Ends) -> Ends:
        deviation = max(critical, _USUAL)

        def raised(rate: Array) -> Array:  # the first sample reaches at most the root of n (1 - p) / p
            return np.arccos(np.minimum(1.0, np.sqrt(trials[0] * (1.0 - rate) / rate) / deviation))

        def lowered(rate: Array) -> Array:  # and the second one the root of m q / (1 - q)
            return np.arcsin(np.minimum(1.0, np.sqrt(trials[1] * rate / (1.0 - rate)) / deviation))

        with np.errstate(all="ignore"):
            (one, other), (few, many) = _quantile_variances(*p), _quantile_variances(*q)
            low, high = (
                np.minimum(np.maximum(angle, raised(first)), lowered(second))
                for angle, first, second in zip(_angles(trials, (few / other, many / one)), p, q, strict=True)
            )
        return np.maximum(0.0, low - NORMAL_QUANTILES), np.minimum(0.5 * math.pi, high + NORMAL_QUANTILES)

    def rates(self, low: float, high: float, rare: float) -> Array:
        """Return rates in equal steps, and in equal steps of their normal quantiles."""
        least, most = np.clip(scipy.special.ndtri([max(low, 0.02 * rare), high]), -40.0, 40.0).tolist()
        near = np.clip([rare, np.nextafter(rare, 1.0)], low, high)
        steps = scipy.special.ndtr(np.linspace(least, most, 2 * _GRID))
        return np.unique(np.concatenate([np.linspace(low, high, _GRID), np.clip(steps, low, high), near]))


def _angles(trials: tuple[int, int], squares: Ends) -> Ends:
    """Return the angles of squares of quotients of the standard errors of single trials."""
    ratio = trials[0] / trials[1]
    low, high = (np.arctan(np.sqrt(ratio * square)) for square in squares)
    return low, high


def _variances(low: Array, high: Array) -> Ends:
    """Return the least and the largest variance of an event whose rate lies in an interval."""
    ends = low * (1.0 - low), high * (1.0 - high)
    return np.minimum(*ends), np.where((low < 0.5) & (high > 0.5), 0.25, np.maximum(*ends))


def _quantile_variances(low: Array, high: Array) -> Ends:
    """Return the least and the largest variance of the normal quantile of a rate, from one trial."""
    squares = (scipy.special.ndtri(rate) ** 2 for rate in (low, high))
    variances = (
        2.0 * math.pi * rate * (1.0 - rate) * np.exp(square)
        for rate, square in zip((low, high), squares, strict=True)
    )
    one, other = variances
    least = np.where((low < 0.5) & (high > 0.5), 0.5 * math.pi, np.minimum(one, other))
    return least, np.maximum(one, other)
