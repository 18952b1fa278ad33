r"""Upper ends for shuffled batches, if every epoch leaves out some examples: docs/shuffling.md.

The same sums bound random allocation of an example that is replaced (`in-place`: docs/training-runs.md).

An epoch permutes the examples, cuts them into t batches and leaves out the rest, so it uses an example with
probability q < 1. Then for every threshold $\kappa$, all adaptive gradients and both directions

$$H_\kappa \le \mathbb E \Big(\frac q t \sum_{i \le t} D_i + (1 - q)(1 - \kappa)\Big)_+$$

with independent copies $D_i$ of a number D. With a standard normal z and $R_m = e^{m s z - m^2 s^2 / 2}$, D
has above 0 the distribution of one difference $R_m - \kappa R_n$ and below 0 that of a second.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import scipy

from privcore.likelihood_ratio.allocated.blocks import summed_block
from privcore.likelihood_ratio.allocated.differences import Branch, signed_law
from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array, choose_edges
from privcore.likelihood_ratio.potential import hull
from privcore.likelihood_ratio.ratios import Ratio
from privcore.likelihood_ratio.signed import SumCells, excess_of_sum
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
BLOCK = 64
"""Longest block of steps in which one gradient must suit all sums."""
WORTH = 0.002
"""Smallest share of a profile that a block must gain to be used for larger thresholds."""
SMOOTH = 1.2
"""Largest inverse noise multiplier at which blocks gain more than .05 % of epsilon."""
OFTEN = 4
"""Thresholds from one comparison of a block with single steps to the next."""
DEEP = 1000.0
"""Profiles below this many tails need no block."""
WORK = 70
"""Time of a profile for each doubling of the steps, in combinations of two distributions."""


@dataclass(frozen=True)
class EpochAbove(Ratio):
    """Ratio that dominates an epoch, from upper bounds of its profile; only the upper one is valid.

    Attributes:
        s: Inverse noise multiplier, > 0.
        steps: Number t of batches.
        relation: `zero-out`, `replace-one`, or `in-place` for an example that is replaced in a random step.
    """

    s: float
    steps: int
    relation: str

    @abstractmethod
    def law(self, tail: float) -> RatioDistribution:
        """Return the distribution, with a mean that may be moved to infinity."""

    def build(self, res: Resolution) -> RatioBracket:
        law = self.law(res.tail)
        return RatioBracket(lower=law, upper=law)

    @property
    def shift(self) -> float:
        """The largest shift of an output, in standard deviations."""
        return (1.0 if self.relation == "zero-out" else 2.0) * self.s

    @property
    def width(self) -> float:
        return 2.0 * self.s

    @property
    def levels(self) -> int:
        return 1


@dataclass(frozen=True)
class ShuffledAbove(EpochAbove):
    """Ratio that dominates a shuffled epoch that leaves out some examples, or random allocation in place.

    Attributes:
        share: Share q of the examples that an epoch uses, in (0, 1]; a larger one is an upper bound.
    """

    share: float

    def law(self, tail: float) -> RatioDistribution:
        return dominating(self, tail)

    @property
    def combinations(self) -> int:
        return WORK * (1 + self.steps.bit_length())


BRANCHES = {
    ("zero-out", "remove"): (Branch(2, 1, False), Branch(1, 0, True)),
    ("zero-out", "add"): (Branch(1, 0, False), Branch(2, 1, True)),
    ("replace-one", "remove"): (Branch(2, 0, False), Branch(2, 0, True)),
    ("replace-one", "add"): (Branch(2, 0, False), Branch(2, 0, True)),
    ("in-place", "remove"): (Branch(1, -1, False), Branch(1, -1, True)),
    ("in-place", "add"): (Branch(1, -1, False), Branch(1, -1, True)),
}
"""D above and below 0, by relation and direction."""


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
    epoch: ShuffledAbove, direction: str, threshold: float, res: Resolution, block: int = 1
) -> float:
    """Return an upper bound of the hockey-stick divergence of a shuffled epoch.

    Args:
        epoch: The epoch.
        direction: `remove` or `add`.
        threshold: Threshold kappa, >= 1.
        res: Width of the cells in local scales, and the mean that may lie beyond them.
        block: Number of steps in which one gradient must suit all sums, for zero-out; a longer block is
            sharper and slower.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.

    Example:
        >>> res = Resolution(fineness=0.05, tail=1e-12)
        >>> epoch = ShuffledAbove(s=1.0, steps=2, relation="zero-out", share=2 / 3)
        >>> round(profile_above(epoch, "remove", 1.3498588, res), 4)
        0.1791
    """
    s, steps, share, relation = epoch.s, epoch.steps, epoch.share, epoch.relation
    level = (1.0 - share) / share * (threshold - 1.0) * steps
    cells = cells_of(s, steps, threshold, level, res)
    if block == 1:
        one, last = signed_law(s, threshold, BRANCHES[relation, direction], steps, cells), None
    else:
        one, last = summed_block(s, threshold, direction, block, steps % block, cells)
    excess = excess_of_sum(one, steps // block, level, cells, last)
    return share / steps * excess * (1.0 + 16.0 * UNIT)


@lru_cache(maxsize=64)
def dominating(epoch: ShuffledAbove, tail: float) -> RatioDistribution:
    r"""Return a distribution that dominates the ratio of a shuffled epoch.

    Both profiles are computed at some thresholds; the chords between them are above the profiles, which are
    convex in $\kappa$. The profile of direction add is $E(x - X)_+ = x H_{1/x}$ at x = 1 / kappa.

    Args:
        epoch: The epoch.
        tail: Mean that may be moved to infinity.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    profile, sharper = partial(profile_above, epoch), None
    if epoch.relation == "zero-out" and epoch.s <= SMOOTH and epoch.steps > 1:
        sharper = partial(profile_above, epoch, block=min(BLOCK, epoch.steps))
    return from_profile(profile, thresholds_of(profile, epoch.shift, tail, BETWEEN), tail, FINENESS, sharper)


Profile = Callable[[str, float, Resolution], float]
"""Upper bound of a profile by direction, threshold >= 1 and resolution."""


def thresholds_of(profile: Profile, mu: float, tail: float, between: float) -> tuple[Array, Array]:
    """Return thresholds from 1 on at which a profile decides about a distribution, for both directions.

    Args:
        profile: The profile, or one near it.
        mu: Shift of a normal distribution that dominates, too.
        tail: Mean that may be moved to infinity.
        between: Distance of the thresholds, in local standard deviations.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    largest = mu * (0.5 * mu - float(scipy.special.ndtri_exp(math.log(tail))))
    if largest > math.log(LARGEST_RATIO):
        raise LikelihoodRangeError
    first = np.exp(largest * (np.arange(PILOTS + 1) / PILOTS) ** 3)
    pilot = from_profile(profile, (first, first), tail, PILOT)
    positive = pilot.x > 0.0
    edges = choose_edges(pilot.x[positive], pilot.p[positive], between, tail, True, 0.0, 0.0)
    if edges.size < 2 or not edges[0] < 1.0 < edges[-1]:
        raise LikelihoodRangeError
    inner = edges[edges > 1.0], 1.0 / edges[(edges > 0.0) & (edges < 1.0)][::-1]
    removing, adding = (  # the profile itself may reach farther than the one of the pilot
        np.concatenate(([1.0], chosen, first[first > chosen[-1]])) for chosen in inner
    )
    return removing, adding


def from_profile(
    profile: Profile,
    thresholds: tuple[Array, Array],
    tail: float,
    fineness: float,
    sharper: Profile | None = None,
) -> RatioDistribution:
    """Return the distribution whose profiles are chords between upper bounds at some thresholds.

    Args:
        profile: Upper bounds of the profile.
        thresholds: Thresholds from 1 on, for direction remove and for add.
        tail: Mean that may be moved to infinity.
        fineness: Width of the cells of sums.
        sharper: Other upper bounds of the profile, slower and sharper for small thresholds.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    res = Resolution(fineness=fineness, tail=tail)
    found = [
        _points(direction, at.tolist(), profile, sharper, res)
        for direction, at in zip(("remove", "add"), thresholds, strict=True)
    ]
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


def _points(
    direction: str, thresholds: list[float], profile: Profile, sharper: Profile | None, res: Resolution
) -> tuple[Array, Array]:
    """Return some of the thresholds, and falling upper bounds of the profile there, until below the tail.

    Single large outputs exceed large thresholds, so the sharper bound gains nothing from some threshold on.
    Where the profile is deep below `DEEP` tails, every second threshold is enough.
    """
    at: list[float] = []
    values: list[float] = []
    deep = DEEP * res.tail if sharper else 0.0
    for number, threshold in enumerate(thresholds):
        if values and values[-1] < deep and number % 2:
            continue
        value = sharper(direction, threshold, res) if sharper else math.inf
        if sharper is None or number % OFTEN == 0:
            single = profile(direction, threshold, res)
            if value > (1.0 - WORTH) * single or value < deep:
                sharper = None
            value = min(value, single)
        at.append(threshold)
        values.append(value)
        if len(values) > 1 and value <= res.tail:
            break
    falling: Array = np.minimum.accumulate(np.minimum(values, 1.0))
    return np.array(at), falling


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
