"""Lower ends for shuffled batches: an adversary whose epochs compose, and the largest loss."""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Annotated

import numpy as np

from privcore import params
from privcore.allocation.problems import SHUFFLING, Shuffling
from privcore.allocation.reduction import one_of
from privcore.allocation.sums import (
    BestTest,
    Outputs,
    described,
    epochs_to_try,
    largest_test,
    log_exceedances,
)
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.allocated.opposed import opposed
from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    product_of,
)
from privcore.likelihood_ratio.grid import MOST_CELLS, Array
from privcore.likelihood_ratio.questions import cost, first_fineness, from_below, powering, question_of
from privcore.likelihood_ratio.steps import GaussianStep
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import UNIT
from privcore.papers import CHUA_SHUFFLING

_LARGEST_ERROR = 1e-8
"""Cells whose masses have a larger relative error are left out."""
_SCOUTED = 512
"""Number of thresholds among which the lowest that matters is found."""


@lru_cache(maxsize=32)
def largest_output(s: float, steps: int, res: Resolution) -> RatioDistribution:
    r"""Return the distribution of the ratio of the largest output in cells, to be shared.

    The means are $2 e_j$ for a random step j under P, and $e_j$ under Q. Over a cell from c to d the largest
    output has probability $e^{-h(d)} (1 - e^{h(d) - h(c)})$ with h from `log_exceedances`, whose bounds are
    used for both sides. The cell of an outcome is post-processing, and a cell that is left out only lowers
    both directions.

    Args:
        s: Inverse noise multiplier, > 0.
        steps: Number t of steps.
        res: Width of the cells, and the mass beyond them.

    Raises:
        LikelihoodRangeError: The ratio of every cell exceeds the range of doubles.

    Reference:
        Chua et al. (2024), arXiv:2403.17673v2 and 2411.04205 (the largest coordinate).

    Example:
        >>> law = largest_output(1.0, 100, Resolution(fineness=0.1, tail=1e-10))
        >>> round(float(law.p @ law.x), 6)
        1.0
    """
    others: Outputs = ((steps - 1, 0.0),) if steps > 1 else ()
    nats = 1.0 - math.log(res.tail)
    reach = math.sqrt(2.0 * nats)
    cuts = np.linspace(-reach, max(2.0 * s, math.sqrt(2.0 * math.log(steps))) + reach, _SCOUTED)
    certain = log_exceedances(cuts, ((1, s), *others), -1) > math.log(nats)  # some output is above
    low = float(cuts[max(0, int(np.argmin(certain)) - 1)])
    width = res.fineness / max(2.0, s)
    cuts = np.linspace(low, cuts[-1], min(MOST_CELLS, math.ceil((cuts[-1] - low) / width) + 1))
    p_low, p_high = _cells(cuts, ((1, 2.0 * s), *others))
    q_low, q_high = _cells(cuts, ((1, s), *others))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mass, value = np.sqrt(q_low) * np.sqrt(q_high), np.sqrt(p_low / q_high) * np.sqrt(p_high / q_low)
        error = np.maximum(p_high / p_low, q_high / q_low) - 1.0
    keep = (error < _LARGEST_ERROR) & (p_low > 1e-280) & (q_low > 1e-280) & (value < LARGEST_RATIO)
    if not keep.any():
        raise LikelihoodRangeError
    order = np.argsort(value[keep])
    worst = 2.0 * float(np.max(error[keep], initial=0.0)) + 16.0 * UNIT
    return RatioDistribution(
        x=value[keep][order], p=mass[keep][order], mass_error=worst, value_error=2.0 * worst
    )


def _cells(cuts: Array, outputs: Outputs) -> tuple[Array, Array]:
    """Return lower and upper bounds of the probabilities of the cells between cuts, and beyond the last."""
    with np.errstate(over="ignore", under="ignore"):
        most = np.append(np.exp(log_exceedances(cuts, outputs, 1)), 0.0)
        least = np.append(np.exp(log_exceedances(cuts, outputs, -1)), 0.0)
        low = np.exp(-most[1:]) * -np.expm1(-np.maximum(least[:-1] - most[1:], 0.0))
        high = np.exp(-least[1:]) * -np.expm1(least[1:] - most[:-1])
    slack = 16.0 * UNIT
    return low * (1.0 - slack), high * (1.0 + slack)


Epoch = Callable[[float, int, Resolution], RatioDistribution]
"""Function of inverse noise multiplier, steps and resolution: a lower distribution of an epoch."""


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
    problems = SHUFFLING
    direction = Direction.LOWER
    reference = f"{CHUA_SHUFFLING} (means 2 against 1); joint conditional means: docs/shuffling.md"
    shares = ("sigma", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Shuffling) -> Cost:
        s, epochs = scheme(problem)
        combinations = powering(problem.steps) + powering(epochs)
        one = cost(question_of(problem), 2.0 * s, self.tolerance, combinations)
        finer = (self._fineness(problem) / first_fineness(problem.asks, self.tolerance, combinations)) ** 2
        return Cost(seconds=0.02 + one.seconds / finer, bytes=2.0 * one.bytes)

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        question, (s, epochs) = question_of(problem), scheme(problem)
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


class ShufflingLargest(Method[Shuffling]):
    r"""Bound shuffling from below, for the worst of two data sets of clipped gradients.

    The example has gradient 1 and its neighbour the zero gradient (or -1, for replace-one), in the same place
    of the permutation. If all others have gradient -1, the outputs have, up to a shift, mean $2 e_j$ against
    $e_j$ (against 0, for replace-one) for a random step j. If all others have gradient 0, the outputs are
    those of random allocation, $e_j$ against 0. The bound is the larger one of the tests on the largest
    output. It does not hold for random allocation, which chooses the steps of other examples independently,
    so that they reveal nothing.
    """

    name = "shuffling.largest"
    problems = SHUFFLING
    direction = Direction.LOWER
    reference = f"{CHUA_SHUFFLING} (means 2 against 1, zeroing-out adjacency)"

    def cost(self, problem: Shuffling) -> Cost:
        return Cost(seconds=6e-3 * len(epochs_to_try(scheme(problem)[1])), bytes=2e6)

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        best, detail = BestTest(value=0.0), ""
        for direction in profile.DIRECTIONS[problem.adjacency]:
            for epochs in epochs_to_try(scheme(problem)[1]):
                for gradients, with_example, without in _data_sets(problem, epochs):
                    found = largest_test(problem.asks, problem.at, with_example, without, direction)
                    if found.value > best.value or not detail:
                        shown = described(found, problem.sigma)
                        best, detail = found, f"{direction}, {shown}, all other gradients {gradients}"
        return Answer.enclosure(best.value, problem.largest, detail=f"lower bound of shuffling: {detail}")


def _data_sets(problem: Shuffling, epochs: int) -> list[tuple[str, Outputs, Outputs]]:
    """Return the gradient of all other examples, and the outputs of some epochs with and without one."""
    mean, rest = scheme(problem)[0], (problem.steps - 1) * epochs
    others = ((rest, 0.0),) if rest else ()
    far, near = ((epochs, 2.0 * mean), *others), ((epochs, mean), *others)
    none = ((problem.steps * epochs, 0.0),)
    if problem.adjacency == "replace-one":
        return [("-1", far, none)]
    return [("-1", far, near), ("0", near, none)]
