r"""Choice of a chain of blocks whose covariance is above that of correlated bins: docs/matrix.md.

A path of K blocks of s neighbouring bins has the covariance a between all bins, more by v within a block and
by $v \rho^m$ between blocks at the distance m, and a rest on the diagonal.
"""

import math
from typing import NamedTuple

import numpy as np

from privcore.likelihood_ratio.correlated.chain import ChainMean
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.ratios import Gaussian, OneOfSteps, Ratio, product
from privcore.numerics.rounding import SUMMED

CORRELATIONS = (0.05, *np.arange(0.1, 0.9, 0.02).tolist(), 0.92, 0.94, 0.96, 0.975, 0.985)
SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
MOST_BLOCKS = 256
"""Largest number of blocks of a chain, which takes the time."""
GAPS = 8
"""Number of distances from which the covariance of all bins is tried."""


class Path(NamedTuple):
    """Path of blocks, and the logarithm of its second moment, by which paths are compared.

    Attributes:
        spread: Logarithm of the second moment of the ratio.
        blocks: Number K of blocks.
        size: Number s of bins of a block.
        every: Covariance a of any two bins.
        variance: Variance v of the chain.
        correlation: Correlation of neighbouring blocks.
        own: Variance of a bin beyond a + v.
    """

    spread: float
    blocks: int
    size: int
    every: float
    variance: float
    correlation: float
    own: float

    @property
    def ratio(self) -> Ratio:
        """The ratio, valid from above in direction remove."""
        alone = Gaussian(math.sqrt(self.own)) if self.own > 0.0 else None
        block = OneOfSteps(alone, self.size) if alone and self.size > 1 else alone
        deviation = math.sqrt(math.expm1(min(self.spread, 50.0)))
        chain = ChainMean(block, self.variance, self.correlation, self.blocks, deviation)
        return product((Gaussian(math.sqrt(self.every)), chain)) if self.every > 0.0 else chain


def shortest(covariance: Array) -> Path | None:
    """Return the path with the least second moment, or None if bins are independent or too few.

    Args:
        covariance: Largest covariance at every distance on the cycle, as `majorants.cyclic` returns it.
    """
    bins = covariance.size
    beyond = np.maximum.accumulate(covariance[: bins // 2 + 1][::-1])[::-1]
    falls = [d for d in range(1, bins // 2 + 1) if beyond[d] < beyond[d - 1]]
    if bins < 4 or not falls or beyond[1] <= 0.0:
        return None
    gaps = sorted({falls[round(i)] for i in np.linspace(0, len(falls) - 1, GAPS)})
    found = [
        path
        for gap in gaps
        for size in SIZES
        if 2 <= (bins - gap + 1) // size <= MOST_BLOCKS
        for path in _paths(covariance, float(beyond[gap]), size, (bins - gap + 1) // size)
    ]
    return min(found, default=None)


def _paths(covariance: Array, every: float, size: int, blocks: int) -> list[Path]:
    """Return the paths for some correlations, each with the least variance that suffices."""
    m = np.arange(1, blocks)
    distances = m[:, None] * size + np.arange(1 - size, size)  # of bins of two blocks
    wanted = np.maximum(covariance[distances].max(axis=1) - every, 0.0) * (1.0 + SUMMED)
    inside = max(0.0, float(covariance[1:size].max(initial=0.0)) - every) * (1.0 + SUMMED)
    needed = wanted > 0.0
    if not np.any(needed):
        return []
    paths = []
    for correlation in CORRELATIONS:
        with np.errstate(over="ignore", divide="ignore"):
            variance = max(inside, float(np.max(wanted[needed] / correlation ** m[needed])))
        if not variance <= covariance[0]:  # a larger diagonal would cost more than it gives
            continue
        own = max(0.0, float(covariance[0]) - every - variance)
        logs = every + variance * correlation**m
        total = math.exp(every + variance + own) + (size - 1.0) * math.exp(every + variance)
        total += 2.0 * size * float(np.sum((1.0 - m / blocks) * np.exp(logs)))
        spread = math.log(total / (blocks * size))
        paths.append(Path(spread, blocks, size, every, variance, correlation, own))
    return paths
