"""Confidence bounds on the mean of a bounded variable, for every distribution and every number of samples."""

import math
from dataclasses import dataclass

from privcore.numerics.gaussian import last_true
from privcore.numerics.rounding import SAMPLE_SUMS


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Number and sums of independent samples in [0, 1].

    Attributes:
        samples: Number of samples.
        total: Sum of the samples.
        squares: Sum of the squares of the samples.
    """

    samples: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        """Mean of the samples."""
        return min(1.0, self.total / self.samples)

    @property
    def variance(self) -> float:
        """Unbiased variance of the samples, at least 0."""
        return max(0.0, (self.squares - self.samples * self.mean**2) / (self.samples - 1))

    def __add__(self, other: "Tally") -> "Tally":
        """Return the tally of both sets of samples."""
        return Tally(
            samples=self.samples + other.samples,
            total=self.total + other.total,
            squares=self.squares + other.squares,
        )

    def upper(self, error: float) -> float:
        """Return an upper bound that the true mean exceeds with probability at most `error`."""
        mean = min(1.0, self.mean * (1.0 + SAMPLE_SUMS))
        return min(1.0, kl_upper(mean, self.samples, 0.5 * error), mean + self._bernstein(0.5 * error))

    def lower(self, error: float) -> float:
        """Return a lower bound that exceeds the true mean with probability at most `error`."""
        mean = self.mean * (1.0 - SAMPLE_SUMS)
        return max(0.0, kl_lower(mean, self.samples, 0.5 * error), mean - self._bernstein(0.5 * error))

    def _bernstein(self, error: float) -> float:
        """Return the deviation of Maurer and Pontil (2009), arXiv:0907.3740v1, Theorem 4."""
        log_error, variance = math.log(2.0 / error), self.variance + SAMPLE_SUMS * self.mean**2
        return math.sqrt(2.0 * variance * log_error / self.samples) + 7.0 * log_error / (
            3.0 * (self.samples - 1)
        )


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
