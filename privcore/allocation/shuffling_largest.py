"""Lower bound of shuffling: the largest output of an epoch, with all other gradients of opposite sign."""

from dataclasses import dataclass
from typing import get_args

from privcore.allocation.comparisons import Shuffling, ShufflingEpsilon
from privcore.allocation.largest import BestTest, described, largest_test
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.method import Cost, Direction, Method
from privcore.papers import CHUA_SHUFFLING


@dataclass(frozen=True, kw_only=True)
class ShufflingLargest(Method[Shuffling]):
    r"""Bound shuffling from below, for the worst of two data sets of clipped gradients.

    The example has gradient 1 and its neighbour the zero gradient, in the same place of the permutation;
    every step uses one example. If all others have gradient -1, the outputs have, up to a shift, mean
    $2 e_j$ against $e_j$ for a random step j. If all others have gradient 0, the outputs are those of random
    allocation, $e_j$ against 0. The bound is the larger one of the two tests on the largest output. It does
    not hold for random allocation, which chooses the steps of other examples independently, so that they
    reveal nothing.
    """

    name = "shuffling.largest"
    problems = get_args(Shuffling)
    direction = Direction.LOWER
    reference = f"{CHUA_SHUFFLING} (means 2 against 1, zeroing-out adjacency)"

    def cost(self, problem: Shuffling) -> Cost:
        return Cost(seconds=6e-3, bytes=2e6)

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        at = problem.delta if isinstance(problem, ShufflingEpsilon) else problem.epsilon
        mean, rest = 1.0 / problem.sigma, problem.steps - 1
        others = ((rest, 0.0),) if rest else ()
        opposed = (((1, 2.0 / problem.sigma), *others), ((1, mean), *others))
        idle = (((1, mean), *others), ((problem.steps, 0.0),))
        best, detail = BestTest(value=0.0), ""
        for direction in profile.DIRECTIONS[problem.adjacency]:
            for gradients, (with_example, without) in (("-1", opposed), ("0", idle)):
                found = largest_test(problem.asks, at, with_example, without, direction)
                if found.value > best.value or not detail:
                    shown = described(found, problem.sigma)
                    best, detail = found, f"{direction}, {shown}, all other gradients {gradients}"
        return Answer.enclosure(best.value, problem.largest, detail=f"lower bound of shuffling: {detail}")
