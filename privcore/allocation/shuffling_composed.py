"""Lower bounds of shuffling that compose over epochs: post-processings of one epoch, multiplied."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, get_args

from privcore import params
from privcore.allocation.comparisons import Shuffling, ShufflingEpsilon
from privcore.allocation.reduction import one_of
from privcore.allocation.shuffling_maxima import largest_output
from privcore.answer import Answer
from privcore.likelihood_ratio.distribution import (
    RatioBracket,
    RatioDistribution,
    Resolution,
    product_of,
)
from privcore.likelihood_ratio.opposed import opposed
from privcore.likelihood_ratio.questions import (
    Question,
    cost,
    first_fineness,
    from_below,
    powering,
)
from privcore.likelihood_ratio.steps import GaussianStep
from privcore.method import Cost, Direction, Method
from privcore.papers import CHUA_SHUFFLING

Epoch = Callable[[float, int, Resolution], RatioDistribution]
"""Function of inverse noise multiplier, steps and resolution: a lower distribution of an epoch."""


@dataclass(frozen=True, kw_only=True)
class ShufflingComposed(Method[Shuffling]):
    r"""Bound shuffling from below over all epochs, for the worst of several data sets of clipped gradients.

    The example has gradient 1; in its neighbour the gradient is 0 (zero-out) or -1 (replace-one). If all
    other examples have gradient -1, an epoch has, up to a shift, mean $2 e_j$ against $e_j$ or against 0, for
    a random step j; if all others have gradient 0, it has $e_j$ against 0. The gradients of the other
    examples of a batch cancel, so its size makes no difference. The pairs with 0 are random allocation at
    sigma / 2 or sigma. Of the pair $2 e_j$ against $e_j$, either the conditional means of both densities are
    kept in cells, or the cell of the largest output. Epochs with new permutations have independent ratios,
    which are multiplied; epochs with the same permutation equal one epoch at sigma / sqrt(epochs). In
    zero-out and replace-one both directions count.
    """

    name = "shuffling.composed"
    problems = get_args(Shuffling)
    direction = Direction.LOWER
    reference = f"{CHUA_SHUFFLING} (means 2 against 1); joint conditional means: docs/shuffling.md"
    shares = ("sigma", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Shuffling) -> Cost:
        s, epochs = scheme(problem)
        combinations = powering(problem.steps) + powering(epochs)
        one = cost(_question(problem), 2.0 * s, self.tolerance, combinations)
        finer = (self._fineness(problem) / first_fineness(problem.asks, self.tolerance, combinations)) ** 2
        return Cost(seconds=0.02 + one.seconds / finer, bytes=2.0 * one.bytes)

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        question, (s, epochs) = _question(problem), scheme(problem)
        trivial = 0.0 if question.asks == "epsilon" else max(0.0, -math.expm1(min(0.0, question.at)))
        best, told = math.nextafter(trivial, 0.0) if trivial else 0.0, "no post-processing gives a bound"
        for words, epoch in _epochs(problem).items():
            build = partial(_composed, epoch, s, problem.steps, epochs)
            found, detail = from_below(build, question, self._fineness(problem), epochs)
            if found > best:
                best, told = found, f"all other gradients {words}, {detail}"
        return Answer.enclosure(min(best, problem.largest), problem.largest, detail=told)

    def _fineness(self, problem: Shuffling) -> float:
        """Return the width of cells in local standard deviations."""
        combinations = powering(problem.steps) + powering(scheme(problem)[1])
        return 0.7 * first_fineness("epsilon", self.tolerance, combinations)  # the lower end has no other


def scheme(problem: Shuffling) -> tuple[float, int]:
    """Return the inverse noise multiplier and the number of epochs with new permutations.

    With one permutation for all epochs, the means of the outputs over the epochs are sufficient, for
    gradients that do not depend on earlier outputs; such gradients give a lower end.
    """
    if problem.redraw == "once":
        return math.sqrt(problem.epochs) / problem.sigma, 1
    return 1.0 / problem.sigma, problem.epochs


def _question(problem: Shuffling) -> Question:
    at = problem.delta if isinstance(problem, ShufflingEpsilon) else problem.epsilon
    return Question(asks=problem.asks, at=at, adjacency=problem.adjacency)


def _epochs(problem: Shuffling) -> dict[str, Epoch]:
    """Return the lower distributions of an epoch, by the gradient of all other examples."""
    if problem.adjacency == "replace-one":
        return {"-1": _replaced}
    return {"-1, joint means": opposed, "-1, largest outputs": largest_output, "0": _allocated}


def _allocated(s: float, steps: int, res: Resolution) -> RatioDistribution:
    """Return the lower distribution of e_j against 0: random allocation."""
    return one_of(GaussianStep(1.0 / s), steps, res).lower


def _replaced(s: float, steps: int, res: Resolution) -> RatioDistribution:
    """Return the lower distribution of 2 e_j against 0: random allocation at half the noise."""
    return _allocated(2.0 * s, steps, res)


def _composed(epoch: Epoch, s: float, steps: int, epochs: int, res: Resolution) -> RatioDistribution:
    """Return a lower distribution of the ratio of all epochs, each with a new permutation."""
    law = epoch(s, steps, res)
    return product_of(RatioBracket(lower=law, upper=law), epochs, res).lower
