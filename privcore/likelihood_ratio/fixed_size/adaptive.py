r"""Upper ends for steps with batches of a fixed size, against adversaries who adapt: a few pairs in stages.

Every step of an adversary is dominated by one of a few pairs, the cells: $V_{j+1} = \max_I K_I V_j$ bounds
the profile of j + 1 steps, with $(K h)(\kappa) = E_P h(\kappa / X)$ for the ratio X of a pair. If
$h \ge V_m$ and $K_I h \le (1 + \rho) K_S h + \epsilon$ for all cells, then

$$V_{m + n} \le (1 + \rho)^n (K_S^n h + n \epsilon).$$

So the last step takes a pair S that dominates all cells, and the more steps follow, the fewer cells S must
dominate: docs/notes/fixed-size-batches.md.

All pairs live on a lattice of losses, where a chord between nodes is the profile of a pair. So products of
pairs stay on the lattice, and two of them that are compared at its nodes are compared everywhere.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privcore.likelihood_ratio.chords import from_points, thresholds_of
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    dominating_power,
    dominating_product,
)
from privcore.likelihood_ratio.fixed_size.angles import Angle
from privcore.likelihood_ratio.grid import Array, collect, spread
from privcore.likelihood_ratio.potential import mean_excesses
from privcore.likelihood_ratio.ratios import Ratio
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import SUBNORMAL, UNIT

COSINES = (*(round(-1.0 + 0.1 * k, 1) for k in range(20)), 0.95, 1.0)
"""Cosines of angles that end the cells for zero-out."""
BETWEEN = 0.09
"""Distance of the nodes of a step, in local standard deviations."""
SPACING = 0.05
"""Distance of two losses of the lattice, in standard deviations of a step."""
MOST_NODES = 2**16
"""Largest number of losses from the smallest to the largest one of a step."""
FINENESS = (0.014, 0.0125, 0.011)
"""Widths of the cells of products, in local standard deviations, tried in this order."""
WIDER = 1.002
"""Largest quotient of the logarithms of the second moment with cells and without, if the cells are good."""
SHARE = 0.01
"""Share of the profile, and of the delta in question, by which all stages together may raise the bound."""
TAIL = 1e-4
"""Share of the delta in question that may be moved to infinity in all steps together."""
GROWTH, LEAST = 0.25, 256
"""A stage takes this share of the later steps, and at least this part of all steps."""
FURTHER = 2
"""Number of further cells that a pair of the next stage may leave out."""
LARGEST_RANGE, MOST_LOSSES = 500.0, 2**20
"""Largest range of the losses, so that quotients of two ratios are far inside the range of doubles, and
largest number of thresholds, for which the values after all cells take 200 MB."""
WORK = 1000
"""Time, in combinations of two distributions."""
BLOCK = 4096
"""Losses for which a step is computed at once, so that they stay in the cache."""


@dataclass(frozen=True)
class LatticePair:
    """Pair on a lattice of losses, from the side of P.

    Attributes:
        index: Losses with masses, in units of the spacing, ascending whole numbers.
        mass: Their masses under P.
        infinite: Mass under P of the outputs that are impossible under Q.
        short: The profile is at least the bound from which it was made, divided by 1 + `short`, and the mass
            of P differs from 1 by at most `short`.
    """

    index: NDArray[np.int64]
    mass: Array
    infinite: float
    short: float = 0.0

    @property
    def total(self) -> float:
        """Mass of P."""
        return float(np.sum(self.mass)) + self.infinite

    def values(self, spacing: float, first: int, size: int) -> Array:
        """Return the profile at successive thresholds, as sums of positive terms.

        Args:
            spacing: Spacing of the lattice.
            first: Logarithm of the first threshold, in units of the spacing, below all losses.
            size: Number of thresholds, up to above all losses.
        """
        mass = np.zeros(size)
        mass[self.index - first] = self.mass
        above = np.append(np.cumsum(mass[:0:-1])[::-1], 0.0)  # the mass of larger losses
        at = np.arange(size) * -spacing
        terms = above * np.exp(at) * -np.expm1(-spacing)
        found: Array = np.cumsum(terms[::-1])[::-1] * np.exp(-at) + self.infinite
        return found


@compiled()
def after(index: NDArray[np.int64], mass: Array, start: Array, values: Array, margin: int) -> Array:
    """Return the values after one more step, without `margin` of them at both ends.

    Args:
        index: Losses of the step, as whole numbers.
        mass: Their masses under P.
        start: The result so far.
        values: The profile of the later steps.
        margin: Largest size of a loss of the step.
    """
    for begin in range(0, start.size, BLOCK):
        end = min(start.size, begin + BLOCK)
        part = start[begin:end]
        for i in range(0, index.size - index.size % 4, 4):  # four at once, so that sums stay in registers
            at = margin - index[i : i + 4] + begin
            a, b, c, d = (values[at[0] :], values[at[1] :], values[at[2] :], values[at[3] :])
            of = mass[i : i + 4]
            for k in range(np.uintp(part.size)):  # unsigned indices need no test for negative values
                part[k] += (of[0] * a[k] + of[1] * b[k]) + (of[2] * c[k] + of[3] * d[k])
        for i in range(index.size - index.size % 4, index.size):
            moved = values[margin - index[i] + begin :]
            for k in range(np.uintp(part.size)):
                part[k] += mass[i] * moved[k]
    return start


Side = tuple[Angle, Angle]
"""A pair by two steps: one for thresholds from 1 on, and one with P and Q exchanged for those below 1."""


@dataclass(frozen=True)
class AngleCells:
    """Pairs for the steps whose angles are in successive cells, in one direction.

    Attributes:
        alone: For each cell, a pair that dominates its steps.
        joined: For each cell, a pair that dominates its steps and those of all later cells.
    """

    alone: list[Side]
    joined: list[Side]


def cells_of(probability: float, s: float) -> tuple[AngleCells, AngleCells]:
    """Return the cells of a step in direction remove and in direction add, where P and Q are exchanged.

    The excess over thresholds from 1 on grows with the cosine in direction remove, and falls in add.

    Args:
        probability: Batch size over number of examples, in (0, 1).
        s: Inverse noise multiplier.
    """
    steps = [Angle.of(probability, s, cosine) for cosine in COSINES]
    ends, last = list(pairwise(steps)), steps[-1]
    return (
        AngleCells([(high, low.exchanged) for low, high in ends], [(last, low.exchanged) for low, _ in ends]),
        AngleCells([(low.exchanged, high) for low, high in ends], [(low.exchanged, last) for low, _ in ends]),
    )


@dataclass(frozen=True)
class Lattice:
    """Logarithms of thresholds at which profiles of a step are computed, in units of a spacing.

    Attributes:
        spacing: The unit.
        tops: Thresholds from 1 on, ascending.
        bottoms: Thresholds up to 1, ascending.
        known: Profiles at the thresholds from 1 on.
        known_below: Profiles at the inverse ones of the others.
    """

    spacing: float
    tops: Array
    bottoms: Array
    known: dict[Angle, Array] = field(default_factory=dict)
    known_below: dict[Angle, Array] = field(default_factory=dict)

    @property
    def exchanged(self) -> "Lattice":
        """The lattice for pairs with P and Q exchanged, with the same profiles."""
        return Lattice(self.spacing, -self.bottoms[::-1], -self.tops[::-1], self.known_below, self.known)

    def pair(self, side: Side) -> tuple[RatioDistribution, LatticePair]:
        """Return a pair whose profiles are chords between upper bounds of those of another pair.

        The chords are compared with the profile of the masses, which are differences of slopes.
        """
        over, under = np.exp(self.tops * self.spacing), np.exp(-self.bottoms[::-1] * self.spacing)
        for step, threshold, known in zip(side, (over, under), (self.known, self.known_below), strict=True):
            if step not in known:
                known[step] = step.excess(threshold)
        right = over, self.known[side[0]]
        found = self.known_below[side[1]] / under * (1.0 + 8.0 * UNIT)
        left = np.exp(self.bottoms * self.spacing), found[::-1]
        ratio = from_points(right, left)
        inside = ratio.x > 0.0
        index = np.rint(np.log(ratio.x[inside]) / self.spacing).astype(np.int64)
        x, p = np.exp(index * self.spacing), ratio.p[inside]
        below = 1.0 - x + np.interp(x, *left)
        quotient = np.where(x < 1.0, below, np.interp(x, *right)) / mean_excesses(x, p, ratio.infinite)
        total = float(p @ x) + ratio.infinite
        short = max(float(np.max(quotient)), 1.0 / total, total) - 1.0
        rounding = (8.0 * x.size + 64.0) * UNIT + 8.0 * self.rounding / self.spacing
        return (
            replace(ratio, mass_error=0.0, value_error=self.rounding, drift_remove=0.0),
            LatticePair(index, p * x, ratio.infinite, max(short, 0.0) + rounding),
        )

    @property
    def rounding(self) -> float:
        """Relative error of a threshold."""
        return 4.0 * UNIT * (1.0 + self.spacing * self.reach)

    @property
    def reach(self) -> int:
        """Largest size of a loss of a step, in units of the spacing."""
        return int(max(self.tops[-1], -self.bottoms[0]))


def lattice_of(side: Side, tail: float) -> Lattice:
    """Return a lattice for the pair that dominates all steps.

    Args:
        side: The pair.
        tail: Mean that may be moved to infinity in a step.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    way = dict(zip(("remove", "add"), side, strict=True))

    def profile(direction: str, threshold: float, _: Resolution) -> float:
        return float(way[direction].excess(np.array([threshold]))[0])

    thresholds, found = [], []
    for each, at in zip(side, thresholds_of(profile, 2.0 * side[0].s, tail, BETWEEN), strict=True):
        values = each.excess(at)
        end = max(3, int(np.argmax(np.append(values, 0.0) <= tail)) + 1)
        thresholds.append(at[:end])
        found.append(values[:end])
    over, under = thresholds
    pilot = from_points((over, found[0]), (1.0 / under[::-1], (found[1] / under)[::-1]))
    losses = np.log(pilot.x, where=pilot.x > 0.0, out=np.zeros(pilot.x.size))
    deviation = math.sqrt(max(pilot.p @ np.square(losses), (pilot.p * pilot.x) @ np.square(losses)))
    spacing = max(
        math.log(min(over[1], under[1])),
        SPACING * deviation,
        (math.log(over[-1]) + math.log(under[-1])) / MOST_NODES,
    )
    tops, bottoms = (np.unique(np.append(np.rint(np.log(at) / spacing), 1.0)) for at in thresholds)
    return Lattice(spacing, tops, -bottoms[::-1])


@dataclass(frozen=True)
class AdaptiveSteps(Ratio):
    """Ratio that dominates steps with a batch of a fixed size, if the gradient of an example becomes 0.

    Attributes:
        probability: Batch size over number of examples, in (0, 1).
        s: Inverse noise multiplier.
        steps: Number of steps, at least 1.
        scale: Size of the delta in question.
    """

    probability: float
    s: float
    steps: int
    scale: float

    def build(self, res: Resolution) -> RatioBracket:
        law = dominating(self)
        return RatioBracket(lower=law, upper=law)

    @property
    def width(self) -> float:
        return min(2.0 * self.s, 1.0)  # the time does not grow with s

    @property
    def combinations(self) -> int:
        return WORK

    @property
    def levels(self) -> int:
        return 1


@lru_cache(maxsize=64)
def dominating(run: AdaptiveSteps) -> RatioDistribution:
    """Return the distribution of the ratio of all steps, from the bounds of both directions.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    removing, adding = cells_of(run.probability, run.s)
    lattice = lattice_of(removing.joined[0], TAIL * run.scale / run.steps)
    over, remove = _points(_staged(run, removing, lattice))
    under, add = _points(_alike(run, adding, lattice.exchanged))
    if np.interp(_crossed(over, remove, run.scale), under, add) > run.scale:
        under, add = _points(_staged(run, adding, lattice.exchanged))
    return from_points((over, remove), (1.0 / under[::-1], (add / under)[::-1]))


def _crossed(threshold: Array, profile: Array, delta: float) -> float:
    """Return the first of the thresholds at which a falling profile is at most delta, or the last one."""
    return float(threshold[min(int(np.searchsorted(-profile, -delta)), threshold.size - 1)])


def _outward(error: float) -> float:
    """Return the factor that covers a relative error.

    Raises:
        LikelihoodRangeError: The errors exceed the masses, so that no bound is left.
    """
    if not error < 1.0:
        raise LikelihoodRangeError
    return math.exp(error)


def _points(ratio: RatioDistribution) -> tuple[Array, Array]:
    """Return thresholds from 1 on, and upper bounds of the mean excess over them."""
    x = np.append(0.0, ratio.x)  # so that one of them is below 1
    excess = mean_excesses(x, np.append(0.0, ratio.p), 0.0)
    factor = _outward(ratio.mass_error + ratio.value_error + (8.0 * x.size + 64.0) * UNIT)
    level = x * math.exp(ratio.value_error)
    bound = excess * factor + ratio.infinite * math.exp(ratio.mass_error) + ratio.drift_remove
    at_one = np.interp(1.0, level, bound)
    kept = level > 1.0
    return np.append(1.0, level[kept]), np.minimum(np.append(at_one, bound[kept]), 1.0)


def _alike(run: AdaptiveSteps, cells: AngleCells, lattice: Lattice) -> RatioDistribution:
    """Return a looser distribution than `_staged` in much less time: all steps have the pair of all cells."""
    ratio, pair = lattice.pair(cells.joined[0])
    power = _power(ratio, run.steps - 1, ratio, 0.01 * TAIL * run.scale / run.steps)
    return replace(power, mass_error=power.mass_error + run.steps * pair.short)


def _power(pair: RatioDistribution, times: int, last: RatioDistribution, tail: float) -> RatioDistribution:
    """Return the upper distribution of a power times another ratio.

    In rare cases the grid of a product is far too fine at an atom and too wide elsewhere. Then its second
    moment is too large, and other cells are tried.
    """
    moments = [math.log(float(each.p @ np.square(each.x))) for each in (pair, last)]
    exact = times * moments[0] + moments[1]

    def product(fineness: float) -> RatioDistribution:
        res = Resolution(fineness=fineness, tail=tail)
        return dominating_product(dominating_power(pair, times, res), last, res)

    for fineness in FINENESS[:-1]:
        found = product(fineness)
        if math.log(float(found.p @ np.square(found.x))) <= exact * WIDER:
            return found
    return product(FINENESS[-1])


def _staged(run: AdaptiveSteps, cells: AngleCells, lattice: Lattice) -> RatioDistribution:
    """Return a distribution whose mean excesses bound the profile of all steps in one direction.

    The pair of a stage dominates the cells from a number on, up to `short`; it is compared with the others.
    """
    tail, last = TAIL * run.scale / run.steps, len(cells.joined) - 1
    joined = [lattice.pair(side) for side in cells.joined]
    alone = [lattice.pair(side)[1] for side in cells.alone[:-1]]
    so_far, done, number = replace(joined[0][0], mass_error=joined[0][1].short), 1, 0
    while done < run.steps:
        later, left = _Later(so_far, lattice, alone, 0.01 * tail), run.steps - done
        times = min(max(math.ceil(GROWTH * done), run.steps // LEAST), left)
        choices = [(k, times) for k in range(min(number + FURTHER, last), 0, -1)]
        if choices[0][0] == last:
            choices.insert(0, (last, left))
        for number, times in choices:
            more = SHARE * math.log1p(times / done) / math.log(run.steps)
            excess = later.excess(joined[number][1], number, more / times)
            if 2.0 * times * excess <= more * run.scale:
                break
        else:
            number, excess, more = 0, 0.0, 0.0
        ratio, pair = joined[number]
        so_far = later.followed(ratio, times, 0.01 * tail, more + times * pair.short, excess)
        done += times
    return so_far


class _Later:
    """Bound of the profile of the last steps, on the lattice, and the cells in the step before them."""

    def __init__(
        self, bound: RatioDistribution, lattice: Lattice, alone: list[LatticePair], least: float
    ) -> None:
        self.ratio, self.pair = _on_nodes(bound, lattice, least)
        self.alone, self.reach = alone, lattice.reach + 1
        first = int(self.pair.index[0]) - 2 * self.reach
        size = int(self.pair.index[-1]) + 2 * self.reach - first + 1
        if size * lattice.spacing > LARGEST_RANGE or size > MOST_LOSSES:
            raise LikelihoodRangeError
        self.values = self.pair.values(lattice.spacing, first, size)
        nodes = size + 2.0 * (lattice.tops.size + lattice.bottoms.size)
        self.error = 2.0 * UNIT * (nodes + 8.0 * lattice.spacing * size + 128.0)
        self.lost = 4.0 * size * SUBNORMAL * math.exp(lattice.spacing * size)
        """Largest error of a value by terms below the normal range of doubles."""
        self.largest = [np.zeros(1)]
        """For each number of cells, the largest values after one of them."""

    def excess(self, pair: LatticePair, cells: int, more: float) -> float:
        """Return by how much the first cells exceed a pair that is raised by a share, at any threshold.

        Args:
            pair: The pair.
            cells: Number of cells that it does not dominate.
            more: The share.
        """
        for step in self.alone[len(self.largest) - 1 : cells]:
            found = self._after(step) * (1.0 + step.short)
            self.largest.append(np.maximum(self.largest[-1], found))
        own = self._after(pair) * ((1.0 + more) * (1.0 - self.error))
        largest = float(np.max(self.largest[cells] * (1.0 + self.error) - own))
        return max(largest, 0.0) + self.lost  # in this order, NaN stays, and no comparison holds

    def _after(self, step: LatticePair) -> Array:
        """Return the values with one more step at all thresholds of the lattice, and at 0."""
        begin = np.full(self.values.size - 2 * self.reach, step.infinite * self.pair.total)
        found = after(step.index, step.mass, begin, self.values, self.reach)
        return np.append(found, step.total * self.pair.total)

    def followed(
        self, pair: RatioDistribution, times: int, tail: float, more: float, excess: float
    ) -> RatioDistribution:
        """Return the bound of the profile of the last steps and further ones before them.

        Args:
            pair: Pair of the further steps.
            times: Their number.
            tail: Mean that may be moved to infinity.
            more: Share by which all of them together are raised.
            excess: Largest excess of a cell over one of them.
        """
        found = _power(pair, times, self.ratio, tail)
        return replace(
            found,
            mass_error=found.mass_error + more,
            drift_remove=found.drift_remove + 2.0 * times * excess,
        )


def _on_nodes(
    bound: RatioDistribution, lattice: Lattice, least: float
) -> tuple[RatioDistribution, LatticePair]:
    """Return a distribution with larger mean excesses on nodes of the lattice.

    Args:
        bound: A distribution.
        lattice: The lattice.
        least: Mean of the smallest values that may lie below the first positive node.
    """
    inside = np.cumsum(bound.p * bound.x) > least
    losses = np.log(bound.x[inside]) / lattice.spacing
    index = np.unique(np.concatenate((np.rint(losses), [math.floor(losses[0]), math.ceil(losses[-1])])))
    rounding = 4.0 * UNIT * (1.0 + lattice.spacing * float(np.max(np.abs(index))))
    shift = bound.value_error + rounding
    factor = _outward(bound.mass_error + shift + 4.0 * (bound.x.size + 16) * UNIT)
    edges = np.append(0.0, np.exp(index * lattice.spacing))
    mass, moment = collect(bound.x * math.exp(shift), bound.p, np.ones(1), np.ones(1), edges, False, True)
    p, beyond = spread(edges, mass, moment)
    p *= factor
    infinite = factor * (beyond + bound.infinite) + bound.drift_remove
    ratio = RatioDistribution(x=edges, p=p, infinite=infinite, value_error=rounding)
    return ratio, LatticePair(index.astype(np.int64), p[1:] * edges[1:], infinite)
