r"""Tractable ratios below a mean of correlated lognormal ratios: docs/matrix.md.

The ratio of bins is $X_G = \frac1b \sum_j e^{Y_j - G_{jj}/2}$ with $Y \sim N(0, G)$. By Kahane's inequality
it grows in convex order with every entry of the covariance G. If an entry depends only on the smallest common
part of its two bins in a tree, parts are independent given their common factor: the ratio of a part is a
lognormal factor times the mean of the ratios of its two halves.
"""

import math
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.distribution import RatioBracket, Resolution, combine
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.ratios import Gaussian, OneOfSteps, Ratio, product, sampled
from privcore.numerics.rounding import SUMMED

DIGITS = 2.0**-32
"""Entries of a minorant are multiples of this share of the largest one, so that equal parts are equal."""


@dataclass(frozen=True)
class WeightedMean(Ratio):
    """Ratio of two independent parts: one of them, chosen at random, uses the example.

    Attributes:
        first: Ratio of the first part.
        second: Ratio of the second part.
        weight: Probability of the first part, in (0, 1).
    """

    first: Ratio
    second: Ratio
    weight: float

    def build(self, res: Resolution) -> RatioBracket:
        weights = (self.weight, 1.0 - self.weight)
        return combine(self.first.bracket(res), self.second.bracket(res), res, product=False, weights=weights)

    @property
    def width(self) -> float:
        return max(self.first.width, self.second.width)

    @property
    def combinations(self) -> int:
        return self.first.combinations + self.second.combinations + 1

    @property
    def levels(self) -> int:
        return max(self.first.levels, self.second.levels) + 1

    @property
    def copies(self) -> int:
        return max(self.first.copies, self.second.copies)


def ultrametric(gram: Array) -> Ratio | None:
    """Return the ratio of a tree of bins below a Gram matrix, or None if the ratio is 1.

    Args:
        gram: Gram matrix over the variance of the noise, without negative entries; it may err by `SUMMED`.

    Example:
        >>> ultrametric(np.full((2, 2), 0.25))
        Gaussian(mu=0.49...)
    """
    unit = 2.0 ** math.ceil(math.log2(float(gram.max()) * DIGITS))
    steps = np.floor(gram * (1.0 - 2.0 * SUMMED) / unit)
    least = np.minimum(steps, steps.T)
    np.minimum(least, np.diag(least), out=least)  # a covariance is at most each of its two variances
    np.minimum(least, np.diag(least)[:, None], out=least)
    return _part(least, 0.0, unit)


def _part(least: Array, common: float, unit: float) -> Ratio | None:
    """Return the ratio of bins whose common factors have a part of their variance already."""
    size, own = least.shape[0], float(least.min())
    factor = (Gaussian(math.sqrt((own - common) * unit)),) if own > common else ()
    if size == 1:
        return factor[0] if factor else None
    half = (size + 1) // 2
    first, second = _part(least[:half, :half], own, unit), _part(least[half:, half:], own, unit)
    mean = _mean(first, second, half, size)
    parts = (*factor, mean) if mean is not None else factor
    return product(parts) if parts else None


def _mean(first: Ratio | None, second: Ratio | None, half: int, size: int) -> Ratio | None:
    """Return the mean of two parts with `half` and `size - half` bins; a missing ratio is 1."""
    if first is None or second is None:
        alone, bins = (second, size - half) if first is None else (first, half)
        return None if alone is None else sampled(alone, bins / size)
    if first == second and 2 * half == size:
        one, times = (first.ratio, first.steps) if isinstance(first, OneOfSteps) else (first, 1)
        return OneOfSteps(one, 2 * times)
    return WeightedMean(first, second, half / size)
