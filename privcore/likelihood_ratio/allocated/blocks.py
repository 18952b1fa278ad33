r"""Sums of a block of shuffled steps, from above, if gradients depend on the sum so far: docs/shuffling.md.

An adversary of zero-out has one choice in each step, the angle between the example and the displaced one.
With $\theta$ the negative cosine, the step's number is $H_\theta (R_{1 + \theta} - \kappa R_\theta)$ in
direction remove, and $H_\theta (R_\theta - \kappa R_{1 + \theta})$ in direction add, with an independent
lognormal factor H of mean 1. For every convex V, the mean of V(r + D) of all angles of an interval is
at most that of one number D, as for the interval of all angles. So $V_{j-1}(r) = \max_{cells} E V_j(r +
D_{cell})$ from $V_m(r) = r_+$ on bounds every strategy, and $V_0(-c)$, which is convex in c, is the mean
excess over c of a distribution that is above all sums of m steps.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcore.likelihood_ratio.allocated.differences import Branch, factor_law, signed_law
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.potential import from_potential
from privcore.likelihood_ratio.signed import SignedLaw, SumCells, quantiles, scales, steps_between
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import UNIT

ANGLES = (-1.0, -0.75, -0.25, 0.375, 0.75, 0.9375, 1.0)
"""Ends of the cells of the angle, finer where the worst one is; multiples of a power of 2."""
FINE = 0.07
"""Width of the cells of a step, in its local scales."""
TAIL = 1.0
"""Largest width of the cells of sums, in local scales of one step."""
NEAR = 0.15
"""Width of the cells of sums near 0, in local scales of one step."""
FAR = 0.03
"""Growth of the cells of sums: their width times the scale of the whole block, over the square of the sum."""


def branches(direction: str, low: float, high: float) -> tuple[Branch, Branch]:
    """Return the size above and below 0 of a number that is above those of all angles in an interval.

    Args:
        direction: `remove` or `add`.
        low: Smallest negative cosine, in [-1, 1].
        high: Largest negative cosine.
    """

    def rises(angle: float, scaled: bool) -> Branch:
        return Branch(1.0 + angle, angle, scaled, math.sqrt((1.0 - angle) * (1.0 + angle)))

    def falls(angle: float, scaled: bool) -> Branch:
        return Branch(-angle, -1.0 - angle, scaled, math.sqrt((1.0 - angle) * (1.0 + angle)))

    if direction == "remove":
        return rises(high, False), falls(low, True)
    return falls(low, False), rises(high, True)


def summed_block(
    s: float, threshold: float, direction: str, steps: int, rest: int, cells: SumCells
) -> tuple[SignedLaw, SignedLaw | None]:
    """Return distributions above all sums of a block of steps, and of the first steps of a block.

    Args:
        s: Inverse noise multiplier.
        threshold: Threshold kappa of the hockey-stick divergence, >= 1.
        direction: `remove` or `add`.
        steps: Number of steps in a block, >= 1.
        rest: Number of steps of the shorter block; none if 0.
        cells: Choice of the cells.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    cells = replace(cells, fineness=FINE)
    any_angle = signed_law(s, threshold, branches(direction, -1.0, 1.0), steps, cells)
    place, width = scales(any_angle.x, any_angle.p, cells.least)
    unit = NEAR * max(_body(any_angle), float(width.min()))
    scaled = any_angle.x / unit, place / unit, width / unit
    sums = _sums(*scaled, steps, (threshold - 1.0) * steps / unit, cells.low / unit)
    nodes = _nodes(*scaled)
    moves = [
        _moves(sums, *_step(s, threshold, branches(direction, *ends), steps, cells, nodes, unit))
        for ends in pairwise(ANGLES)
    ]
    excess = np.maximum(sums, 0.0)
    shorter = None
    for step in range(1, steps + 1):
        excess = np.maximum.reduce([_applied(excess, *move) for move in moves])
        if step == rest:
            shorter = _with_excess(sums, excess, unit)
    return _with_excess(sums, excess, unit), shorter


def _body(one: SignedLaw) -> float:
    """Return the root mean square distance from the median, without the largest distances."""
    low, middle, high = quantiles(one.x, one.p, (0.01, 0.5, 0.99))
    return math.sqrt(float(one.p @ np.square(np.clip(one.x, low, high) - middle)))


def _sums(x: Array, place: Array, width: Array, steps: int, drift: float, low: float) -> Array:
    """Return the nodes of sums so far: all whole numbers where they mostly are, and fewer beyond."""
    spread = 9.0 * math.sqrt(steps) / NEAR
    ends = spread + float(x[-1]), min(low, drift + spread - float(x[0]))
    equal = math.sqrt(steps / (FAR * NEAR))
    nodes: list[Array] = [np.arange(-math.ceil(equal), math.ceil(drift + equal) + 1.0)]
    for sign, start, end in ((-1.0, 0.0, ends[0]), (1.0, drift, ends[1])):
        if end > start + equal:
            far = np.geomspace(equal, 2.0 * (end - start), 400)
            wide = np.minimum(FAR * NEAR * far * far / steps, TAIL * np.interp(-sign * far, place, width))
            outer = steps_between(equal, end - start, far, np.maximum(1.0, wide), 1.0)
            nodes.append(sign * np.ceil(start + outer))
    return np.unique(np.concatenate(nodes))


def _nodes(x: Array, place: Array, width: Array) -> Array:
    """Return the nodes for the numbers of a step, whole numbers, one of them 0."""
    right = steps_between(0.0, max(2.0, float(x[-1])), place, width, FINE)
    left = steps_between(0.0, max(2.0, -float(x[0])), -place[::-1], width[::-1], FINE)
    return np.unique(np.concatenate((-np.ceil(left), np.ceil(right))))


def _step(
    s: float,
    threshold: float,
    sizes: tuple[Branch, Branch],
    steps: int,
    cells: SumCells,
    nodes: Array,
    unit: float,
) -> tuple[Array, Array, float]:
    """Return masses on the nodes that are above the number of a step, and the mean beyond the last node."""
    one = signed_law(s, threshold, sizes, steps, cells)
    tail = cells.tail / steps
    factors = factor_law(s, sizes[0], tail, True), factor_law(s, sizes[1], tail, False)
    return _onto(nodes, SignedLaw(x=one.x / unit, p=one.p, beyond=one.beyond / unit), factors)


def _onto(nodes: Array, one: SignedLaw, factors: tuple[SignedLaw, SignedLaw]) -> tuple[Array, Array, float]:
    """Return masses on the nodes that are above a number times a factor, and the mean beyond the last node.

    Args:
        nodes: The nodes.
        one: Distribution of the number.
        factors: Those of the factor, from above where the number is positive, and from below where it is not.
    """
    split = int(np.searchsorted(one.x, 0.0))
    p, over = np.zeros(nodes.size), 0.0
    for factor, part in zip(factors, (slice(split, None), slice(split)), strict=True):
        over += _add_products(one.x[part], one.p[part], factor.x, factor.p, nodes, p)
    up = factors[0]
    positive = float(one.p[split:] @ one.x[split:])
    over += one.beyond * (float(up.p @ up.x) + up.beyond) + positive * up.beyond
    more = 1.0 + (one.x.size * up.x.size + 64) * UNIT
    keep = p > 0.0
    return nodes[keep], p[keep] * more, over * more


@compiled()
def _add_products(x: Array, p: Array, factor: Array, mass: Array, nodes: Array, found: Array) -> float:
    """Add the masses of products to both neighbouring nodes, and return the mean beyond the last node."""
    over = 0.0
    last = nodes.size - 1
    for i in range(factor.size):
        j = 0
        for k in range(x.size):
            v = factor[i] * x[k]
            v += 8.0 * UNIT * abs(v)
            while j < last - 1 and nodes[j + 1] < v:
                j += 1
            both = mass[i] * p[k]
            if v <= nodes[0]:
                found[0] += both
            elif v >= nodes[last]:
                found[last] += both
                over += both * (v - nodes[last])
            else:
                width = nodes[j + 1] - nodes[j]
                found[j] += both * ((nodes[j + 1] - v) / width)
                found[j + 1] += both * ((v - nodes[j]) / width)
    return over


class _Moves(NamedTuple):
    """Moves from all sums by one step; the sums from `start` to before `end` follow each other.

    Between those, a number leads by as many nodes: `jump` and `share` are these numbers and their masses. All
    other moves are in `node` and `mass`, those of the sum k from `first[k]` on.
    """

    start: int
    end: int
    jump: NDArray[np.int64]
    share: Array
    first: NDArray[np.int64]
    node: NDArray[np.int64]
    mass: Array
    over: Array
    """Mean beyond the last node."""


def _moves(sums: Array, x: Array, p: Array, beyond: float) -> _Moves:
    """Return the moves of a step from all sums. They are whole numbers, so no sum is rounded."""
    start = int(np.searchsorted(sums, 0.0))
    end = start
    gaps = np.flatnonzero(np.diff(sums) > 1.0)
    start = int(gaps[gaps < start].max(initial=-1)) + 1
    end = int(gaps[gaps >= end].min(initial=sums.size - 1)) + 1
    near = np.abs(x) < end - start
    jump = np.where(near, x, 0.0).astype(np.int64)
    first, node, mass, over = _others(sums, start, end, x, p, jump, near)
    more = 1.0 + (2 * x.size + 64) * UNIT
    return _Moves(start, end, jump[near], p[near] * more, first, node, mass * more, (over + beyond) * more)


@compiled()
def _others(
    sums: Array, start: int, end: int, x: Array, p: Array, jump: NDArray[np.int64], near: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]:
    """Return, for every sum, the nodes to which the other numbers lead, their masses, and the mean beyond.

    A sum between two nodes counts at both, with its mean kept, since the excess is convex; below the lowest
    node it counts there, since the excess rises.
    """
    n = sums.size
    first = np.zeros(n + 1, dtype=np.int64)
    node = np.empty(n * min(n, 2 * x.size), dtype=np.int64)
    mass = np.empty(node.size)
    over = np.zeros(n)
    row = np.zeros(n)
    size = 0
    for k in range(n):
        j, lowest = 0, n
        for i in range(x.size):
            if near[i] and start <= k < end and start <= k + jump[i] < end:
                continue
            v = sums[k] + x[i]
            while j < n - 2 and sums[j + 1] < v:
                j += 1
            lowest = min(lowest, j)
            if v <= sums[0]:
                row[0] += p[i]
            elif v >= sums[n - 1]:
                row[n - 1] += p[i]
                over[k] += p[i] * (v - sums[n - 1])
            else:
                width = sums[j + 1] - sums[j]
                row[j] += p[i] * ((sums[j + 1] - v) / width)
                row[j + 1] += p[i] * ((v - sums[j]) / width)
        for i in range(lowest, min(n, j + 2)):
            if row[i] > 0.0:
                node[size] = i
                mass[size] = row[i]
                size += 1
                row[i] = 0.0
        row[n - 1] = 0.0
        first[k + 1] = size
    return first, node[:size].copy(), mass[:size].copy(), over


@compiled(fastmath={"reassoc", "contract"})
def _applied(  # noqa: PLR0913, PLR0917  all of them numbers and arrays, which compile in a second less
    excess: Array,
    start: int,
    end: int,
    jumps: NDArray[np.int64],
    shares: Array,
    first: NDArray[np.int64],
    node: NDArray[np.int64],
    mass: Array,
    over: Array,
) -> Array:
    """Return the mean excess before a step, from that after it."""
    found = over.copy()
    for k in range(excess.size):
        total = 0.0
        for i in range(first[k], first[k + 1]):
            total += mass[i] * excess[node[i]]
        found[k] += total
    for i in range(jumps.size):
        jump, share = jumps[i], shares[i]
        begin, stop = max(start, start - jump), min(end, end - jump)
        to, of = found[begin:stop], excess[begin + jump : stop + jump]
        for k in range(to.size):
            to[k] += share * of[k]
    return found * (1.0 + (excess.size + jumps.size + 16) * UNIT)


def _with_excess(sums: Array, excess: Array, unit: float) -> SignedLaw:
    """Return a distribution whose mean excess over -r is at least a convex function of r."""
    law = from_potential(-sums[::-1] * unit, excess[::-1] * unit)
    return replace(law, x=law.x + 4.0 * UNIT * np.abs(law.x))
