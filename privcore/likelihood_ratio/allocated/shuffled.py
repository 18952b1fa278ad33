r"""Upper ends for shuffled batches, if every epoch leaves out some examples: docs/shuffling.md.

The same sums bound random allocation of an example that is replaced (`in-place`: docs/training-runs.md).

An epoch permutes the examples, cuts them into t batches and leaves out the rest, so it uses an example with
probability q < 1. Then for every threshold $\kappa$, all adaptive gradients and both directions

$$H_\kappa \le \mathbb E \Big(\frac q t \sum_{i \le t} D_i + (1 - q)(1 - \kappa)\Big)_+$$

with independent copies $D_i$ of a number D. With a standard normal z and $R_m = e^{m s z - m^2 s^2 / 2}$, D
has above 0 the distribution of one difference $R_m - \kappa R_n$ and below 0 that of a second.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache, partial

from privcore.likelihood_ratio.allocated.blocks import summed_block
from privcore.likelihood_ratio.allocated.differences import Branch, signed_law
from privcore.likelihood_ratio.chords import from_profile, thresholds_of
from privcore.likelihood_ratio.distribution import (
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.ratios import Ratio
from privcore.likelihood_ratio.signed import SumCells, excess_of_sum
from privcore.numerics.rounding import UNIT

FINENESS = 0.05
"""Width of the cells of sums, in local scales: the profile is .4 % above that of exact sums."""
BETWEEN = 0.2
"""Distance of the thresholds of the profile, in local standard deviations."""
FARTHEST = 16.0
"""The lowest node of a sum, in the smallest sums that a single step can make positive."""
BLOCK = 64
"""Longest block of steps in which one gradient must suit all sums."""
SMOOTH = 1.2
"""Largest inverse noise multiplier at which blocks gain more than .05 % of epsilon."""
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
