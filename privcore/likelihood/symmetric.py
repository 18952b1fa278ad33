r"""The likelihood ratio of k steps out of t, from below: elementary symmetric means of one-step ratios.

With $e_i$ the elementary symmetric polynomial, the ratio of k out of t is $e_k(X_1..X_t) / \binom tk$. Of
every part of n steps one keeps, in cells, the conditional means of $e_i / \binom ni$ for all $i \le k$; two
parts combine by Vandermonde's identity, whose weights are hypergeometric. Which cell an outcome falls in is
all that is kept of it, so the result is a garbling whatever the cells. They are cut along the conditional
mean of the final ratio: what one would want to know at the end.
"""

import math
from dataclasses import dataclass

import numpy as np

from privcore.compiled import compiled
from privcore.likelihood.grid import choose_edges
from privcore.likelihood.kernel import Array
from privcore.likelihood.law import PICTURE, ROUNDING, Law, LikelihoodRangeError, Resolution

SMALLEST_MASS = 1e-200
"""Atoms below are dropped, which only lowers both directions, before their moments lose digits."""
SMALLEST_VALUE = 1e-150
"""What the underflow of a value, below 1e-300, can move E(1 - kappa X)_+, for every kappa up to 1e147."""
LARGEST_THRESHOLD = 338.0
"""Logarithm of that kappa: the epsilon beyond which a garbling of k of t says nothing."""


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Some of the steps: masses of cells, shape (N,), and the means of e_0, e_1, ..., shape (N, m + 1)."""

    steps: int
    p: Array
    means: Array
    mass_error: float
    combinations: int


def chosen(base: Law, participations: int, steps: int, res: Resolution) -> Law:
    """Return a garbling of the ratio of some steps chosen at random out of many.

    Args:
        base: A garbling of the ratio of one step, its values ascending.
        participations: Steps that use the example, 1 <= k <= steps.
        steps: Steps among which they are chosen.
        res: Width of the cells in local standard deviations, and what may be cut off.

    Raises:
        LikelihoodRangeError: Products of ratios exceed the range of doubles.
    """
    first = _Part(
        steps=1,
        p=base.p,
        means=np.stack((np.ones_like(base.x), base.x), axis=1),
        mass_error=base.mass_error,
        combinations=0,
    )
    part, most = first, base.p.size
    for bit in bin(steps)[3:]:
        part = _combined(part, part, participations, steps, res)
        if bit == "1":
            part = _combined(part, first, participations, steps, res)
        most = max(most, part.p.size)
    x = part.means[:, participations]
    order = np.argsort(x)
    # A mean of e_i is a sum of non-negative products of two; by induction its logarithm errs by at most
    # i (combinations + 1) times the rounding of one combination, and by i times that of a base value.
    one = 4.0 * (2 * most + 8 * participations + 32) * ROUNDING
    return Law(
        x=x[order],
        p=part.p[order],
        mass_error=part.mass_error,
        value_error=participations * (base.value_error + (part.combinations + 1) * one),
        drift_remove=participations * base.drift_remove,
        drift_add=participations * base.drift_add + SMALLEST_VALUE,
    )


def _combined(a: _Part, b: _Part, participations: int, steps: int, res: Resolution) -> _Part:
    """Return two disjoint parts of the steps as one, in cells along the mean of the final ratio."""
    n = a.steps + b.steps
    size = min(n, participations) + 1
    split = _vandermonde(a.steps, b.steps, a.means.shape[1], b.means.shape[1], size)
    final = _hypergeometric(n, steps - n, participations, size)
    index = np.add.outer(np.arange(split.shape[0]), np.arange(split.shape[1]))
    weights = split * np.append(final, np.zeros(split.shape[0] + split.shape[1]))[index]
    with np.errstate(over="ignore", invalid="ignore"):
        edges = _edges(a, b, weights, res)
        mass, moments = _collect(a.p, a.means, a.means @ weights, b.p, b.means, edges, split, size)
        means = moments[mass > SMALLEST_MASS] / mass[mass > SMALLEST_MASS, None]
        rank = means @ final
    if not np.all(np.isfinite(means)) or not np.all(np.isfinite(rank)):
        raise LikelihoodRangeError
    order = np.argsort(rank)
    return _Part(
        steps=n,
        p=mass[mass > SMALLEST_MASS][order],
        means=means[order],
        mass_error=a.mass_error + b.mass_error + 2.0 * (a.p.size + b.p.size + 16) * ROUNDING,
        combinations=a.combinations + 1,
    )


def _edges(a: _Part, b: _Part, weights: Array, res: Resolution) -> Array:
    """Return the edges of the cells, from all pairs of two coarse pictures."""
    (pa, ua), (pb, ub) = _coarse(a), _coarse(b)
    x = ((ua @ weights) @ ub.T).ravel()
    if not np.all(np.isfinite(x)):
        raise LikelihoodRangeError
    order = np.argsort(x)
    edges = choose_edges(x[order], np.outer(pa, pb).ravel()[order], res.fineness, res.tail, False, 0.0, 0.0)
    if edges.size < 2:
        raise LikelihoodRangeError
    return edges


def _coarse(part: _Part) -> tuple[Array, Array]:
    """Return about `PICTURE` atoms, neighbours merged, fewer at the two ends."""
    sizes = np.arange(part.p.size)
    width = np.minimum(math.ceil(part.p.size / PICTURE), 1 + np.minimum(sizes, sizes[::-1]) // 3)
    starts = np.flatnonzero(np.diff(np.floor(np.cumsum(1.0 / width) + 1e-9), prepend=-1.0))
    p = np.add.reduceat(part.p, starts)
    return p, np.add.reduceat(part.p[:, None] * part.means, starts, axis=0) / p[:, None]


def _hypergeometric(n: int, rest: int, draws: int, size: int) -> Array:
    """Return the probabilities that 0, 1, ... of the draws without replacement fall in the first n.

    By ratios of neighbours, in time that does not depend on n; only where cells are cut rests on it.
    """
    least = max(0, draws - rest)
    i = np.arange(least, size - 1, dtype=float)
    growth = np.log((n - i) * (draws - i)) - np.log((i + 1.0) * (rest - draws + i + 1.0))
    logarithm = np.append(0.0, np.cumsum(growth))
    pmf = np.exp(logarithm - np.max(logarithm))
    return np.concatenate((np.zeros(least), pmf / np.sum(pmf)))


@compiled()
def _vandermonde(n: int, m: int, left: int, right: int, size: int) -> Array:
    """Return C(n, a) C(m, b) / C(n + m, a + b) for a < left, b < right, a + b < size, else 0.

    By ratios of neighbours: a difference of logarithms of factorials would lose digits for many steps.
    """
    table = np.zeros((left, right))
    table[0, 0] = 1.0
    for a in range(left):
        for b in range(min(right, size - a)):
            if b > 0:
                table[a, b] = table[a, b - 1] * ((m - b + 1) / b * ((a + b) / (n + m - a - b + 1)))
            elif a > 0:
                table[a, 0] = table[a - 1, 0] * ((n - a + 1) / (n + m - a + 1))
    return table


@compiled(error_model="numpy")
def _collect(
    pa: Array, ua: Array, wa: Array, pb: Array, ub: Array, edges: Array, split: Array, size: int
) -> tuple[Array, Array]:
    """Return per cell the mass, and the moments of e_0, ..., e_(size - 1), of all pairs of two parts."""
    left, right = ua.shape[1], ub.shape[1]
    mass = np.zeros(edges.size)
    moments = np.zeros((edges.size, size))
    held = np.zeros(right)
    for i in range(pa.size):
        cell, next_cell = -1, 0
        held_mass = 0.0
        for j in range(pb.size + 1):
            if j < pb.size:
                v = 0.0
                for b in range(right):
                    v += wa[i, b] * ub[j, b]
                if cell < 0 or v < edges[cell] or (cell + 1 < edges.size and v >= edges[cell + 1]):
                    next_cell = int(np.searchsorted(edges, v, side="right")) - 1
            else:
                next_cell = -1
            if next_cell != cell:
                if cell >= 0:
                    mass[cell] += pa[i] * held_mass
                    for a in range(left):
                        factor = pa[i] * ua[i, a]
                        for b in range(min(right, size - a)):
                            moments[cell, a + b] += factor * split[a, b] * held[b]
                held[:] = 0.0
                held_mass = 0.0
                cell = next_cell
            if j < pb.size:
                held_mass += pb[j]
                for b in range(right):
                    held[b] += pb[j] * ub[j, b]
    return mass, moments
