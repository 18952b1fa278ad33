r"""Mean excesses of sums of independent signed numbers, from above.

Shuffled batches need $\mathbb E (\sum_i D_i - m)_+$ for independent copies of a number D of either sign
(`allocated.shuffled`). The functional rises in D and is convex, so moving mass upwards only raises it, and so
does a mean-preserving spread. Masses are kept on nodes that lie at or above the true values; cells of
outcomes are spread to their ends, mass below a lowest node moves up to it, and of a value beyond the highest
node the excess is kept as a mean, since $(a + b)_+ \le a_+ + b$ for $b \ge 0$.

Every rounding goes upwards: masses and moments are sums of terms of one sign, so they have relative errors,
and nodes move by relative errors. Nothing cancels, however small the excess is.
"""

import math
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.distribution import PICTURE, UNDERFLOW
from privcore.likelihood_ratio.grid import MOST_CELLS, Array, all_pairs, coarsen, collect, spread
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import UNIT

_FAR = np.geomspace(1.0, 1e100, 150)
"""Distances beyond a picture, in units of its own, at which widths of cells are stated."""


@dataclass(frozen=True, kw_only=True)
class SignedLaw:
    """Distribution of a signed number, from above.

    Attributes:
        x: Values, ascending.
        p: Masses, which may add up to a little more than 1.
        beyond: Mean excess of the values over the largest of `x`.
    """

    x: Array
    p: Array
    beyond: float


@dataclass(frozen=True, kw_only=True)
class SumCells:
    """Choice of the cells; it affects the tightness, and `low` also the validity.

    Attributes:
        fineness: Width of a cell in local scales of the distribution.
        tail: Mean that may lie beyond the highest node.
        low: Mass below -`low` is moved up.
        least: Smallest scale that matters.
        kinks: Values at which an edge is placed, since sums have atoms there.
    """

    fineness: float
    tail: float
    low: float
    least: float
    kinks: tuple[float, ...]


@compiled()
def scales(x: Array, p: Array, least: float) -> tuple[Array, Array]:
    r"""Return places, far beyond the atoms too, and the width of a cell at each in units of the fineness.

    With d the distance from the median, b half of the distance of the quartiles and e the mean excess
    (shortfall on the left), it is $\sqrt{(d + 1.5 b) e}$ as in `grid`, but e is at most d + b: cells of a
    heavy tail have a constant ratio to d. The width grows from place to place by at most their distance.

    Args:
        x: Atoms of a picture of the distribution, ascending.
        p: Masses of the atoms, not all 0.
        least: Smallest scale that matters.
    """
    x, p = x[p > 0.0], p[p > 0.0]
    below, above = np.cumsum(p), np.cumsum(p[::-1])[::-1]
    below_moment, above_moment = np.cumsum(p * x), np.cumsum((p * x)[::-1])[::-1]
    low, middle, high = np.searchsorted(below, np.array([0.25, 0.5, 0.75]) * below[-1])
    body = max(0.74 * (x[high] - x[low]), least)
    far = _FAR.size
    place, width = np.empty(x.size + 2 * far), np.empty(x.size + 2 * far)
    for k in range(x.size):
        distance = abs(x[k] - x[middle])
        mean = x[k] - below_moment[k] / below[k] if k < middle else above_moment[k] / above[k] - x[k]
        mean = min(max(mean, 0.05 * body + 0.005 * distance), distance + body)
        place[far + k] = x[k]
        width[far + k] = math.sqrt((distance + 1.5 * body) * mean)
    end = far + x.size - 1
    for k in range(far):
        place[far - 1 - k] = x[0] - (x[middle] - x[0] + body) * _FAR[k]
        width[far - 1 - k] = max(width[far], 0.1 * (x[middle] - place[far - 1 - k]))
        place[end + 1 + k] = x[-1] + (x[-1] - x[middle] + body) * _FAR[k]
        width[end + 1 + k] = max(width[end], 0.1 * (place[end + 1 + k] - x[middle]))
    for k in range(1, place.size):
        width[k] = min(width[k], width[k - 1] + place[k] - place[k - 1])
    for k in range(place.size - 2, -1, -1):
        width[k] = min(width[k], width[k + 1] + place[k + 1] - place[k])
    return place, width


def quantiles(x: Array, p: Array, shares: tuple[float, ...]) -> list[float]:
    """Return the smallest atoms below which, with them, are these shares of the mass.

    Args:
        x: Atoms, ascending.
        p: Their masses.
        shares: The shares, in (0, 1).

    Example:
        >>> quantiles(np.array([0.0, 1.0, 2.0]), np.array([0.2, 0.7, 0.1]), (0.1, 0.5))
        [0.0, 1.0]
    """
    below = np.cumsum(p)
    at = np.searchsorted(below, np.multiply(shares, below[-1]))
    return [float(value) for value in x[np.minimum(at, x.size - 1)]]


@compiled()
def steps_between(start: float, end: float, place: Array, width: Array, fineness: float) -> Array:
    """Return edges from `start` to `end` or a little beyond, at most `MOST_CELLS` of them."""
    edges = np.empty(MOST_CELLS)
    edges[0] = start
    size, j, v = 1, 0, start
    while v < end and size < edges.size:
        while j < place.size - 2 and place[j + 1] <= v:
            j += 1
        share = min(max((v - place[j]) / (place[j + 1] - place[j]), 0.0), 1.0)
        v += max(fineness * (width[j] + share * (width[j + 1] - width[j])), 1e-13 * abs(v))
        edges[size] = v
        size += 1
    return edges[:size]


@compiled()
def _edges_of_sum(
    x: Array, p: Array, start: float, highest: float, fineness: float, tail: float, least: float
) -> Array:
    """Return the edges of the cells for a sum, the first one below all values, from a picture of it.

    Args:
        x: Atoms of the picture, ascending.
        p: Their masses; they may be 0.
        start: The lowest node.
        highest: The largest value.
        fineness: Width of a cell in local scales; wider if the cells were too many.
        tail: Mean that may lie beyond the last edge.
        least: Smallest scale that matters.
    """
    x, p = x[p > 0.0], p[p > 0.0]
    end, above, moment = x[-1], 0.0, 0.0
    for k in range(x.size - 1, -1, -1):
        above += p[k]
        moment += p[k] * x[k]
        if moment - x[k] * above > 1e-8 * tail:  # the picture has a shorter tail
            break
        end = x[k]
    end = min(end, highest) if end > start else highest
    place, width = scales(x, p, least)
    edges = steps_between(start, end, place, width, fineness)
    while edges[-1] < end:
        fineness *= 2.0
        edges = steps_between(start, end, place, width, fineness)
    return np.append(start - 1e-9 * abs(start) - least, edges)


def added(a: SignedLaw, b: SignedLaw, cells: SumCells) -> SignedLaw:
    """Return a distribution above the sum of two independent numbers.

    Args:
        a: Distribution of one number.
        b: Distribution of the other; the same object for a square, which takes half of the time.
        cells: Choice of the cells.
    """
    square = a is b
    picture = coarsen(a.x, a.p, PICTURE)
    x, p = all_pairs(*picture, *(picture if square else coarsen(b.x, b.p, PICTURE)), False)
    lowest, highest = float(a.x[0] + b.x[0]), float(a.x[-1] + b.x[-1])
    start = max(lowest, -cells.low)
    edges = _edges_of_sum(x, p, start, highest, cells.fineness, cells.tail, cells.least)
    kinks = [kink for kink in cells.kinks if start < kink < edges[-1]]
    edges = np.unique(np.append(edges, kinks))
    mass, moment = collect(a.x, a.p, b.x, b.p, edges, square, False)
    # Counted: sums of at most as many terms as atoms, a difference and two products, twice for the quotient.
    more = 1.0 + 4.0 * (a.x.size + b.x.size + 32) * UNIT
    edges, moved = edges[1:], float(mass[0])
    p, beyond = spread(edges, mass[1:] * more, moment[1:] * more * more)
    p[0] += moved * more
    lost = UNDERFLOW * a.x.size * b.x.size  # a product of two tiny masses may have become 0
    p[-1] += lost
    both = a.beyond * float(b.p.sum()) + b.beyond * float(a.p.sum())
    keep = p > 0.0
    return SignedLaw(
        # A sum errs by u of itself; nodes that move by 8 u of themselves move all that is between them.
        x=edges[keep] + 8.0 * UNIT * np.abs(edges[keep]),
        p=p[keep],
        beyond=(both + beyond + lost * max(0.0, highest - float(edges[-1]))) * more,
    )


def mean_excess(a: SignedLaw, b: SignedLaw, level: float) -> float:
    """Return an upper bound of the mean of the positive part of a sum of two numbers minus a level >= 0."""
    level *= 1.0 - 32.0 * UNIT
    edges = np.array([min(float(a.x[0] + b.x[0]), level) - 1.0, level])
    _, moment = collect(a.x, a.p, b.x, b.p, edges, a is b, False)
    lost = UNDERFLOW * a.x.size * b.x.size * max(0.0, float(a.x[-1] + b.x[-1]))
    both = a.beyond * float(b.p.sum()) + b.beyond * float(a.p.sum())
    return float((moment[1] + both + lost) * (1.0 + 4.0 * (a.x.size + b.x.size + 32) * UNIT))


def sum_of(one: SignedLaw, times: int, cells: SumCells) -> SignedLaw:
    """Return a distribution above the sum of independent copies.

    Args:
        one: Distribution of one number.
        times: Number of copies, >= 1.
        cells: Choice of the cells of sums.
    """
    total = one
    for bit in bin(times)[3:]:
        total = added(total, total, cells)
        if bit == "1":
            total = added(total, one, cells)
    return total


def excess_of_sum(
    one: SignedLaw, times: int, level: float, cells: SumCells, last: SignedLaw | None = None
) -> float:
    """Return an upper bound of the mean of the positive part of a sum of copies minus a level >= 0.

    Args:
        one: Distribution of one number.
        times: Number of independent copies, >= 1.
        level: The level; it may have 16 roundings.
        cells: Choice of the cells of sums.
        last: Distribution of one number more, if any.

    Example:
        >>> coin = SignedLaw(x=np.array([-1.0, 1.0]), p=np.array([0.5, 0.5]), beyond=0.0)
        >>> cells = SumCells(fineness=0.01, tail=1e-12, low=8.0, least=0.1, kinks=(0.0,))
        >>> round(excess_of_sum(coin, 4, 0.0, cells), 3)
        0.75
    """
    parts = [sum_of(one, times // 2, cells)] * 2 if times > 1 else []
    parts += [one] * (times % 2) + ([last] if last else [])
    while len(parts) > 2:
        parts = [added(parts[0], parts[1], cells), *parts[2:]]
    nothing = SignedLaw(x=np.zeros(1), p=np.ones(1), beyond=0.0)
    return mean_excess(parts[0], parts[1] if len(parts) > 1 else nothing, level)
