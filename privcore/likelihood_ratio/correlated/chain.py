r"""Mean of lognormal ratios along a stationary Markov chain, from above, in direction remove: docs/matrix.md.

The ratio is $\frac1K \sum_{k=1}^K e^{Y_k - v/2} B_k$ with a Gaussian chain Y of variance v and correlation
$\rho^{|i - k|}$, and independent ratios B of blocks. With the sum S so far, the mean of $(X - \kappa)_+$
given (Y, S) is convex in Y and in S and grows with both. So the chain moves on a grid of (Y, S): moving mass
to the two neighbouring points with its mean kept, or upwards, raises it.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.ratios import Ratio
from privcore.likelihood_ratio.steps import NODES, WEIGHTS
from privcore.numerics.rounding import SUMMED, UNIT

STATES = 0.35
"""Distance of neighbouring values of Y, in standard deviations of a step of the chain."""
MOST_STATES = 250
LOWEST = 5.0
"""Standard deviations below the mean to which smaller values of Y are raised."""
BLOCK = 0.7
"""Width of the cells of the ratio of a block, in local standard deviations."""
NARROW = 0.5
"""Width of the cells of S near 1, in standard deviations of X over the root of the number of blocks."""
WIDEST = 0.05
"""Largest width of these cells."""
GROWTH = 0.04
"""Growth of the cells of S above 1, relative to the distance from 1."""
MOST_SUMS = 1000
LARGEST = 1e60
"""Largest value of S on the grid."""
UNDERFLOW = 1e-200
"""More than the mean of X in products that underflow."""
FARTHEST = 1500.0
"""Half of the square of a distance in standard deviations from which a density underflows."""


@dataclass(frozen=True)
class ChainMean(Ratio):
    """Ratio that dominates blocks along a chain; only the upper distribution in direction remove is valid.

    Attributes:
        block: Ratio of a block, or None if it is 1.
        variance: Variance v of the chain, > 0.
        correlation: Correlation of neighbouring blocks, in (0, 1).
        blocks: Number K of blocks.
        deviation: Approximate standard deviation of the ratio, which chooses the grid.
    """

    block: Ratio | None
    variance: float
    correlation: float
    blocks: int
    deviation: float

    def build(self, res: Resolution) -> RatioBracket:
        law = self._law(res)
        return RatioBracket(lower=law, upper=law)

    @property
    def width(self) -> float:
        return math.sqrt(self.variance)

    @property
    def combinations(self) -> int:
        return 8 * self.blocks

    @property
    def levels(self) -> int:
        return 1

    def _law(self, res: Resolution) -> RatioDistribution:
        """Return the upper distribution."""
        count, v = self.blocks, self.variance
        part = (
            _one()
            if self.block is None
            else self.block.bracket(Resolution(fineness=BLOCK, tail=res.tail)).upper
        )
        far = -float(scipy.special.ndtri(res.tail / count**2))
        y = self._states(far)
        sums = self._sums(far, float(part.x[-1]))
        added = np.exp(y - 0.5 * v)[:, None] * part.x / count
        moves, excess = _additions(sums, added, part.p)
        start, lost = _spread(y, np.zeros(1), math.sqrt(v))
        p = np.zeros((y.size, sums.size))
        p[:, 0] = start[:, 0]
        infinite = float(lost[1][0]) * math.exp(-0.5 * v)  # the mean of all that follows
        step = math.sqrt(v * (1.0 - self.correlation**2))
        kernel, lost = _spread(y, self.correlation * y, step)
        beyond = lost[1] * math.exp(-0.5 * v)
        for left in range(count, 0, -1):
            infinite += float(np.sum(excess * p)) + part.infinite / count * float(
                p.sum(axis=1) @ np.exp(y - 0.5 * v)
            )
            p = (moves @ p.ravel()).reshape(p.shape)
            if left > 1:
                infinite += float(lost[0] @ (p @ sums)) + float(beyond @ p.sum(axis=1))
                p = kernel @ p
        masses = p.sum(axis=0)
        keep = masses > 0.0
        terms = int(moves.getnnz(axis=1).max()) + 2 * y.size + sums.size
        largest = max(abs(float(y[0])), abs(float(y[-1]))) + v
        densities = 16.0 * (64.0 + FARTHEST) + 256.0 * largest / step
        error = count * (part.mass_error + (2.0 * (terms + 64) + densities) * UNIT)
        return RatioDistribution(
            x=sums[keep],
            p=masses[keep],
            infinite=infinite * (1.0 + SUMMED),
            mass_error=error,
            value_error=part.value_error + count * (16.0 + 8.0 * largest) * UNIT,
            drift_remove=(part.drift_remove + UNDERFLOW) * 2.0 * (float(masses @ sums) + infinite),
            drift_add=1.0,  # the mean of the values is above 1
        )

    def _states(self, far: float) -> Array:
        """Return the values of Y on the grid; the last one is at least v."""
        root = math.sqrt(self.variance)
        low, high = -LOWEST * root, self.variance + far * root
        step = STATES * root * math.sqrt(1.0 - self.correlation**2)
        return np.linspace(low, high, min(MOST_STATES, 2 + int((high - low) / step)))

    def _sums(self, far: float, largest: float) -> Array:
        """Return the values of S on the grid, the first 0: equal cells up to 1.2, then growing ones."""
        v = self.variance
        m = np.arange(self.blocks)
        near = np.exp(v * self.correlation**m) @ np.where(m > 0, 2.0, largest) / self.blocks
        high = 1.0 + near * math.exp(far * math.sqrt(v))
        if not high <= LARGEST:
            raise LikelihoodRangeError
        cell = max(min(WIDEST, NARROW * self.deviation / math.sqrt(self.blocks)), 2.4 / MOST_SUMS)
        even = np.arange(0.0, 1.2, cell)
        growth = GROWTH
        while True:
            number = math.ceil(math.log1p(growth * high / cell) / math.log1p(growth))
            if number < MOST_SUMS // 2:
                break
            growth *= 1.3
        steps = cell * (1.0 + growth) ** np.arange(1, number + 1)
        return np.concatenate((even, even[-1] + np.cumsum(steps)))


def _one() -> RatioDistribution:
    """Return the distribution of the number 1."""
    return RatioDistribution(x=np.ones(1), p=np.ones(1))


def _additions(sums: Array, added: Array, p: Array) -> tuple["scipy.sparse.csr_matrix", Array]:
    """Return the matrix that adds a block to S for every state, and the mean beyond the grid that it leaves.

    Args:
        sums: Values of S.
        added: Increments, a row for every state.
        p: Masses of the increments.
    """
    states, size = added.shape[0], sums.size
    value = sums[None, :, None] + added[:, None, :]  # states, sums, increments
    excess = np.maximum(value - sums[-1], 0.0) @ p
    value = np.minimum(value, sums[-1])
    left = np.clip(np.searchsorted(sums, value, side="right") - 1, 0, size - 2)
    share = np.clip((value - sums[left]) / (sums[left + 1] - sums[left]), 0.0, 1.0)
    row = left + size * np.arange(states)[:, None, None]
    column = np.broadcast_to((np.arange(states)[:, None] * size + np.arange(size))[:, :, None], row.shape)
    rows = np.concatenate((row.ravel(), row.ravel() + 1))
    columns = np.concatenate((column.ravel(), column.ravel()))
    masses = np.concatenate((((1.0 - share) * p).ravel(), (share * p).ravel()))
    shape = (states * size, states * size)
    return scipy.sparse.csr_matrix((masses, (rows, columns)), shape=shape), excess


def _spread(y: Array, means: Array, deviation: float) -> tuple[Array, tuple[Array, Array]]:
    r"""Return normal distributions on the points y, above the true ones, and the rest beyond the last point.

    The mass between two points goes to both with its mean kept, and the mass below the first point to this
    point. The integrals have positive terms; 12 nodes integrate each to the last digit.

    Args:
        y: Points, ascending at equal distances.
        means: Means of the distributions.
        deviation: Standard deviation.

    Returns:
        Masses, a column for each mean; the probabilities and the means of $e^Y$ beyond the last point.
    """
    gap = float(y[1] - y[0])
    pieces = math.ceil(max(1.0, gap / deviation))
    found = np.zeros((y.size, means.size))
    for piece in range(pieces):
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            share = (piece + 0.5 + 0.5 * float(node)) / pieces
            z = (y[:-1, None] + share * gap - means) / deviation
            density = np.exp(-0.5 * z * z) * (
                0.5 * float(weight) * gap / pieces / deviation / math.sqrt(2.0 * math.pi)
            )
            found[:-1] += (1.0 - share) * density
            found[1:] += share * density
    found[0] += scipy.special.ndtr((y[0] - means) / deviation)
    last = (y[-1] - means) / deviation
    probability = scipy.special.ndtr(-last)
    found_mean = np.exp(means + 0.5 * deviation**2) * scipy.special.ndtr(deviation - last)
    return found, (probability, found_mean)
