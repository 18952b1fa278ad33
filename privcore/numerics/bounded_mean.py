"""Confidence bounds on the mean of a bounded variable, for every distribution, by bets against it."""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.numerics.gaussian import last_true
from privcore.numerics.rounding import BETTED_WEALTH, SAMPLE_SUMS

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


BETTING = "Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86, Theorem 3"
"""Reference of the bounds."""

_FIRST, _GROWTH = 64, 2.0
_MOST_SHARE = 0.9
_HALVINGS = 60
_LEAST, _PRECISION = 1e-12, 1e-13


def width_note(width: float, standard_error: float, confidence: float) -> str:
    """Return `, N normal widths` for an interval that is more than three times as wide as a normal one.

    Args:
        width: Width of the interval.
        standard_error: Estimated standard error of its middle, >= 0.
        confidence: Confidence of the interval, in (0, 1).

    Example:
        >>> width_note(0.5, 0.001, 0.95), width_note(0.004, 0.001, 0.95)
        (', 130 normal widths', '')
    """
    normal = 2.0 * standard_error * float(scipy.special.ndtri(0.5 + 0.5 * confidence))
    if not 0.0 < normal < width / 3.0:
        return ""
    return f", {float(f'{width / normal:.2g}'):.10g} normal widths"


def betting_lower(samples: Array, error: float) -> float:
    r"""Return a lower bound that exceeds the true mean with probability at most `error`.

    A player who doubts that the mean is m bets $\lambda_i (x_i - m)$ on sample i. The wealth
    $\prod_i (1 + \lambda_i (x_i - m))$ has mean 1 if the mean is m, since the stake $\lambda_i$ depends on
    earlier samples only, so by Markov's inequality it reaches 1 / error with probability at most `error`. It
    falls with m, and the bound is the least m at which it stays below 1 / error. Stakes follow the variance
    of the earlier samples, in blocks that double.

    Args:
        samples: Independent samples in [0, 1] in the order of drawing, shape (n,), n >= 1.
        error: Probability in (0, 1) that the bound fails.

    Returns:
        Lower confidence bound in [0, 1), rounded down.

    Reference:
        Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, JRSS B 86,
        Theorem 3, at a fixed number of samples.

    Example:
        >>> betting_lower(np.ones(100), 0.05) > 0.95, betting_lower(np.zeros(100), 0.05)
        (True, 0.0)
    """
    needed = -math.log(error)
    stakes = _stakes(samples, needed)

    def refuted(mean: float) -> bool:
        wealth = sum(log_wealth(samples[start:stop], stake, mean) for start, stop, stake in stakes)
        return wealth >= needed * (1.0 + BETTED_WEALTH) + BETTED_WEALTH

    if not refuted(_LEAST):
        return 0.0
    low, high = _LEAST, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high) if high > 4.0 * low else math.sqrt(low * high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
        if high - low <= _PRECISION * high:
            break
    return low


def betting_upper(samples: Array, error: float) -> float:
    """Return the upper confidence bound that mirrors `betting_lower`, rounded up."""
    return min(1.0, (1.0 - betting_lower(1.0 - samples, error)) * (1.0 + 2.0**-52) + 2.0**-52)


def _stakes(samples: Array, needed: float) -> list[tuple[int, int, float]]:
    """Return blocks of samples with their stakes, each from the samples before the block."""
    blocks = []
    start, size = 0, _FIRST
    total = squares = 0.0
    while start < samples.size:
        stop = min(samples.size, start + size)
        mean = (total + 0.5) / (start + 1.0)
        variance = (max(0.0, squares - 2.0 * mean * total + start * mean * mean) + 0.25) / (start + 1.0)
        blocks.append((start, stop, math.sqrt(2.0 * needed / (samples.size * variance))))
        block = samples[start:stop]
        total, squares = total + float(block.sum()), squares + float((block * block).sum())
        start, size = stop, int(_GROWTH * size)
    return blocks


def log_wealth(samples: Array, stake: float, mean: float) -> float:
    """Return the logarithm of the wealth after bets with one stake; no bet risks more than a share of it."""
    return float(np.log1p(min(stake, _MOST_SHARE / mean) * (samples - mean)).sum())
