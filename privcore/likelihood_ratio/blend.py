"""Mixtures of likelihood ratios: a part of a run that follows one of several, chosen at random."""

from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    PICTURE,
    UNDERFLOW,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    conditional_means,
    lowest_value,
    mean_preserving_spread,
)
from privcore.likelihood_ratio.grid import choose_edges
from privcore.likelihood_ratio.kernel import Array, coarsen, collect
from privcore.likelihood_ratio.ratios import Ratio
from privcore.numerics.rounding import MEAN_AT_INFINITY, UNIT


@dataclass(frozen=True)
class Blend(Ratio):
    """Ratio of a part that follows one of several ratios, chosen at random and revealed.

    A ratio dominates the true one if it has at least the true weights; their sum may exceed 1.
    """

    weights: tuple[float, ...]
    ratios: tuple[Ratio, ...]

    def build(self, res: Resolution) -> RatioBracket:
        return _blended(self.weights, [ratio.bracket(res) for ratio in self.ratios], res)

    @property
    def width(self) -> float:
        return max(ratio.width for ratio in self.ratios)

    @property
    def combinations(self) -> int:
        return sum(ratio.combinations for ratio in self.ratios)

    @property
    def levels(self) -> int:
        return max(ratio.levels for ratio in self.ratios) + 1

    @property
    def copies(self) -> int:
        return max(ratio.copies for ratio in self.ratios)


def _blended(weights: tuple[float, ...], parts: list[RatioBracket], res: Resolution) -> RatioBracket:
    """Return the bracket of the mixture, with the atoms of all parts in the cells of one grid."""
    pictures = [
        coarsen(part.lower.x, w * part.lower.p, PICTURE) for w, part in zip(weights, parts, strict=True)
    ]
    x, p = (np.concatenate(each) for each in zip(*pictures, strict=True))
    order = np.argsort(x, kind="stable")
    lowest = min(lowest_value(part.upper) for part in parts)
    highest = max(float(part.upper.x[-1]) for part in parts)
    edges = choose_edges(x[order], p[order], res.fineness, res.tail, False, lowest, highest)
    if edges.size < 2 or not edges[-1] <= LARGEST_RATIO:
        raise LikelihoodRangeError
    lower = _cells(weights, [part.lower for part in parts], edges)
    upper = _cells(weights, [part.upper for part in parts], edges)
    return RatioBracket(lower=conditional_means(*lower), upper=mean_preserving_spread(*upper))


def _cells(
    weights: tuple[float, ...], parts: list[RatioDistribution], edges: Array
) -> tuple[RatioDistribution, Array, int]:
    """Return the mixture of distributions in cells, with their moments and the number of additions."""
    mass, moment = np.zeros(edges.size), np.zeros(edges.size)
    for weight, part in zip(weights, parts, strict=True):
        found = collect(part.x, weight * part.p, np.ones(1), np.ones(1), edges, False, True)
        mass, moment = mass + found[0], moment + found[1]
    atoms = sum(part.x.size for part in parts)
    pairs = list(zip(weights, parts, strict=True))
    lost = UNDERFLOW * atoms  # a product of two tiny masses may have become 0
    cells = RatioDistribution(
        x=edges,
        p=mass,
        infinite=sum(weight * part.infinite for weight, part in pairs) * (1.0 + MEAN_AT_INFINITY),
        mass_error=max(part.mass_error for part in parts) + 2.0 * UNIT,
        value_error=max(part.value_error for part in parts),
        drift_remove=1.01 * sum(weight * part.drift_remove for weight, part in pairs)
        + lost * float(edges[-1]),
        drift_add=1.01 * sum(weight * part.drift_add for weight, part in pairs) + lost,
    )
    return cells, moment, atoms + len(parts)
