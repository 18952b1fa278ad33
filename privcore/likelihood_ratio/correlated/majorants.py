r"""Tractable ratios above a mean of correlated lognormal ratios: docs/matrix.md.

Let $r_d$ be the largest entry of the covariance G at the distance d on the cycle of the bins. The ratio
of all bins is the mean, over all rotations, of those of a pattern of bins; by Jensen's inequality it is below
the largest of these in convex order, and by Kahane's inequality that one is below the ratio of the pattern
with larger entries.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.ratios import Gaussian, OneOfSteps, Ratio, product
from privcore.numerics.rounding import SUMMED

POWERS = (1.0, 3.0, 8.0, 20.0)
"""Multiples of the covariances whose second moments choose the patterns."""


def cyclic(gram: Array) -> Array:
    """Return the largest covariance at every distance on the cycle of the bins, rounded up.

    Args:
        gram: Gram matrix over the variance of the noise; it may err by `SUMMED`.

    Example:
        >>> cyclic(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 2.0]])).round(6).tolist()
        [2.0, 1.0, 1.0]
    """
    size = gram.shape[0]
    along = np.array([max(gram.diagonal(d).max(), gram.diagonal(-d).max()) for d in range(size)])
    found: Array = np.maximum(along, along[-np.arange(size) % size])
    return found * (1.0 + 2.0 * SUMMED)


class Blocks(NamedTuple):
    """Pattern of equal blocks of bins.

    Attributes:
        number: Number of blocks.
        size: Number of bins of a block.
        every: Covariance of any two bins.
        inside: Covariance of two bins of a block.
        own: Variance of a bin.
    """

    number: int
    size: int
    every: float
    inside: float
    own: float

    def spread(self, power: float) -> float:
        """Return the logarithm of the second moment of the mean, if all covariances are multiplied."""
        bins = self.number * self.size
        logs = [power * self.own, power * self.inside, power * self.every]
        weights = [1.0, self.size - 1.0, bins - float(self.size)]
        largest = max(logs)
        terms = [w * math.exp(log - largest) for w, log in zip(weights, logs, strict=True)]
        return largest + math.log(math.fsum(terms) / bins)

    @property
    def ratio(self) -> Ratio:
        """The ratio: lognormal factors of all bins, of blocks and of bins, and means of the last two."""
        inner = (*_mean(_factor(self.own - self.inside), self.size), *_factor(self.inside - self.every))
        return product((*_mean(inner, self.number), *_factor(self.every)))


def _factor(variance: float) -> tuple[Ratio, ...]:
    """Return a lognormal factor, if it has a variance."""
    return (Gaussian(math.sqrt(variance)),) if variance > 0.0 else ()


def _mean(factors: tuple[Ratio, ...], times: int) -> tuple[Ratio, ...]:
    """Return the mean of independent products of these factors, if there are any."""
    alone = product(factors) if factors else None
    return () if alone is None else (OneOfSteps(alone, times) if times > 1 else alone,)


def blocks(covariance: Array) -> list[Blocks]:
    """Return the patterns of blocks that may give the least dominating ratio.

    Args:
        covariance: Largest covariance at every distance on the cycle, as `cyclic` returns it.
    """
    found = list(_all_blocks(covariance))
    chosen = [min(found, key=lambda each: each.spread(power)) for power in POWERS]
    return list(dict.fromkeys(chosen))


def _all_blocks(covariance: Array) -> Iterator[Blocks]:
    """Yield patterns of blocks: bins at a distance in a block, and blocks with a gap between them."""
    bins, own = covariance.size, float(covariance[0])
    # largest covariance at least at this distance on the cycle
    beyond = np.maximum.accumulate(covariance[: bins // 2 + 1][::-1])[::-1]
    distances = sorted({min(bins // 2, round(1.25**k)) for k in range(1 + 4 * bins.bit_length())} | {1})
    levels = [d for d in range(1, bins // 2 + 1) if beyond[d] < beyond[d - 1]] or [1]
    gaps = sorted({levels[round(i)] for i in np.linspace(0, len(levels) - 1, 12)})
    for apart in distances if bins > 1 else ():
        one = float(beyond[apart])
        yield Blocks(1, bins // apart, one, one, own)
        for size in sorted({round(1.5**k) for k in range(2 * bins.bit_length())}):
            reach = (size - 1) * apart
            for gap in gaps:
                number = bins // (reach + gap)
                if number < 2 or (size > 1 and gap < apart):
                    continue
                inside = float(np.max(covariance[apart : reach + 1 : apart])) if size > 1 else own
                yield Blocks(number, size, float(beyond[gap]), max(inside, float(beyond[gap])), own)
    if bins == 1:
        yield Blocks(1, 1, own, own, own)
