"""Phases whose samplers pass over the data: random allocation, balls-in-bins sampling, and shuffling."""

import math
from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.allocation.reduction import MOST_CHOSEN, MOST_STEPS, blocks
from privcore.allocation.shuffling_clones import Clones, counts
from privcore.constraint import AtMost
from privcore.likelihood_ratio.allocated.all_used import AllUsedAbove
from privcore.likelihood_ratio.allocated.opposed import opposed
from privcore.likelihood_ratio.allocated.shuffled import ShuffledAbove
from privcore.likelihood_ratio.allocated.symmetric import chosen
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioBracket, Resolution
from privcore.likelihood_ratio.privacy_loss.distribution import LossEnds
from privcore.likelihood_ratio.privacy_loss.outputs import losses_of_chosen_steps, losses_of_opposite_steps
from privcore.likelihood_ratio.profile import Direction
from privcore.likelihood_ratio.questions import powering
from privcore.likelihood_ratio.ratios import Blend, Gaussian, OneOfSteps, Ratio, product, repeated, sampled
from privcore.numerics.rounding import CLONE_COUNTS, UNIT
from privcore.training import params as training_params
from privcore.training.phase import Owned, Phase
from privcore.training.samplers import Above, Bounds, occupancies
from privcore.training.sizes import SIZED_STEPS

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
        from privcore.likelihood_ratio.allocated.k_of_t import (  # modules that phases do not need
            k_of_t,
            level_of,
        )
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

    def privacy_loss(self, direction: Direction, cells: int, tail: float) -> LossEnds:
        return losses_of_chosen_steps(self.s, self.participations, self.steps, direction, cells, tail)

    @property
    def width(self) -> float:
        return self.s

    @property
    def combinations(self) -> int:
        return 8 * (1 + min(self.participations, MOST_CHOSEN) // 8)


GUESSES = tuple(20.0 / 1.35**k for k in range(16))
"""Values of epsilon, falling, for which the approximation of Gaussian steps by pure ones is chosen."""
BUDGET, SPLIT = 0.6, 0.3
"""Shares of delta for this approximation, and of this for the pair, as in `shuffling.clones`."""
MOST_OCCUPIED = 30
"""Largest group whose assignments to steps are counted."""


class AllocationPhase(Owned):
    """Epochs in which each example is used in k of the t steps; the steps are drawn in each epoch."""

    name = "allocation"
    constraints = (AtMost("participations", "steps"),)

    steps: Annotated[int, params.STEPS]
    participations: Annotated[int, params.PARTICIPATIONS] = 1
    epochs: Annotated[int, params.EPOCHS] = 1

    @property
    def uses(self) -> int:
        return self.participations * self.epochs

    def reason(self, relation: str) -> str | None:
        if self.group > 1 and self.participations > 1:
            return "For a group, expected participations=1: no theorem covers several participations."
        if self.group > MOST_OCCUPIED:
            return f"Expected a group of at most {MOST_OCCUPIED} examples, whose assignments are counted."
        return super().reason(relation)

    def bounds(self, relation: str, scale: float) -> Bounds:
        return allocated(self, self.s, self.epochs, relation)


class BallsInBins(AllocationPhase):
    """Epochs in which each example is in k of the t bins, one for each step.

    The bins are drawn once, or in each epoch. With bins drawn once, the means of the outputs of a step over
    all epochs are sufficient: this is one epoch at noise sigma / sqrt(E) (docs/training-runs.md).
    """

    name = "balls-in-bins"
    about = "if each example is in a random bin (step), kept for all epochs or redrawn in each."

    redraw: Annotated[str, training_params.REDRAW]

    def bounds(self, relation: str, scale: float) -> Bounds:
        if self.redraw == "once":
            return allocated(self, math.sqrt(self.epochs) * self.s, 1, relation)
        return super().bounds(relation, scale)


class ShufflingPhase(Phase):
    """Epochs of a permutation of all examples, cut into one batch for each step.

    With one example more or less, all batches stay full only if some example is left out; an example that
    was left out takes its place, so the distance is 2.
    """

    name = "shuffling"

    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1
    redraw: Annotated[str, training_params.REDRAW]
    dropped: Annotated[float, training_params.DROPPED] = 0.0
    batch: Annotated[int, training_params.BATCH] = 1
    kept: Annotated[float, training_params.KEPT] = 0.0

    @property
    def uses(self) -> int:
        return self.epochs

    def distance(self, relation: str) -> float:
        return 2.0 if relation == "add-remove" else super().distance(relation)

    def reason(self, relation: str) -> str | None:
        if self.dropped and self.kept:
            return "Expected dropped or kept, got both: the last batch is left out or used."
        if relation == "add-remove" and not self.dropped:
            return (
                "Expected adjacency zero-out or replace-one: with one example more or less, the number of "
                "batches would change, unless every epoch leaves out some examples (dropped)."
            )
        return None

    def bounds(self, relation: str, scale: float) -> Bounds:
        mu, t = self.unamplified(relation), self.steps
        times = 1 if self.redraw == "once" else self.epochs
        one_epoch, used = mu / math.sqrt(float(times)), 1.0 - self.dropped - self.kept
        alone = sampled(OneOfSteps(Gaussian(one_epoch), t), used)
        if relation == "add-remove":
            return Bounds.exact(repeated(alone, times))
        below: tuple[Ratio, ...] = (alone,)
        if relation == "zero-out":
            below = (ShuffledBelow(one_epoch, t, used), *below)
        above = [Above(Gaussian(mu))]
        if self.dropped:
            s = self.s * (math.sqrt(self.epochs) if self.redraw == "once" else 1.0)
            epoch = ShuffledAbove(s * (1.0 + 4.0 * UNIT), t, relation, min(1.0, used + 2.0 * UNIT))
            above.append(Above(repeated(epoch, times)))
        elif self.redraw == "each-epoch" or self.epochs == 1:
            above += self._clones(relation, scale)
            if self.batch > 1 and t >= SIZED_STEPS:
                used_all = AllUsedAbove(self.s * (1.0 + 4.0 * UNIT), t, relation, self.batch, self.kept)
                above.append(Above(repeated(used_all, self.epochs)))
        return Bounds(above=tuple(above), below=tuple(repeated(ratio, times) for ratio in below))

    def _clones(self, relation: str, scale: float) -> list[Above]:
        """Return the dominating ratios of counts of clones, for a few guesses of epsilon."""
        distance = 2.0 if relation == "replace-one" else 1.0
        clones = Clones(sigma=self.sigma, others=self.steps - 1, distance=distance)
        budget = BUDGET * scale / self.epochs
        found = [(guess, clones.terms(guess, budget, SPLIT)) for guess in GUESSES]
        return [
            Above(
                repeated(ClonesAbove(*terms[:2], clones.others), self.epochs),
                moved=min(1.0, self.epochs * terms[2] * (1.0 + CLONE_COUNTS)),
                meant=guess,
            )
            for guess, terms in found
            if terms
        ]


@dataclass(frozen=True)
class ClonesAbove(Ratio):
    """Ratio of the counts of clones of one shuffled epoch; only the upper distribution is valid."""

    pair_epsilon: float
    clone_rate: float
    others: int

    def build(self, res: Resolution) -> RatioBracket:
        return counts(self.pair_epsilon, self.clone_rate, self.others, res)

    @property
    def width(self) -> float:
        return min(self.pair_epsilon, 5.0)


@dataclass(frozen=True)
class ShuffledBelow(Ratio):
    """Ratio of a shuffled epoch if all other gradients are opposed; only the lower distribution is valid."""

    s: float
    steps: int
    used: float = 1.0
    """Share of the examples that an epoch uses."""
    means: tuple[float, float] = (2.0, 1.0)
    """Multiples of the unit vector of the step, for the example and for its neighbour."""

    def build(self, res: Resolution) -> RatioBracket:
        ratio = opposed(self.s, self.steps, res, self.used, self.means)
        return RatioBracket(lower=ratio, upper=ratio)

    def privacy_loss(self, direction: Direction, cells: int, tail: float) -> LossEnds:
        try:
            return super().privacy_loss(direction, cells, tail)
        except LikelihoodRangeError:
            if self.used < 1.0 or self.means != (1.0, -1.0):
                raise
            return losses_of_opposite_steps(self.s, self.steps, cells, tail)

    @property
    def width(self) -> float:
        return 2.0 * self.s

    @property
    def combinations(self) -> int:
        return 3 * powering(self.steps)


@dataclass(frozen=True)
class OppositeSteps(Ratio):
    """Ratio of Gaussian steps if a random one has the opposite gradient; only its losses are known."""

    s: float
    steps: int

    def build(self, res: Resolution) -> RatioBracket:
        raise LikelihoodRangeError

    def privacy_loss(self, direction: Direction, cells: int, tail: float) -> LossEnds:
        return losses_of_opposite_steps(self.s, self.steps, cells, tail)

    @property
    def width(self) -> float:
        return 2.0 * self.s


def allocated(phase: AllocationPhase, s: float, epochs: int, relation: str) -> Bounds:
    """Return the bounds of allocation to k of t steps over several epochs.

    Args:
        phase: The numbers of steps, participations and examples of the owner.
        s: Inverse noise multiplier.
        epochs: Number of epochs.
        relation: As in `Phase.bounds`. A replaced example may have gradient 0, so the lower ratio for
            zero-out holds for it, too, as does that of the sum of all outputs at twice the distance. In one
            step of an epoch the opposite gradient is the worst; for several steps, no amplification at twice
            the distance is the bound.
    """
    t, k, m = phase.steps, phase.participations, phase.group
    if k == t:
        return Bounds.exact(Gaussian(phase.distance(relation) * math.sqrt(float(k * epochs)) * s))
    alone = OneOfSteps(Gaussian(s), t) if t > 1 else Gaussian(s)
    if m > 1:
        sizes = occupancies(m, t)
        several = Blend(tuple(sizes.values()), tuple(Gaussian(math.sqrt(float(size)) * s) for size in sizes))
        blind = Gaussian(m * s / math.sqrt(float(t)))
        return Bounds(
            above=(Above(repeated(several, epochs)),),
            below=(repeated(alone, epochs), repeated(blind, epochs)),
        )
    ratios = _several(s, t, k, epochs) if k > 1 else [(repeated(alone, epochs),) * 2]
    below = tuple(ratio for _, ratio in ratios)
    if relation == "replace-one":
        above = [Above(Gaussian(phase.unamplified(relation)))]
        below = (*below, Gaussian(2.0 * k * s * math.sqrt(epochs / t)))
        if k == 1:
            above.append(Above(repeated(ShuffledAbove(s * (1.0 + 4.0 * UNIT), t, "in-place", 1.0), epochs)))
            above.append(Above(repeated(OppositeSteps(s, t), epochs)))
            below = (repeated(ShuffledBelow(s, t, means=(1.0, -1.0)), epochs), *below)
        return Bounds(above=tuple(above), below=below)
    return Bounds(above=tuple(Above(ratio) for ratio, _ in ratios), below=below)


def _several(s: float, steps: int, participations: int, epochs: int) -> list[tuple[Ratio, Ratio]]:
    """Return pairs of an upper and a lower ratio of k of t steps, 1 < k < t; the first is quick."""
    reduced = [
        repeated(OneOfSteps(Gaussian(s), size) if size > 1 else Gaussian(s), copies)
        for size, copies in blocks(steps, participations, epochs)
    ]
    below = repeated(ChosenBelow(s, participations, steps), epochs)
    itself = repeated(ChosenSteps(s, participations, steps), epochs)
    return [(product(tuple(reduced)), below), *([(itself, itself)] if steps <= MOST_STEPS else [])]
