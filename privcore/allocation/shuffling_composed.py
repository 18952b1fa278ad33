"""Lower bounds of shuffling that compose over epochs: post-processings of one epoch, multiplied."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, get_args

from privcore import params
from privcore.allocation.comparisons import Shuffling, ShufflingEpsilon
from privcore.allocation.reduction import composed
from privcore.answer import Answer
from privcore.likelihood_ratio.distribution import (
    RatioBracket,
    RatioDistribution,
    Resolution,
    product_of,
)
from privcore.likelihood_ratio.enclose import (
    Question,
    cost,
    enclose,
    first_fineness,
    from_below,
    powering,
)
from privcore.likelihood_ratio.opposed import opposed
from privcore.likelihood_ratio.steps import GaussianStep
from privcore.method import Cost, Direction, Method
from privcore.papers import CHUA_SHUFFLING


@dataclass(frozen=True, kw_only=True)
class ShufflingComposed(Method[Shuffling]):
    r"""Bound shuffling from below over all epochs, for the worst of several data sets of clipped gradients.

    The example has gradient 1; in its neighbour the gradient is 0 (zero-out) or -1 (replace-one). If all
    other examples have gradient -1, an epoch has, up to a shift, mean $2 e_j$ against $e_j$ or against 0, for
    a random step j; if all others have gradient 0, it has $e_j$ against 0. The gradients of the other
    examples of a batch cancel, so its size makes no difference. The pairs with 0 are random allocation at
    sigma / 2 or sigma. Of the pair $2 e_j$ against $e_j$, the conditional means of both densities are kept
    in cells. Epochs with new permutations have independent ratios, which are multiplied; epochs with the
    same permutation equal one epoch at sigma / sqrt(epochs). In zero-out and replace-one both directions
    count.
    """

    name = "shuffling.composed"
    problems = get_args(Shuffling)
    direction = Direction.LOWER
    reference = f"{CHUA_SHUFFLING} (means 2 against 1); joint conditional means as proved in the code"
    shares = ("sigma", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Shuffling) -> Cost:
        s, epochs = scheme(problem)
        combinations = powering(problem.steps) + powering(epochs)
        one = cost(_question(problem), 2.0 * s, self.tolerance, combinations)
        return Cost(seconds=3.0 * one.seconds, bytes=2.0 * one.bytes)

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        question, (s, epochs) = _question(problem), scheme(problem)
        trivial = 0.0 if question.asks == "epsilon" else max(0.0, -math.expm1(min(0.0, question.at)))
        best, told = math.nextafter(trivial, 0.0) if trivial else 0.0, "no post-processing is in range"
        for gradient, (found, detail) in (
            ("-1", self._opposed(problem, question)),
            ("0", self._allocated(problem, question, s, epochs)),
        ):
            if found > best:
                best, told = found, f"all other gradients {gradient}, {detail}"
        return Answer.enclosure(min(best, problem.largest), problem.largest, detail=told)

    def _opposed(self, problem: Shuffling, question: Question) -> tuple[float, str]:
        """Return the lower end if all other gradients are -1."""
        s, epochs = scheme(problem)
        if problem.adjacency == "replace-one":
            return self._allocated(problem, question, 2.0 * s, epochs)
        fineness = first_fineness(question.asks, self.tolerance, powering(problem.steps) + powering(epochs))
        return from_below(partial(opposed_epochs, s, problem.steps, epochs), question, fineness, epochs)

    def _allocated(self, problem: Shuffling, question: Question, s: float, epochs: int) -> tuple[float, str]:
        """Return the lower end of random allocation at an inverse noise multiplier."""
        lower, _, detail = enclose(
            partial(composed, GaussianStep(1.0 / s), problem.steps, 1, epochs, 1.0),
            question,
            self.tolerance,
            copies=epochs,
            outer=(0.0, math.inf if question.asks == "epsilon" else 1.0),
            combinations=powering(problem.steps) + powering(epochs),
        )
        return lower, detail


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


def opposed_epochs(s: float, steps: int, epochs: int, res: Resolution) -> RatioDistribution:
    """Return a lower distribution of the ratio of all epochs, each with a new permutation.

    Args:
        s: Inverse noise multiplier.
        steps: Steps of an epoch.
        epochs: Number of epochs.
        res: Resolution of all distributions.
    """
    law = opposed(s, steps, res)
    return product_of(RatioBracket(lower=law, upper=law), epochs, res).lower
