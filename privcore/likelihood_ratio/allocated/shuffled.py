r"""Upper ends for shuffled batches, if every epoch leaves out some examples: docs/shuffling.md.

The same sums bound random allocation of an example that is replaced (`in-place`: docs/training-runs.md).

An epoch permutes the examples, cuts them into t batches and leaves out the rest, so it uses an example with
probability q < 1. Then for every threshold $\kappa$, all adaptive gradients and both directions

$$H_\kappa \le \mathbb E \Big(\frac q t \sum_{i \le t} D_i + (1 - q)(1 - \kappa)\Big)_+$$

with independent copies $D_i$ of a number D. With a standard normal z and $R_m = e^{m s z - m^2 s^2 / 2}$, D
has above 0 the distribution of one difference $R_m - \kappa R_n$ and below 0 that of a second.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array, choose_edges
from privcore.likelihood_ratio.ratios import Ratio
from privcore.likelihood_ratio.signed import SignedLaw, SumCells, excess_of_sum, scales
from privcore.likelihood_ratio.steps import NODES, WEIGHTS
from privcore.numerics.rounding import SUMMED, UNIT

FINENESS = 0.05
"""Width of the cells of sums, in local scales: the profile is .4 % above that of exact sums."""
BETWEEN = 0.2
"""Distance of the thresholds of the profile, in local standard deviations."""
PILOT = 0.5
"""Width of the cells for the profile from which the thresholds are chosen."""
PILOTS = 24
"""Number of thresholds of this profile in each direction."""
FARTHEST = 16.0
"""The lowest node of a sum, in the smallest sums that a single step can make positive."""
GRAIN = 2.0**-24
"""Outputs are cut at multiples of this, so that their distances are exact."""
PICTURE = 1000
WORK = 70
"""Time of a profile for each doubling of the steps, in combinations of two distributions."""
LONGEST = 0.5
"""Longest cell, in standard deviations."""


class Branch(NamedTuple):
    r"""Size of D above or below 0: $g = \beta R_b - \gamma R_c$, b > c, which rises from its zero on."""

    b: int
    c: int
    scaled: bool
    """Whether the first factor is the threshold and the second one 1, or the reverse."""


BRANCHES = {
    ("zero-out", "remove"): (Branch(2, 1, False), Branch(1, 0, True)),
    ("zero-out", "add"): (Branch(1, 0, False), Branch(2, 1, True)),
    ("replace-one", "remove"): (Branch(2, 0, False), Branch(2, 0, True)),
    ("replace-one", "add"): (Branch(2, 0, False), Branch(2, 0, True)),
    ("in-place", "remove"): (Branch(1, -1, False), Branch(1, -1, True)),
    ("in-place", "add"): (Branch(1, -1, False), Branch(1, -1, True)),
}
"""D above and below 0, by relation and direction."""


class _Half(NamedTuple):
    """One branch at a noise and a threshold."""

    branch: Branch
    s: float
    threshold: float

    @property
    def factors(self) -> tuple[float, float]:
        return (self.threshold, 1.0) if self.branch.scaled else (1.0, self.threshold)

    @property
    def zero(self) -> float:
        """The output at which the size is 0, to a few roundings."""
        b, c, scaled = self.branch
        loss = math.log(self.threshold) * (-1.0 if scaled else 1.0)
        return loss / ((b - c) * self.s) + (b + c) * self.s / 2.0

    def terms(self, z: Array) -> tuple[Array, Array]:
        """Return both terms of the size at z."""
        first, second = self.factors
        b, c = self.branch.b * self.s, self.branch.c * self.s
        with np.errstate(over="ignore"):
            return first * np.exp(b * z - 0.5 * b * b), second * np.exp(c * z - 0.5 * c * c)

    def size(self, z: Array) -> Array:
        """Return the size at z, at least 0 and ascending."""
        more, less = self.terms(z)
        ascending: Array = np.maximum.accumulate(np.maximum(more - less, 0.0))
        return ascending

    def growth(self, terms: tuple[Array, Array], step: Array) -> Array:
        """Return by how much the size grows from z to z + step, without cancellation, from its terms at z."""
        grown: Array = terms[0] * np.expm1(self.branch.b * self.s * step)
        return grown - terms[1] * np.expm1(self.branch.c * self.s * step) if self.branch.c else grown


def signed_law(
    s: float, threshold: float, relation: str, direction: str, steps: int, cells: SumCells
) -> SignedLaw:
    r"""Return a distribution above that of D, for the sum of `steps` copies.

    A cell of outputs z is moved to its ends with its mean kept, or moved upwards where it is rounded. On the
    first cell above 0, which begins a little to the left of the zero, $g_+$ over its largest value is at most
    the growth of g over the whole growth.

    Args:
        s: Inverse noise multiplier.
        threshold: Threshold kappa of the hockey-stick divergence, >= 1.
        relation: `zero-out`, `replace-one`, or `in-place` for an example that is replaced in a random step.
        direction: `remove` or `add`.
        steps: Number of copies that will be added.
        cells: Choice of the cells.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    above, below = (_Half(branch, s, threshold) for branch in BRANCHES[relation, direction])
    reach = 0.5 - float(scipy.special.ndtri_exp(math.log(cells.tail / steps)))
    starts = math.floor(above.zero / GRAIN - 1.0) * GRAIN, math.ceil(below.zero / GRAIN + 1.0) * GRAIN
    ends = [max(start, half.branch.b * s) + reach for half, start in zip((above, below), starts, strict=True)]
    if max(2.0 * s * ends[0], 2.0 * s * starts[1] + math.log(threshold)) > math.log(LARGEST_RATIO):
        raise LikelihoodRangeError
    pictures = [np.linspace(start, end, PICTURE) for start, end in zip(starts, ends, strict=True)]
    sizes = [half.size(z) for half, z in zip((above, below), pictures, strict=True)]
    kept = min(PICTURE, int(np.searchsorted(sizes[1], cells.low)) + 2)
    pictures[1], sizes[1] = pictures[1][:kept], sizes[1][:kept]
    masses = [-np.diff(scipy.special.ndtr(-z), append=0.0) for z in pictures]
    none = max(0.0, 1.0 - float(masses[0].sum()) - float(masses[1].sum())) + 8.0 * UNIT
    place, width = scales(
        np.concatenate((-sizes[1][:0:-1], np.zeros(1), sizes[0][1:])),
        np.concatenate((masses[1][:0:-1], [none + masses[0][0] + masses[1][0]], masses[0][1:])),
        cells.least,
    )
    cuts = [
        _cut(z, sign * size, place, width, cells.fineness, s)
        for z, size, sign in zip(pictures, sizes, (1.0, -1.0), strict=True)
    ]
    return _spread(above, below, cuts, none)


def _cut(z: Array, values: Array, place: Array, width: Array, fineness: float, s: float) -> Array:
    """Return the outputs at which cells end: multiples of `GRAIN`, from the first output to the last."""
    step = np.abs(np.diff(values)) / (fineness * np.interp(0.5 * (values[1:] + values[:-1]), place, width))
    step *= min(1.0, 4000.0 / float(step.sum()))  # a coarser grid is still valid; a longer cell is not
    count = np.concatenate(([0.0], np.cumsum(np.maximum(step, np.diff(z) / _longest(z, s)))))
    size = max(4, math.ceil(count[-1]))
    inner = np.interp(np.linspace(0.0, count[-1], size + 1), count, z)
    grained: Array = np.unique(np.round(inner / GRAIN)) * GRAIN
    return grained


def _longest(z: Array, s: float) -> float:
    """Return the longest cell: no density changes by more than e^4 in it, so 12 nodes integrate it."""
    return min(LONGEST, 4.0 / (1.0 + float(np.max(np.abs(z))) + 2.0 * s))


def _spread(above: _Half, below: _Half, cuts: list[Array], none: float) -> SignedLaw:
    """Return the distribution on the values at the cuts, rounded upwards."""
    far = max(float(np.max(np.abs(cut))) for cut in cuts)
    # Counted: exponents up to (L + 2 s)^2, each of a few roundings, and sums of 12 terms.
    error = 32.0 * UNIT * (64.0 + (far + 2.0 * above.s) ** 2)
    more, less = 1.0 + 4.0 * error, 1.0 - 4.0 * error
    p, q = _at_cuts(above, cuts[0], more, more), _at_cuts(below, cuts[1], more, less)
    x = above.size(cuts[0]) + error * sum(above.terms(cuts[0]))
    x[0] = 0.0
    b = above.branch.b * above.s
    beyond = above.factors[0] * float(scipy.special.ndtr(b - cuts[0][-1])) * more
    y = np.maximum(0.0, below.size(cuts[1]) - error * sum(below.terms(cuts[1])))
    q[0] += p[0] + none
    return SignedLaw(
        x=np.concatenate((np.maximum.accumulate(-y[:0:-1]), x)),
        p=np.concatenate((q[:0:-1], q[:1], p[1:])),
        beyond=beyond,
    )


def _at_cuts(half: _Half, cut: Array, more: float, outward: float) -> Array:
    """Return the masses at the cuts, rounded up, with shares at the right ends of cells rounded outward."""
    mass, moment, growth = _cells(half, cut)
    right = np.minimum(moment / growth * outward * outward, mass * outward)
    p = np.zeros(cut.size)
    p[:-1] += mass * more - right
    p[1:] += right
    p[-1] += float(scipy.special.ndtr(-cut[-1])) * more
    return p


def _cells(half: _Half, cut: Array) -> tuple[Array, Array, Array]:
    """Return mass, moment of the growth from its left end, and whole growth of every cell."""
    width = np.diff(cut)
    at_left = half.terms(cut[:-1])
    mass, moment = np.zeros(width.size), np.zeros(width.size)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        step = (0.5 + 0.5 * node) * width
        density = 0.5 * weight * width * np.exp(-0.5 * np.square(cut[:-1] + step)) / math.sqrt(2.0 * math.pi)
        mass += density
        moment += density * half.growth(at_left, step)
    return mass, moment, half.growth(at_left, width)


def cells_of(s: float, steps: int, threshold: float, level: float, res: Resolution) -> SumCells:
    """Return the choice of the cells of sums over all steps, whose excess over a level counts."""
    return SumCells(
        fineness=res.fineness,
        tail=res.tail,
        low=FARTHEST * max(2.0 * steps * (threshold - 1.0), 8.0),
        least=0.05 * threshold * min(1.0, s),
        kinks=(0.0, level),
    )


def profile_above(
    s: float, steps: int, share: float, relation: str, direction: str, threshold: float, res: Resolution
) -> float:
    """Return an upper bound of the hockey-stick divergence of a shuffled epoch.

    Args:
        s: Inverse noise multiplier, > 0.
        steps: Number t of batches.
        share: Share q of the examples that an epoch uses, in (0, 1]; a larger one is an upper bound.
        relation: `zero-out`, `replace-one`, or `in-place` for an example that is replaced in a random step.
        direction: `remove` or `add`.
        threshold: Threshold kappa, >= 1.
        res: Width of the cells in local scales, and the mean that may lie beyond them.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.

    Example:
        >>> res = Resolution(fineness=0.05, tail=1e-12)
        >>> round(profile_above(1.0, 2, 2 / 3, "zero-out", "remove", 1.3498588, res), 4)
        0.1791
    """
    level = (1.0 - share) / share * (threshold - 1.0) * steps
    cells = cells_of(s, steps, threshold, level, res)
    one = signed_law(s, threshold, relation, direction, steps, cells)
    return share / steps * excess_of_sum(one, steps, level, cells) * (1.0 + 16.0 * UNIT)


def hull(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the vertices of the largest convex function below points.

    Every convex function below the points lies below it, so it is still an upper bound of a profile.

    Args:
        x: Ascending places.
        y: Upper bounds of a convex function there.

    Example:
        >>> hull(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.8, 0.0]))[0]
        array([0., 2.])
    """
    kept: list[int] = []
    for k in range(x.size):
        while len(kept) > 1:
            i, j = kept[-2:]
            if (y[j] - y[i]) * (x[k] - x[j]) < (y[k] - y[j]) * (x[j] - x[i]):
                break
            kept.pop()
        kept.append(k)
    return x[kept], y[kept]


@lru_cache(maxsize=64)
def dominating(s: float, steps: int, share: float, relation: str, tail: float) -> RatioDistribution:
    r"""Return a distribution that dominates the ratio of a shuffled epoch.

    Both profiles are computed at some thresholds; the chords between them are above the profiles, which are
    convex in $\kappa$. The profile of direction add is $E(x - X)_+ = x H_{1/x}$ at x = 1 / kappa.

    Args:
        s: Inverse noise multiplier, > 0.
        steps: Number t of batches.
        share: Share q of the examples that an epoch uses, in (0, 1].
        relation: `zero-out`, `replace-one`, or `in-place` for an example that is replaced in a random step.
        tail: Mean that may be moved to infinity.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    profile = partial(profile_above, s, steps, share, relation)
    return from_profile(profile, shift(s, relation), tail, BETWEEN, FINENESS)


def shift(s: float, relation: str) -> float:
    """Return the largest shift of an output, in standard deviations."""
    return (1.0 if relation == "zero-out" else 2.0) * s


Profile = Callable[[str, float, Resolution], float]
"""Upper bound of a profile by direction, threshold >= 1 and resolution."""


def from_profile(
    profile: Profile, mu: float, tail: float, between: float, fineness: float
) -> RatioDistribution:
    """Return a distribution that dominates a ratio with a profile in both directions.

    Args:
        profile: Upper bounds of the profile.
        mu: Shift of a normal distribution that dominates, too.
        tail: Mean that may be moved to infinity.
        between: Distance of the thresholds, in local standard deviations.
        fineness: Width of the cells of sums.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    largest = mu * (0.5 * mu - float(scipy.special.ndtri_exp(math.log(tail))))
    if largest > math.log(LARGEST_RATIO):
        raise LikelihoodRangeError
    first = np.exp(largest * (np.arange(1, PILOTS + 1) / PILOTS) ** 3)
    pilot = _law(first, first, PILOT, profile, tail)
    inner = pilot.x > 0.0
    edges = choose_edges(pilot.x[inner], pilot.p[inner], between, tail, True, 0.0, 0.0)
    if edges.size < 2 or not edges[0] < 1.0 < edges[-1]:
        raise LikelihoodRangeError
    return _law(edges[edges > 1.0], 1.0 / edges[(edges > 0.0) & (edges < 1.0)][::-1], fineness, profile, tail)


def _law(removing: Array, adding: Array, fineness: float, profile: Profile, tail: float) -> RatioDistribution:
    """Return the distribution whose profiles are chords between upper bounds at 1 and some thresholds."""
    res = Resolution(fineness=fineness, tail=tail)
    found = []
    for direction, thresholds in (("remove", removing), ("add", adding)):
        values: list[float] = []
        for threshold in (1.0, *thresholds.tolist()):
            values.append(profile(direction, threshold, res))
            if len(values) > 1 and values[-1] <= tail:
                break
        falling: Array = np.minimum.accumulate(np.minimum(values, 1.0))
        found.append((np.append(1.0, thresholds)[: falling.size], falling))
    (over, remove), (under, add) = found
    x, y = hull(over, remove)
    z, g = hull(np.append(0.0, 1.0 / under[::-1]), np.append(0.0, (add / under)[::-1]))
    middle = max(float(y[0]), float(g[-1]))
    while True:  # both halves are convex; at 1, where they meet, the upper bound may be too large
        y[0] = g[-1] = middle
        (x, y), (z, g) = hull(x, y), hull(z, g)
        falls = np.append((y[:-1] - y[1:]) / np.diff(x), 0.0)
        rises = np.append(0.0, np.diff(g) / np.diff(z))
        left, right = 1.0 - z[-2], x[1] - 1.0
        chord = (left * float(y[1]) + right * float(g[-2]) + left * right) / (left + right)
        if rises[-1] + falls[0] <= 1.0 or chord >= middle * (1.0 - SUMMED):
            break
        middle = chord
    at_one = max(0.0, 1.0 - float(rises[-1]) - float(falls[0]))
    masses = np.concatenate((np.diff(rises), [at_one], -np.diff(falls)))
    places = np.concatenate((z[:-1], x))
    return _rounded(places, np.maximum(masses, 0.0), float(y[-1]), (x, y), (z, g))


def _rounded(
    x: Array, p: Array, infinite: float, right: tuple[Array, Array], left: tuple[Array, Array]
) -> RatioDistribution:
    """Return the distribution, with the rounding of its masses in its errors.

    Its own profiles are sums of positive terms. They are compared with the ones from which the masses are
    differences: their quotient is a factor of the masses, at most `SUMMED`. If both profiles at 1 differ, or
    the masses do not add up to 1, so do the means, which changes every profile by at most these differences.
    """
    above, below = x >= 1.0, x <= 1.0
    over = np.cumsum(p[above][:0:-1])[::-1] * np.diff(right[0])
    over = np.append(np.cumsum(over[::-1])[::-1], 0.0) + infinite
    under = np.append(0.0, np.cumsum(np.cumsum(p[below][:-1]) * np.diff(left[0])))
    short = max(float(np.max(right[1] / over)), float(np.max(left[1][1:] / under[1:])))
    if not short <= 1.0 + SUMMED:  # also if a profile is not a number
        raise LikelihoodRangeError
    keep = p > 0.0
    drift = abs(float(over[0] - under[-1])) + 64.0 * UNIT
    return RatioDistribution(
        x=x[keep],
        p=p[keep],
        infinite=infinite,
        mass_error=2.0 * SUMMED,
        value_error=8.0 * UNIT,
        drift_remove=drift,
        drift_add=drift,
    )


@dataclass(frozen=True)
class ShuffledAbove(Ratio):
    """Ratio that dominates a shuffled epoch that leaves out some examples; only the upper one is valid.

    Attributes:
        s: Inverse noise multiplier.
        steps: Number of batches.
        share: Share of the examples that an epoch uses, in (0, 1].
        relation: `zero-out`, `replace-one`, or `in-place` for an example that is replaced in a random step.
    """

    s: float
    steps: int
    share: float
    relation: str

    def build(self, res: Resolution) -> RatioBracket:
        law = dominating(self.s, self.steps, self.share, self.relation, res.tail)
        return RatioBracket(lower=law, upper=law)

    @property
    def width(self) -> float:
        return 2.0 * self.s

    @property
    def combinations(self) -> int:
        return WORK * (1 + self.steps.bit_length())

    @property
    def levels(self) -> int:
        return 1
