r"""Distributions of the ratio of k steps out of t that bracket it in convex order, from many thresholds.

The mean of $(R - \kappa)_+$ is a convex function of $\kappa$, and determines the distribution of R. Upper
bounds at the nodes of a grid give an upper distribution: their lower convex hull is still above the function,
and is that of a distribution on the nodes. Of every lower bound, the event gives a line below the function,
and the largest of all lines is that of a lower distribution.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from privcore.likelihood_ratio.allocated.ends import (
    Conditional,
    conditional,
    line_add,
    line_remove,
    upper_add,
    upper_remove,
)
from privcore.likelihood_ratio.allocated.losses import (
    PLACES,
    Losses,
    Participation,
    rounded_losses,
    spread_losses,
)
from privcore.likelihood_ratio.allocated.saddle import Saddle, View
from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.questions import tier
from privcore.likelihood_ratio.steps import Step
from privcore.numerics.rounding import UNIT

ROUNDED = 8.0
"""Counted: roundings for each atom of the sums that compare a distribution with its bounds."""


@dataclass(frozen=True)
class _Point:
    """Value at kappa of the mean of (R - kappa)_+, a call, or of (kappa - R)_+, a put."""

    kappa: float
    value: float
    call: bool

    def slope(self, other: "_Point") -> "_Slope":
        """Return the slope of the chord to the next point."""
        start = self.value + (1.0 - self.kappa) if other.call and not self.call else self.value
        return _Slope((other.value - start) / (other.kappa - self.kappa), other.call)


@dataclass(frozen=True)
class _Slope:
    """Slope of the puts, or of the calls, which is less by 1: each has the digits of its own tail."""

    value: float
    call: bool

    def rise(self, other: "_Slope") -> float:
        """Return by how much the other slope is larger."""
        return other.value - self.value if self.call == other.call else (1.0 + other.value) - self.value


@dataclass(frozen=True)
class _Line:
    """Line a - b kappa below the calls, or b kappa - a below the puts."""

    a: float
    b: float
    call: bool

    def atom(self, other: "_Line") -> tuple[float, float]:
        """Return the kappa at which the next line is met, and the mass there."""
        slopes = [_Slope(-line.b if line.call else line.b, line.call) for line in (self, other)]
        mass = slopes[0].rise(slopes[1])
        if self.call == other.call:
            moment = self.a - other.a if self.call else other.a - self.a
        else:
            moment = 1.0 - self.a - other.a
        return (moment / mass if mass > 0.0 else -math.inf), mass

    def at(self, kappa: float) -> float:
        """Return the value of the line."""
        return self.a - self.b * kappa if self.call else self.b * kappa - self.a


def upper_hull(puts: dict[float, float], calls: dict[float, float]) -> RatioDistribution:
    """Return the distribution of the lower convex hull of upper bounds, by kappa; both meet at kappa = 1."""
    points = [_Point(0.0, 0.0, False), *(_Point(x, puts[x], False) for x in sorted(puts) if x < 1.0)]
    points.append(_Point(1.0, min(puts[1.0], calls[1.0]), False))
    points += (_Point(x, calls[x], True) for x in sorted(calls) if x > 1.0)
    flat = _Slope(0.0, True)
    hull: list[_Point] = []
    for point in points:
        while len(hull) > 1 and hull[-2].slope(hull[-1]).rise(hull[-1].slope(point)) <= 0.0:
            hull.pop()
        hull.append(point)
    while len(hull) > 1 and hull[-2].slope(hull[-1]).rise(flat) <= 0.0:
        hull.pop()
    slopes = [_Slope(0.0, False), *(one.slope(other) for one, other in itertools.pairwise(hull)), flat]
    p = np.array([one.rise(other) for one, other in itertools.pairwise(slopes)])
    x, infinite = np.array([point.kappa for point in hull]), hull[-1].value
    if not float(p.min()) > 0.0:
        raise LikelihoodRangeError
    # The masses are differences of slopes: compare their means of hinges with the bounds.
    means = [_mean(x, p, infinite, point.kappa, point.call) for point in hull[1:]]
    if not min(means) > 0.0:
        raise LikelihoodRangeError
    ratios = [point.value / mean for point, mean in zip(hull[1:], means, strict=True)]
    factor = max(*ratios, 1.0 / float(p.sum()), 1.0 / (float(p @ x) + infinite), 1.0)
    return RatioDistribution(
        x=x, p=p, infinite=infinite, mass_error=math.log(factor) + ROUNDED * x.size * UNIT
    )


def lower_lines(left: list[tuple[float, float]], right: list[tuple[float, float]]) -> RatioDistribution:
    """Return the distribution of the largest of the lines below the puts and of those below the calls."""
    lines = [_Line(a, b, False) for a, b in sorted(left, key=lambda line: line[1])]
    lines += (_Line(a, b, True) for a, b in sorted(right, key=lambda line: -line[1]))
    kept: list[_Line] = []
    for line in lines:
        if kept and kept[-1].atom(line)[1] <= 0.0:
            continue
        while len(kept) > 1 and kept[-2].atom(kept[-1])[0] >= kept[-1].atom(line)[0]:
            kept.pop()
        kept.append(line)
    atoms = np.array([one.atom(other) for one, other in itertools.pairwise(kept)])
    x, p = atoms[:, 0], atoms[:, 1]
    if not (float(x.min()) >= 0.0 and np.all(np.diff(x) > 0.0)):
        raise LikelihoodRangeError
    between = x[:-1] + 0.5 * np.diff(x)
    pairs = [
        (_mean(x, p, 0.0, float(kappa), line.call), line.at(float(kappa)))
        for line, kappa in zip(kept[1:-1], between, strict=True)
    ]
    ratios = [mean / bound if bound > 0.0 else math.inf for mean, bound in pairs]
    factor = max(*ratios, float(p.sum()), float(p @ x), 1.0)
    return RatioDistribution(x=x, p=p, mass_error=math.log(factor) + ROUNDED * x.size * UNIT)


def _mean(x: Array, p: Array, infinite: float, kappa: float, call: bool) -> float:
    """Return the mean of (X - kappa)_+, or of (kappa - X)_+."""
    return float(p @ np.maximum(x - kappa, 0.0)) + infinite if call else float(p @ np.maximum(kappa - x, 0.0))


APART = 1.0
"""Distance of two centres, in standard deviations of the sums."""
MOST_CENTRES = 200
FAR = 0.6
"""Share of the logarithm of the tail from which on"""
COARSER = 2.0
"""nodes are farther apart by this factor, and the degree of the places is a quarter."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """Resolution of a distribution of k out of t.

    Attributes:
        degree: Degree of the places of the expected number of participations.
        nodes: Distance of two nodes in standard deviations of the sums of losses.
        lattice: Spacing of the losses in standard deviations of the loss of a step.
        fineness: Width of the cells of the ratio of one step, in local standard deviations.
    """

    degree: int
    nodes: float
    lattice: float
    fineness: float


LEVELS = (
    Level(degree=0, nodes=0.2, lattice=0.15, fineness=0.05),
    Level(degree=16, nodes=0.1, lattice=0.1, fineness=0.03),
    Level(degree=32, nodes=0.06, lattice=0.06, fineness=0.02),
)
"""Resolutions of the distribution of one epoch, for several epochs."""
MANY = 6.0
"""Variance of the number of participations from which its place decides little."""
LEVELS_OF_MANY = (
    Level(degree=0, nodes=0.2, lattice=0.15, fineness=0.05),
    Level(degree=0, nodes=0.1, lattice=0.1, fineness=0.03),
    Level(degree=16, nodes=0.07, lattice=0.08, fineness=0.03),
)
"""The same for many participations."""
APART_OF_CELLS = 1.3
"""Distance of two nodes over the width of a cell of a product."""


def levels_of(participations: int, steps: int) -> tuple[Level, ...]:
    """Return the resolutions of k out of t, the coarsest first."""
    return LEVELS if participations * (1.0 - participations / steps) < MANY else LEVELS_OF_MANY


def level_of(participations: int, steps: int, fineness: float) -> Level:
    """Return the resolution, between those of `levels_of`, that suits products in cells of a width.

    Args:
        participations: Number of steps k that use the example.
        steps: Number of steps t.
        fineness: Width of a cell in local standard deviations.
    """
    levels = levels_of(participations, steps)[::-1]
    known = [level.nodes for level in levels]
    nodes = float(np.clip(APART_OF_CELLS * fineness, known[0], known[-1]))
    return Level(
        degree=next(level.degree for level in levels if level.nodes >= nodes),
        nodes=nodes,
        lattice=float(np.interp(nodes, known, [level.lattice for level in levels])),
        fineness=float(np.interp(nodes, known, [level.fineness for level in levels])),
    )


@lru_cache(maxsize=16)
def k_of_t(step: Step, participations: int, steps: int, tail: float, level: Level) -> RatioBracket:
    """Return the bracket of the ratio of one epoch; the cached result is shared.

    Args:
        step: Mechanism of a step.
        participations: Number of steps k that use the example, 1 < k < t.
        steps: Number of steps t.
        tail: Mass or mean that may lie beyond the nodes at either end.
        level: Resolution of the distributions.

    Raises:
        LikelihoodRangeError: The ratios exceed the range of doubles, or there are too many cells.
    """
    choice = Participation(participations=participations, steps=steps, epochs=1)
    base = step.ratio(Resolution(fineness=level.fineness, tail=tail * tier(1.0 / steps)))
    centres = _centres(View(base.upper, choice), math.log(tail))
    far = [centre.log_delta < FAR * math.log(tail) for centre in centres]
    nodes = _nodes(centres, [level.nodes * (COARSER if each else 1.0) for each in far])
    puts: dict[float, float] = {}
    calls: dict[float, float] = {}
    left, right = [(0.0, 0.0)], [(0.0, 0.0)]
    nearest = np.abs(np.subtract.outer(nodes, [centre.epsilon for centre in centres])).argmin(axis=1)
    for place, centre in enumerate(centres):
        near = nodes[nearest == place]
        if near.size == 0:
            continue
        spacing = level.lattice * centre.deviation / math.sqrt(choice.steps)
        degree = level.degree // 4 if far[place] else level.degree
        above = _cells(spread_losses(base.upper, centre.rate, spacing), choice, centre, degree)
        below = _cells(rounded_losses(base.lower, centre.rate, spacing), choice, centre, degree)
        for node in near:
            kappa = math.exp(node)
            if node >= 0.0:
                calls[kappa] = upper_remove(above, node)
                right.append(line_remove(below, node))
            if node <= 0.0:
                puts[kappa] = upper_add(above, -node) * kappa
                left.append(line_add(below, -node))
    upper, lower = upper_hull(puts, calls), lower_lines(left, right)
    laws = [
        replace(
            law,
            mass_error=law.mass_error + steps * (one.mass_error + PLACES),
            value_error=law.value_error + participations * (one.value_error + PLACES),
            drift_remove=participations * one.drift_remove,
            drift_add=steps * one.drift_add,
        )
        for law, one in ((lower, base.lower), (upper, base.upper))
    ]
    return RatioBracket(lower=laws[0], upper=laws[1])


def _cells(losses: Losses, choice: Participation, centre: Saddle, degree: int) -> Conditional:
    """Return the cells near a centre, with a smaller degree of their places if there are too many."""
    cells = conditional(losses, choice, centre, degree)
    while cells is None and degree:
        degree //= 4
        cells = conditional(losses, choice, centre, degree)
    if cells is None:
        raise LikelihoodRangeError
    return cells


def _centres(view: View, log_tail: float) -> list[Saddle]:
    """Return centres of sums from one tail to the other."""
    middle = view.at(-0.5)
    found = [middle]
    for side in (1.0, -1.0):
        centre, tilt = middle, -0.5
        while centre.log_delta > log_tail or -1.0 <= tilt <= 0.0:
            tilt += side * APART / centre.deviation
            centre = view.at(tilt)
            if len(found) >= MOST_CENTRES or abs(centre.epsilon) > math.log(LARGEST_RATIO):
                raise LikelihoodRangeError
            found.append(centre)
    return sorted(found, key=lambda centre: centre.epsilon)


def _nodes(centres: list[Saddle], apart: list[float]) -> Array:
    """Return the logarithms of the nodes, among them 0, with distances in deviations at the centres."""
    epsilons = np.array([centre.epsilon for centre in centres])
    widths = np.array(apart) * [centre.deviation for centre in centres]
    found = [0.0]
    for side, end in ((1.0, epsilons[-1]), (-1.0, epsilons[0])):
        node = 0.0
        while side * (end - node) > 0.0:
            node += side * float(np.interp(node, epsilons, widths))
            found.append(node)
    return np.sort(np.array(found))
