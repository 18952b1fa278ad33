"""Compiled kernels: all pairs of two distributions, added or multiplied, collected in the cells of a grid.

Every term is non-negative, so each cell's mass and moment carry a relative error of at most (number of
additions) x 2^-53, however small the mass.
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
