r"""The loss of one step of Poisson sampling on a lattice, with the moments of the ratio at every point.

A step with the ratio X has the loss $a = \ln(1 - z + z X)$ if its example is sampled with the rate z. For an
upper distribution, X is spread to values whose losses are multiples of a spacing, which keeps its mean. For a
lower one, the losses are rounded to such multiples at random, a post-processing, and the means of X are kept.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution
from privcore.likelihood_ratio.kernel import Array
from privcore.numerics.rounding import UNIT

MOST_LOSSES = 2**17
"""Largest number of points of a lattice; a finer spacing than this allows is refused."""
PLACES = 64.0 * UNIT
"""Counted: relative error of a value by the spread of an atom to the lattice, 4 u for its place in the cell
and 16 u for the two values of the lattice; and of the mean of X at a point."""


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Points of the lattice, ascending, and moments of the ratio of one step there.

    Attributes:
        spacing: Distance of two points, in nats.
        index: Multiple of the spacing of every point.
        moments: Masses of the points without the example, and their products with the mean and, for an upper
            distribution, with the square of X, shape (2, n) or (3, n).
        chance: Probability that the example was sampled, given the point.
        distribution: The distribution of X to which `moments` belongs, whose errors by rounding count.
    """

    spacing: float
    index: NDArray[np.int64]
    moments: Array
    chance: Array
    law: RatioDistribution


def spread_losses(base: RatioDistribution, rate: float, spacing: float) -> Losses:
    r"""Return the losses of an upper distribution: a mean-preserving spread of X to the lattice.

    Args:
        base: An upper distribution of the ratio of one step.
        rate: Sampling rate z of the losses, in (0, 1).
        spacing: Largest spacing; it is reduced until X = 0 is a point of the lattice.

    Raises:
        LikelihoodRangeError: The lattice has too many points.

    Example:
        >>> base = RatioDistribution(x=np.array([0.5, 3.0]), p=np.array([0.8, 0.2]))
        >>> losses = spread_losses(base, rate=0.5, spacing=0.4)
        >>> [float(round(moment.sum(), 9)) for moment in losses.moments[:2]]
        [1.0, 1.0]
    """
    lowest = -math.log1p(-rate)
    below = max(1, math.ceil(lowest / spacing))
    spacing = lowest / below
    above = math.ceil(math.log1p(rate * max(0.0, float(base.x[-1]) - 1.0)) / spacing) + 1
    if not below + above < MOST_LOSSES:
        raise LikelihoodRangeError
    index = np.arange(-below, above + 1)
    # e^a = (1 - z) e^(a - lowest a), so small values have their digits
    x = np.expm1((index + below) * spacing) * ((1.0 - rate) / rate)
    left = np.clip(np.searchsorted(x, base.x, side="right") - 1, 0, x.size - 2)
    right = np.clip((base.x - x[left]) / (x[left + 1] - x[left]), 0.0, 1.0)
    p = np.bincount(left, weights=base.p * (1.0 - right), minlength=x.size)
    p[1:] += np.bincount(left, weights=base.p * right, minlength=x.size)[:-1]
    return _losses(spacing, index, np.stack((p, p * x, p * x * x)), rate, base)


def rounded_losses(base: RatioDistribution, rate: float, spacing: float) -> Losses:
    """Return the losses of a lower distribution, rounded at random to one of the two nearest points.

    The expected loss of a step is kept: errors of many steps with the same loss would add up otherwise.

    Args:
        base: A lower distribution of the ratio of one step.
        rate: Sampling rate z of the losses, in (0, 1).
        spacing: Distance of two points, in nats.

    Raises:
        LikelihoodRangeError: The lattice has too many points.

    Example:
        >>> base = RatioDistribution(x=np.array([0.5, 3.0]), p=np.array([0.8, 0.2]))
        >>> rounded_losses(base, rate=0.5, spacing=0.4).index.tolist()  # losses -0.288 and 0.693
        [-1, 0, 1, 2]
    """
    exact = np.log1p(rate * (base.x - 1.0)) / spacing
    place = np.floor(exact).astype(np.int64)
    if not np.ptp(place) < MOST_LOSSES:
        raise LikelihoodRangeError
    least, up = int(place.min()), exact - place
    index = np.arange(least, int(place.max()) + 2)
    moments = [
        np.bincount(place - least, weights=value * (1.0 - up), minlength=index.size)
        + np.bincount(place - least + 1, weights=value * up, minlength=index.size)
        for value in (base.p, base.p * base.x)
    ]
    return _losses(spacing, index, np.stack(moments), rate, base)


def _losses(
    spacing: float, index: NDArray[np.int64], moments: Array, rate: float, base: RatioDistribution
) -> Losses:
    """Return the points that have mass."""
    used = moments[0] > 0.0
    index, moments = index[used], moments[:, used]
    chance = 1.0 - (1.0 - rate) * np.exp(-index * spacing)
    return Losses(spacing=spacing, index=index, moments=moments, chance=np.clip(chance, 0.0, 1.0), law=base)
