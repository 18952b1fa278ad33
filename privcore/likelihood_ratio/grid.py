"""Edges of the cells: fine in the region that determines the privacy profile, coarse elsewhere.

The choice affects tightness only, never validity. Moving a cell of width w to its ends or to its conditional
mean changes the profile by w^2 / 12 times its curvature. Relative to the profile at x, and measured in
epsilon relative to epsilon, this is about w^2 / (12 |x - bulk| e(x)) with e the mean excess E[X - x | X > x]
(on the left the mean shortfall). So w is chosen proportional to the square root of |x - bulk| e(x), which is
the standard deviation for a Gaussian, and grows with x in heavy tails.
"""

import numpy as np

from privcore.likelihood_ratio.kernel import Array
from privcore.numerics.compiled import compiled

SMALLEST_BULK = 1e-147
"""Smallest median of a likelihood ratio; the product of two stays within the range of doubles."""
MOST_CELLS = 4096
"""Largest number of cells, which limits the work of one combination; a coarser grid is still valid."""


def choose_edges(
    x: Array, p: Array, fineness: float, tail: float, product: bool, lowest: float, highest: float
) -> Array:
    """Return the edges of the cells for a distribution, given a coarse picture of it.

    Args:
        x: Atoms of the picture, ascending, non-negative.
        p: Masses of the atoms, about 1 in total.
        fineness: Width of a cell in local standard deviations, such as 1/20.
        tail: The last edge leaves at most about this much mean beyond it, the first positive edge about
            this much mass below it.
        product: Whether the distribution will be multiplied; then distances above the bulk are also in log x.
        lowest: No positive value lies below this; an edge goes there if mass may lie below the picture.
        highest: No value lies above this; an edge goes exactly there if the picture ends there.

    Returns:
        Edges, ascending, the first 0; empty if the bulk of the distribution lies beyond `SMALLEST_BULK`.
    """
    with np.errstate(all="ignore"):  # as in compiled code
        positive = x > 0.0
        x, p = x[positive], p[positive]
        if x.size == 0:
            return np.empty(0)
        below, above = np.cumsum(p), np.cumsum(p[::-1])[::-1].copy()
        below_moment, above_moment = np.cumsum(p * x), np.cumsum((p * x)[::-1])[::-1].copy()
        middle = min(x.size - 1, int(np.searchsorted(below, 0.5 * below[-1])))
        q50 = float(x[middle])
        if q50 < SMALLEST_BULK:
            return np.empty(0)
        bulk = q50 - below_moment[middle] / below[middle]
        if bulk < 2e-15 * q50:  # half of the mass is on the smallest atom
            bulk = max(min(above_moment[middle] / above[middle] - q50, q50), 1e-15 * q50)
    sums = below, below_moment, above, above_moment
    return _edges(x, *sums, q50, float(bulk), fineness, tail, product, lowest, highest)


@compiled(error_model="numpy")
def _edges(  # noqa: PLR0913, PLR0917  all of them numbers and arrays, which compile in a second less
    x: Array,
    below: Array,
    below_moment: Array,
    above: Array,
    above_moment: Array,
    q50: float,
    bulk: float,
    fineness: float,
    tail: float,
    product: bool,
    lowest: float,
    highest: float,
) -> Array:
    """Return the edges of `choose_edges` for positive atoms, given sums up to and from each atom."""
    n = x.size
    low = 0
    while low < n - 1 and below[low + 1] <= tail:
        low += 1
    high = n - 1
    while high > low and above_moment[high - 1] <= tail:
        high -= 1
    rate = np.empty(high - low + 1)
    for k in range(low, high + 1):
        excess = above_moment[k] / above[k] - x[k]
        shortfall = x[k] - below_moment[k] / below[k]
        distance = x[k] - q50
        body = bulk
        if x[k] < q50 or product:  # in proportion to x, like epsilon
            distance = abs(np.log(x[k] / q50)) * x[k]
            body = bulk * x[k] / q50
        scale = max(min(excess, shortfall), 0.05 * body + 0.005 * distance)
        rate[k - low] = 1.0 / (fineness * np.sqrt((distance + 1.5 * body) * scale))
    place = np.empty(rate.size)
    for k in range(rate.size):
        place[k] = np.log(max(x[low + k], 1e-300))
    count = np.empty(rate.size)
    count[0] = 0.0
    for k in range(1, rate.size):  # integrate in log x: a tail has cells of constant ratio
        per_ratio = 0.5 * (rate[k] * x[low + k] + rate[k - 1] * x[low + k - 1])
        per_unit = 0.5 * (rate[k] + rate[k - 1])
        cells = min(per_ratio * (place[k] - place[k - 1]), per_unit * (x[low + k] - x[low + k - 1]))
        count[k] = count[k - 1] + cells
    size = min(max(8, int(np.ceil(count[-1]))), MOST_CELLS)
    inner = _at_equal_counts(count, place, size)
    for k in range(size + 1):
        inner[k] = np.exp(inner[k])
    if abs(inner[size] - highest) < 1e-12 * highest:  # otherwise `highest` may exceed the edge by rounding
        inner[size] = highest
    if not (0.0 < lowest < inner[0] and (inner[0] < 1.5 * lowest or below[low] > tail)):
        lowest = inner[0]
    return _from_zero(lowest, inner)


@compiled()
def _from_zero(lowest: float, inner: Array) -> Array:
    """Return 0, the lowest edge and the inner edges, without edges that almost coincide."""
    edges = np.empty(inner.size + 2)
    edges[0], edges[1] = 0.0, lowest
    size = 2
    for value in inner:
        if value > edges[size - 1] * (1.0 + 1e-14):
            edges[size] = value
            size += 1
    return edges[:size]


@compiled(error_model="numpy")
def _at_equal_counts(count: Array, place: Array, size: int) -> Array:
    """Return the places where a rising piecewise linear count is 0, 1 / size, ..., 1 of its last value.

    The same bits as `np.interp` at `np.linspace`, whose compilation takes a second.
    """
    found = np.empty(size + 1)
    step = count[-1] / size
    last = count.size - 1
    j = 0
    for k in range(size + 1):
        wanted = count[-1] if k == size else k * step
        while j < last and count[j + 1] <= wanted:
            j += 1
        if j == last or count[j] == wanted:
            found[k] = place[j]
        else:
            slope = (place[j + 1] - place[j]) / (count[j + 1] - count[j])
            found[k] = slope * (wanted - count[j]) + place[j]
    return found
