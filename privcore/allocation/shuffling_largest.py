"""Lower bound of shuffling by one test: the largest output of all epochs is compared with a threshold."""

from dataclasses import dataclass
from typing import get_args

from privcore.allocation.comparisons import Shuffling, ShufflingEpsilon
from privcore.allocation.largest import BestTest, Outputs, described, epochs_to_try, largest_test
from privcore.allocation.shuffling_composed import scheme
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.method import Cost, Direction, Method
from privcore.papers import CHUA_SHUFFLING


@dataclass(frozen=True, kw_only=True)
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
    problems = get_args(Shuffling)
    direction = Direction.LOWER
    reference = f"{CHUA_SHUFFLING} (means 2 against 1, zeroing-out adjacency)"

    def cost(self, problem: Shuffling) -> Cost:
        return Cost(seconds=6e-3 * len(epochs_to_try(scheme(problem)[1])), bytes=2e6)

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        at = problem.delta if isinstance(problem, ShufflingEpsilon) else problem.epsilon
        best, detail = BestTest(value=0.0), ""
        for direction in profile.DIRECTIONS[problem.adjacency]:
            for epochs in epochs_to_try(scheme(problem)[1]):
                for gradients, with_example, without in _data_sets(problem, epochs):
                    found = largest_test(problem.asks, at, with_example, without, direction)
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
