r"""Lower distributions of the ratio of two mixtures of shifted Gaussians: one epoch of shuffled batches.

For shuffled batches, the pair is $\tfrac1t \sum_j N(2 e_j)$ against $\tfrac1t \sum_j N(e_j)$ in $t$
dimensions. With respect to $N(0)$ both are means of independent densities, $A = \tfrac1t \sum_j e^{2 s Z_j -
2 s^2}$ and $B = \tfrac1t \sum_j e^{s Z_j - s^2 / 2}$. For every part of m steps, the algorithm stores the
conditional means of the vector (A, B) in cells. Two parts are combined by a weighted mean. Only the cell of
an outcome is stored, which is a post-processing of both mixtures, so the result is a lower distribution for
every choice of cells. The cells are intervals of the ratio that results if the other steps are typical: at
their conditional means without the few largest outputs. Unconditional means are inflated by large outputs,
which are rare; with them, epsilon in direction add was up to half as large in the cases tried. Other pairs
have other multiples of $e_j$: for an example that is replaced by its opposite, 1 and -1.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    PICTURE,
    LikelihoodRangeError,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array, choose_edges
from privcore.likelihood_ratio.steps import NODES, WEIGHTS
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import UNIT

SMALLEST_MASS = 1e-140
"""Smaller cells are dropped, which only lowers both directions, before their moments lose digits."""
LARGEST_EXPONENT = 370.0
"""Largest size of the logarithm of a density, so that a density times `SMALLEST_MASS` is a normal double."""
RARE = 3.0
"""Number of the largest outputs, among all steps, that are left out of the typical means."""
WIDEST = 2.0**-3
"""Widest cell of one output, in standard deviations, on which 12 nodes integrate to the last digit."""


@dataclass(frozen=True, kw_only=True)
class _Batches:
    """Some of the steps: masses of cells under N(0), and the means of the densities A and B in them.

    The cells are those of outcomes whose masses differ from the exact ones by a factor of at most
    e^`mass_error`, and whose densities by a factor of at most e^`value_error`. The rounding of the sums of a
    cell is a factor of all its outcomes.
    """

    steps: int
    p: Array
    a: Array
    b: Array
    mass_error: float
    value_error: float


@dataclass(frozen=True, kw_only=True)
class _Rest:
    """Number of all steps, and the typical means of the densities A and B of a step.

    They decide which cells are used, and so only about tightness.
    """

    steps: int
    a: float
    b: float


@lru_cache(maxsize=32)
def opposed(
    s: float, steps: int, res: Resolution, used: float = 1.0, means: tuple[float, float] = (2.0, 1.0)
) -> RatioDistribution:
    """Return a lower distribution of the ratio of (mean_j N(2 e_j)) to (mean_j N(e_j)), to be shared.

    If an epoch leaves out examples, both are mixed with N(0), where no output has the example.

    Args:
        s: Inverse noise multiplier, > 0.
        steps: Number t of steps.
        res: Width of the cells in local standard deviations, and the mass that may lie beyond them.
        used: Share of the examples that an epoch uses, in (0, 1].
        means: Multiples of e_j of both mixtures, each of size at most 2.

    Raises:
        LikelihoodRangeError: The densities exceed the range of doubles.

    Example:
        >>> law = opposed(0.5, 100, Resolution(fineness=0.1, tail=1e-10))
        >>> round(float(law.p @ law.x), 12)
        1.0
    """
    shifts = means[0] * s, means[1] * s
    first, rest = _one_step(shifts, res), _typical(shifts, steps)
    part = first
    for bit in bin(steps)[3:]:
        part = _combined(part, part, rest, res)
        if bit == "1":
            part = _combined(part, first, rest, res)
    a, b = (used * mean + (1.0 - used) for mean in (part.a, part.b))
    x = a / b
    order = np.argsort(x)
    return RatioDistribution(
        x=x[order],
        p=(part.p * b)[order],
        mass_error=part.mass_error + part.value_error + 8.0 * UNIT,
        value_error=2.0 * part.value_error + 8.0 * UNIT,
    )


def _typical(shifts: tuple[float, float], steps: int) -> _Rest:
    """Return the means of the densities of an output below the quantile that few of all steps exceed."""
    most = float(scipy.special.ndtri(max(0.5, 1.0 - RARE / steps)))
    below = float(scipy.special.ndtr(most))
    a, b = (float(scipy.special.ndtr(most - mean)) / below for mean in shifts)
    return _Rest(steps=steps, a=a, b=b)


def _one_step(shifts: tuple[float, float], res: Resolution) -> _Batches:
    """Return one step in cells of its output.

    In the inner cells, masses and moments are integrals of normal densities, by Gauss-Legendre quadrature;
    the two outer cells have closed forms. The edges are multiples of a power of 2, so they and the widths are
    exact. A node and its distance from a mean err by 4 roundings of numbers up to the largest distance L, so
    the logarithm of a density errs by at most 6 L^2 roundings with its square, and s may have two roundings.
    """
    reach = 0.5 - float(scipy.special.ndtri_exp(math.log(res.tail)))
    low, high = min(0.0, *shifts), max(0.0, *shifts)
    if (high - low) * (reach + 0.5 * (high - low)) > LARGEST_EXPONENT:
        raise LikelihoodRangeError
    width = 2.0 ** math.floor(math.log2(min(WIDEST, res.fineness / max(1.0, 0.5 * (high - low)))))
    z = np.arange(math.floor((low - reach) / width), math.ceil((reach + high) / width) + 1) * width
    means = np.array([0.0, *shifts])[:, None]
    mass = np.zeros((3, z.size + 1))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        at = z[:-1] + (0.5 + 0.5 * node) * width - means
        mass[:, 1:-1] += 0.5 * weight * width * np.exp(-0.5 * at * at) / math.sqrt(2.0 * math.pi)
    mass[:, 0] = scipy.special.ndtr(z[0] - means[:, 0])
    mass[:, -1] = scipy.special.ndtr(means[:, 0] - z[-1])
    mass = mass[:, mass[0] > SMALLEST_MASS]
    largest = reach + high - low + 1.0
    error = (64.0 + 8.0 * largest * largest) * UNIT
    return _Batches(
        steps=1,
        p=np.ascontiguousarray(mass[0]),  # one layout, so that `_collect` is compiled once
        a=mass[1] / mass[0],
        b=mass[2] / mass[0],
        mass_error=error,
        value_error=2.0 * error + UNIT,
    )


def _combined(one: _Batches, other: _Batches, rest: _Rest, res: Resolution) -> _Batches:
    """Return the union of two disjoint parts of the steps, in cells of the ratio that is expected."""
    n = one.steps + other.steps
    share = n / rest.steps
    ends = (1.0 - share) * rest.a, (1.0 - share) * rest.b
    mass, a, b, sums = _collect(
        (one.p, one.a, one.b, one.steps / n),
        (other.p, other.a, other.b, other.steps / n),
        (share, *ends),
        _edges(one, other, rest, res),
        one is other,
    )
    keep = mass > SMALLEST_MASS
    mass, a, b = mass[keep], a[keep] / mass[keep], b[keep] / mass[keep]
    order = np.argsort((share * a + ends[0]) / (share * b + ends[1]))
    rounding = (other.p.size + int(sums.max()) + 32) * UNIT  # all terms of the sums are non-negative
    return _Batches(
        steps=n,
        p=mass[order],
        a=a[order],
        b=b[order],
        mass_error=one.mass_error + other.mass_error + rounding,
        value_error=max(one.value_error, other.value_error) + 2.0 * rounding,
    )


def _edges(one: _Batches, other: _Batches, rest: _Rest, res: Resolution) -> Array:
    """Return the edges of the cells, from all pairs of two coarse pictures."""
    (pa, aa, ba), (pb, ab, bb) = _coarse(one), _coarse(other)
    n = one.steps + other.steps
    share = n / rest.steps
    a = np.add.outer(one.steps / n * aa, other.steps / n * ab).ravel()
    b = np.add.outer(one.steps / n * ba, other.steps / n * bb).ravel()
    x = (share * a + (1.0 - share) * rest.a) / (share * b + (1.0 - share) * rest.b)
    p = np.outer(pa, pb).ravel() * (share * b + (1.0 - share))
    order = np.argsort(x)
    edges = choose_edges(x[order], p[order], res.fineness, res.tail, False, 0.0, 0.0)
    if edges.size < 2 or not edges[-1] <= LARGEST_RATIO:
        raise LikelihoodRangeError
    return edges


def _coarse(part: _Batches) -> tuple[Array, Array, Array]:
    """Return about `PICTURE` atoms: groups of neighbours at their means, smaller groups at the two ends."""
    sizes = np.arange(part.p.size)
    width = np.minimum(math.ceil(part.p.size / PICTURE), 1 + np.minimum(sizes, sizes[::-1]) // 3)
    starts = np.flatnonzero(np.diff(np.floor(np.cumsum(1.0 / width) + 1e-9), prepend=-1.0))
    p = np.add.reduceat(part.p, starts)
    return p, np.add.reduceat(part.p * part.a, starts) / p, np.add.reduceat(part.p * part.b, starts) / p


@compiled(error_model="numpy")
def _collect(
    one: tuple[Array, Array, Array, float],
    other: tuple[Array, Array, Array, float],
    rest: tuple[float, float, float],
    edges: Array,
    square: bool,
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Return, per cell, the mass and the moments of both densities, of all pairs of two parts.

    The neighbouring pairs of a row that lie in the same cell are summed first. The last result is the number
    of these sums in each cell.

    Args:
        one: Masses, means of both densities, and the share of this part among the steps of the two.
        other: The same for the other part.
        rest: Share of both parts among all steps, and the typical contributions of the others to A and B.
        edges: Left ends of the cells in the expected ratio, ascending, the first 0.
        square: Whether the parts are the same; then the diagonal counts once, every other pair twice.
    """
    pa, aa, ba, wa = one
    pb, ab, bb, wb = other
    last = edges.size - 1
    mass, a, b = np.zeros(edges.size), np.zeros(edges.size), np.zeros(edges.size)
    sums = np.zeros(edges.size, dtype=np.int64)
    share, rest_a, rest_b = rest
    begin = 0
    for i in range(pa.size):
        cell = begin
        start = i if square else 0
        m, f, g = 0.0, 0.0, 0.0
        for j in range(start, pb.size):
            u = wa * aa[i] + wb * ab[j]
            v = wa * ba[i] + wb * bb[j]
            ratio = (share * u + rest_a) / (share * v + rest_b)
            if (cell < last and ratio >= edges[cell + 1]) or ratio < edges[cell]:
                mass[cell] += pa[i] * m
                a[cell] += pa[i] * f
                b[cell] += pa[i] * g
                sums[cell] += 1
                m, f, g = 0.0, 0.0, 0.0
                while cell < last and ratio >= edges[cell + 1]:
                    cell += 1
                while cell > 0 and ratio < edges[cell]:
                    cell -= 1
            if j == start:
                begin = cell
            p = 2.0 * pb[j] if square and j != i else pb[j]
            m += p
            f += p * u
            g += p * v
        mass[cell] += pa[i] * m
        a[cell] += pa[i] * f
        b[cell] += pa[i] * g
        sums[cell] += 1
    return mass, a, b, sums
