"""Grids of cells, and the compiled kernels that collect all pairs of two distributions in their cells.

Every term is non-negative, so each cell's mass and moment carry a relative error of at most (number of
additions) x 2^-53, however small the mass.

The choice affects tightness only, never validity. Moving a cell of width w to its ends or to its conditional
mean changes the profile by w^2 / 12 times its curvature. Relative to the profile at x, and measured in
epsilon relative to epsilon, this is about w^2 / (12 |x - bulk| e(x)) with e the mean excess E[X - x | X > x]
(on the left the mean shortfall). So w is chosen proportional to the square root of |x - bulk| e(x), which is
the standard deviation for a Gaussian, and grows with x in heavy tails.
"""

import numpy as np
from numpy.typing import NDArray

from privcore.numerics.compiled import compiled

Array = NDArray[np.float64]


@compiled()
def collect(
    xa: Array, pa: Array, xb: Array, pb: Array, edges: Array, square: bool, product: bool
) -> tuple[Array, Array]:
    """Return, per cell, mass and moment about its left end of a sum or product of two distributions.

    The moment is the mean of v - left times the mass, so its rounding is relative to the width of the cell.

    Args:
        xa: Values of the first distribution, ascending, shape (n,), non-negative.
        pa: Masses of these values.
        xb: Values of the second distribution, ascending, shape (m,), non-negative.
        pb: Masses of these values.
        edges: Left ends of the cells, ascending, the first 0; the last cell has no right end.
        square: Whether the two distributions are the same, so that half of the pairs suffice.
        product: Whether to multiply instead of add.
    """
    right = np.empty(edges.size)  # by hand: each function of numpy takes longer to compile than this kernel
    for k in range(edges.size - 1):
        right[k] = edges[k + 1]
    right[edges.size - 1] = np.inf
    mass = np.zeros(edges.size)
    moment = np.zeros(edges.size)
    one = np.uintp(1)  # unsigned indices need no test for negative values at every access
    first = np.uintp(0)
    for i in range(np.uintp(xa.size)):
        begin = i if square else np.uintp(0)
        slope = xa[i] if product else 1.0
        shift = 0.0 if product else xa[i]
        v = slope * xb[begin] + shift
        while v >= right[first]:
            first += one
        cell = first
        left = edges[cell]
        edge = right[cell]
        m = 0.5 * pb[begin] if square else pb[begin]  # the diagonal counts once, every other pair twice
        f = m * (v - left)
        weight = 2.0 * pa[i] if square else pa[i]
        for j in range(begin + one, np.uintp(xb.size)):
            v = slope * xb[j] + shift
            if v >= edge:
                mass[cell] += weight * m
                moment[cell] += weight * f
                m = 0.0
                f = 0.0
                cell += one
                while v >= right[cell]:
                    cell += one
                left = edges[cell]
                edge = right[cell]
            m += pb[j]
            f += pb[j] * (v - left)
        mass[cell] += weight * m
        moment[cell] += weight * f
    return mass, moment


@compiled()
def spread(edges: Array, mass: Array, moment: Array) -> tuple[Array, float]:
    """Return masses on the edges that keep the mean of every cell, and the mean moved to infinity.

    This is a mean-preserving spread, so the result dominates the distribution in the cells. The mass beyond
    the last edge is moved to this edge and its excess mean to infinity, as a limit of spreads.

    Args:
        edges: Left ends of the cells, ascending; the last cell has no right end.
        mass: Mass of every cell.
        moment: Moment of every cell about its left end.
    """
    last = edges.size - 1
    p = np.zeros(edges.size)
    for k in range(last):
        to_right = min(moment[k] / (edges[k + 1] - edges[k]), mass[k])
        p[k] += mass[k] - to_right
        p[k + 1] += to_right
    p[last] += mass[last]
    return p, moment[last]


@compiled(error_model="numpy")
def coarsen(x: Array, p: Array, atoms: int) -> tuple[Array, Array]:
    """Return about `atoms` atoms: groups of neighbours at their means, with smaller groups at the ends."""
    group = max(1, (x.size + atoms - 1) // atoms)
    mass = np.zeros(x.size)
    moment = np.zeros(x.size)
    size = 0
    held = 0
    for k in range(x.size):
        mass[size] += p[k]
        moment[size] += p[k] * x[k]
        held += 1
        if held >= min(group, 1 + min(k, x.size - 1 - k) // 3):
            size += 1
            held = 0
    if held > 0:
        size += 1
    for k in range(size):
        moment[k] /= mass[k]
    return moment[:size], mass[:size]


def all_pairs(xa: Array, pa: Array, xb: Array, pb: Array, product: bool) -> tuple[Array, Array]:
    """Return the sum or product of two small distributions, with an atom for every pair, ascending."""
    x = (np.multiply if product else np.add).outer(xa, xb).ravel()
    order = np.argsort(x, kind="stable")  # merges the rows, which ascend
    return x[order], np.multiply.outer(pa, pb).ravel()[order]


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
