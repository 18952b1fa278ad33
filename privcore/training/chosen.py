"""Ratio of epochs in which each example is used in k of the t steps, 1 < k < t."""

from dataclasses import dataclass

from privcore.allocation.reduction import MOST_CHOSEN, blocks
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioBracket, Resolution
from privcore.likelihood_ratio.k_of_t import MOST_STEPS, k_of_t, level_of
from privcore.likelihood_ratio.ratios import Composed, Gaussian, OneOfSteps, Ratio, product, repeated
from privcore.likelihood_ratio.steps import GaussianStep
from privcore.likelihood_ratio.symmetric import chosen
from privcore.likelihood_ratio.tilted import Participation

WORK = 1500
"""Time of a distribution of k of t, in combinations of two distributions."""
LEVELS = 8
"""Width of its cells, as the number of combinations that add as much to the width of a bracket."""


@dataclass(frozen=True)
class ChosenSteps(Ratio):
    """Ratio of k of t steps with Gaussian noise, 1 < k < t.

    Beyond the range of `k_of_t`, the reduction to k = 1 dominates it, and from below, at most `MOST_CHOSEN`
    participations are counted, which k of t dominates.
    """

    s: float
    participations: int
    steps: int

    def build(self, res: Resolution) -> RatioBracket:
        k, t = self.participations, self.steps
        if t <= MOST_STEPS:
            level = level_of(k, t, res.fineness)
            try:
                return k_of_t(GaussianStep(1.0 / self.s), k, t, res.tail, level)
            except LikelihoodRangeError:
                pass
        parts = (
            repeated(OneOfSteps(Gaussian(self.s), size) if size > 1 else Gaussian(self.s), copies)
            for size, copies in blocks(t, k, 1)
        )
        counted = min(k, MOST_CHOSEN)
        coarse = Resolution(fineness=max(res.fineness, 0.1 if counted <= 16 else 0.2), tail=res.tail)
        below = chosen(Gaussian(self.s).bracket(coarse).lower, counted, t, coarse)
        return RatioBracket(lower=below, upper=product(tuple(parts)).bracket(res).upper)

    @property
    def width(self) -> float:
        return self.s

    @property
    def combinations(self) -> int:
        return WORK

    @property
    def levels(self) -> int:
        return LEVELS


def chosen_alone(ratio: Ratio) -> tuple[GaussianStep, Participation] | None:
    """Return the mechanism of a step and the choice of steps of a run that is k of t; None for other runs.

    Args:
        ratio: Ratio of the run.
    """
    epoch, epochs = (ratio.ratio, ratio.times) if isinstance(ratio, Composed) else (ratio, 1)
    if not isinstance(epoch, ChosenSteps) or epoch.steps > MOST_STEPS:
        return None
    choice = Participation(participations=epoch.participations, steps=epoch.steps, epochs=epochs)
    return GaussianStep(1.0 / epoch.s), choice
