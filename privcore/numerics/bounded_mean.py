"""Confidence bounds on the mean of a bounded variable, for every distribution and every number of samples."""

import math

import numpy as np
from numpy.typing import NDArray

from privcore.numerics.betting import betting_lower, betting_upper
from privcore.numerics.gaussian import last_true
from privcore.numerics.rounding import SAMPLE_SUMS

Array = NDArray[np.float64]

MOST_GROUPS = 4_000_000
"""Largest number of groups of samples on whose means bets are made."""
_BY_SUM = 0.1
"""Share of the error of the bound by the mean alone."""


class SampledMean:
    """Mean of independent samples in [0, 1], which are kept as means of groups of at most a fixed size.

    Bets on the means of groups are as good as bets on the samples if these vary enough: their variance, times
    their number, is above the square of the size of a group. Rare events are left to the bound of Hoeffding,
    which needs the mean only and gets a tenth of the error if there are more samples than groups.
    """

    def __init__(self, samples: int, groups: int = MOST_GROUPS) -> None:
        """Choose the size of the groups.

        Args:
            samples: Number of samples that will be added, >= 1.
            groups: Largest number of groups.
        """
        self.group = -(-samples // groups)
        self.samples = samples
        self.parts: list[Array] = []
        self.total = 0.0

    def add(self, samples: Array) -> None:
        """Add samples; only the means of groups are kept."""
        starts = np.arange(0, samples.size, self.group)
        sizes = np.diff(np.append(starts, samples.size))
        self.parts.append(np.add.reduceat(samples, starts) / sizes)
        self.total += float(samples.sum())

    @property
    def mean(self) -> float:
        """Mean of the samples."""
        return min(1.0, self.total / self.samples)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the mean, estimated from the groups."""
        means = np.concatenate(self.parts)
        return float(means.std()) / math.sqrt(means.size)

    def lower(self, error: float) -> float:
        """Return a lower bound that exceeds the true mean with probability at most `error`."""
        means = np.concatenate(self.parts) * (1.0 - SAMPLE_SUMS)
        if self.group == 1:
            return betting_lower(means, error)
        by_sum = kl_lower(self.mean * (1.0 - SAMPLE_SUMS), self.samples, _BY_SUM * error)
        return max(by_sum, betting_lower(means, (1.0 - _BY_SUM) * error))

    def upper(self, error: float) -> float:
        """Return an upper bound that the true mean exceeds with probability at most `error`."""
        means = np.minimum(1.0, np.concatenate(self.parts) * (1.0 + SAMPLE_SUMS))
        if self.group == 1:
            return betting_upper(means, error)
        by_sum = kl_upper(min(1.0, self.mean * (1.0 + SAMPLE_SUMS)), self.samples, _BY_SUM * error)
        return min(by_sum, betting_upper(means, (1.0 - _BY_SUM) * error))


def kl_upper(mean: float, samples: int, error: float) -> float:
    r"""Return the largest p with $n \, \mathrm{KL}(q \| p) \le \ln(1 / \beta)$ for the mean q of n samples.

    Args:
        mean: Mean of independent samples in [0, 1].
        samples: Number of samples, >= 1.
        error: Probability in (0, 1) that the bound fails.

    Returns:
        Upper confidence bound in (0, 1], rounded up.

    Reference:
        Hoeffding (1963), Probability inequalities for sums of bounded random variables, Theorem 1.

    Example:
        >>> f"{kl_upper(0.0, 500_000, 0.01):.6e}"
        '9.210298e-06'
    """
    allowed = -math.log(error) / samples
    return last_true(lambda p: divergence(mean, p) <= allowed, mean, 1.0)[1]


def kl_lower(mean: float, samples: int, error: float) -> float:
    """Return the lower confidence bound that mirrors `kl_upper`, rounded down."""
    allowed = -math.log(error) / samples
    return last_true(lambda p: divergence(mean, p) > allowed, 0.0, mean)[0] if mean > 0.0 else 0.0


def least_mean(p: float, samples: int, error: float) -> float:
    r"""Return a lower bound of the average of n independent variables in [0, 1] with mean p.

    It is the largest $q < p$ with $n \, \mathrm{KL}(q \| p) \ge \ln(1 / \beta)$, rounded down; 0 if no q
    satisfies this.

    Args:
        p: Mean of the variables, in [0, 1].
        samples: Number of variables, >= 1.
        error: Probability beta in (0, 1) that the bound fails.

    Reference:
        Hoeffding (1963), Probability inequalities for sums of bounded random variables, Theorem 1.

    Example:
        >>> round(least_mean(0.5, 1000, 1e-6), 4)
        0.4171
    """
    needed = -math.log(error) / samples
    return last_true(lambda q: divergence(q, p) >= needed, 0.0, p)[0] if divergence(0.0, p) > needed else 0.0


def divergence(q: float, p: float) -> float:
    """Return the relative entropy of two Bernoulli variables, in nats."""
    if q == p:
        return 0.0
    if p <= 0.0 or p >= 1.0:
        return math.inf
    one = q * math.log(q / p) if q > 0.0 else 0.0
    other = (1.0 - q) * (math.log1p(-q) - math.log1p(-p)) if q < 1.0 else 0.0
    return one + other
