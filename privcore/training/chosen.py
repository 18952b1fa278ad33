"""Ratios of epochs in which each example is used in k of the t steps, 1 < k < t."""

from dataclasses import dataclass

from privcore.allocation.reduction import MOST_CHOSEN
from privcore.likelihood_ratio.distribution import RatioBracket, Resolution
from privcore.likelihood_ratio.ratios import Gaussian, Ratio
from privcore.likelihood_ratio.symmetric import chosen

WORK = 1500
"""Time of a distribution of k of t, in combinations of two distributions."""
LEVELS = 8
"""Width of its cells, as the number of combinations that add as much to the width of a bracket."""


@dataclass(frozen=True)
class ChosenSteps(Ratio):
    """Ratio of k of t steps with Gaussian noise, 1 < k < t <= `MOST_STEPS`, from its moments at sums."""

    s: float
    participations: int
    steps: int

    def build(self, res: Resolution) -> RatioBracket:
        from privcore.likelihood_ratio.k_of_t import k_of_t, level_of  # modules that phases do not need
        from privcore.likelihood_ratio.steps import GaussianStep

        k, t = self.participations, self.steps
        return k_of_t(GaussianStep(1.0 / self.s), k, t, res.tail, level_of(k, t, res.fineness))

    @property
    def width(self) -> float:
        return self.s

    @property
    def combinations(self) -> int:
        return WORK

    @property
    def levels(self) -> int:
        return LEVELS


@dataclass(frozen=True)
class ChosenBelow(Ratio):
    """Ratio of k of t steps with Gaussian noise; only the lower distribution is valid.

    For more than `MOST_CHOSEN` participations it is that of `MOST_CHOSEN` of them, which k of t dominates.
    """

    s: float
    participations: int
    steps: int

    def build(self, res: Resolution) -> RatioBracket:
        k = min(self.participations, MOST_CHOSEN)
        coarse = Resolution(fineness=max(res.fineness, 0.1 if k <= 16 else 0.2), tail=res.tail)
        ratio = chosen(Gaussian(self.s).bracket(coarse).lower, k, self.steps, coarse)
        return RatioBracket(lower=ratio, upper=ratio)

    @property
    def width(self) -> float:
        return self.s

    @property
    def combinations(self) -> int:
        return 8 * (1 + min(self.participations, MOST_CHOSEN) // 8)
