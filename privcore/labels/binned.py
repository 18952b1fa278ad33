"""Distributions of eta with few values: the means of bins from below, and their ends from above."""

import math

import numpy as np

from privcore.distributions.prior import Cells, Prior
from privcore.labels.cells import ends, means
from privcore.labels.poisson_binomial import Array

BINS = 4096
"""Largest number of bins."""


def coarser_and_spread(law: Prior) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return values and weights of a coarser and of a spread distribution, for Jensen's inequality."""
    if law.atoms is None:
        cells = law.cells(BINS)
        assert cells is not None
        return means(cells), ends(cells)
    values, weights = law.atoms
    if values.size <= BINS:
        return (values, weights), (values, weights)
    share = np.floor(np.cumsum(weights) / weights.sum() * math.nextafter(BINS - 1, 0.0))
    starts = np.flatnonzero(np.diff(share + (values > 0.5), prepend=-1.0))
    mass = np.add.reduceat(weights, starts)
    first, last = values[starts], values[np.append(starts[1:], values.size) - 1]
    mean = np.clip(np.add.reduceat(weights * values, starts) / mass, first, last)
    alone = first == last
    cells = Cells(mass=mass, mean=mean, lower=first, upper=np.where(alone, np.nextafter(last, 2.0), last))
    moved, shares = ends(cells)
    return means(cells), (np.minimum(1.0, moved), shares)


def spread(values: Array, weights: Array, nodes: Array) -> Array:
    """Return the weights of nodes to which values are spread such that each keeps its mean."""
    place = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, nodes.size - 2)
    share = np.clip((values - nodes[place]) / (nodes[place + 1] - nodes[place]), 0.0, 1.0)
    total = np.bincount(place, weights * (1.0 - share), nodes.size)
    return np.asarray(total + np.bincount(place + 1, weights * share, nodes.size), dtype=np.float64)
