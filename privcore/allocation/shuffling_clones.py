"""Upper bounds of shuffling: clones over one or several epochs, or no amplification if that is less."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

from privcore import params
from privcore.allocation.comparisons import Shuffling, ShufflingEpsilon
from privcore.allocation.shuffling_counts import composed_delta, composed_epsilon
from privcore.allocation.shuffling_one_epoch import (
    LARGEST_EPSILON,
    Clones,
    clones_epsilon,
    clones_profile,
)
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.numerics.rounding import CLONE_COUNTS
from privcore.papers import FELDMAN_MCMILLAN


@dataclass(frozen=True, kw_only=True)
class ShufflingClones(Method[Shuffling]):
    """Bound shuffling by the clones of Feldman et al., or by no amplification if that is less.

    Examples have clipped gradients, of norm at most 1; the neighbour has the zero gradient, or any other for
    replace-one, in one place of the permutation. The bound is the same in both directions. Clones are sent by
    examples whose gradients have a distance of up to 2; with a distance of 1 the formula would fall below
    `shuffling.largest`. Of every batch one example is designated, and all others and their places are
    revealed; the designated examples are uniformly permuted over the batches. So the bound holds for batches
    of any size. The counts of clones of several epochs are composed. If the order is kept for all epochs and
    gradients depend on earlier outputs, nothing better than no amplification is known.
    """

    name = "shuffling.clones"
    problems = get_args(Shuffling)
    direction = Direction.UPPER
    reference = f"{FELDMAN_MCMILLAN}, Theorem 3.1; batches, noise and epochs: docs/shuffling.md"

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Shuffling) -> Cost:
        several = 0.2 if problem.asks == "epsilon" else 0.4
        return Cost(
            seconds=0.15 if problem.epochs == 1 else several, bytes=1e6 if problem.epochs == 1 else 5e7
        )

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        distance = 2.0 if problem.adjacency == "replace-one" else 1.0
        sigma = problem.sigma / (distance * math.sqrt(problem.epochs))
        clones = Clones(sigma=problem.sigma, others=problem.steps - 1, distance=distance)
        if isinstance(problem, ShufflingEpsilon):
            local = gaussian_epsilon_bounds(sigma, problem.delta)[1]
        else:
            local = gaussian_delta_bounds(sigma, problem.epsilon)[1]
        if problem.redraw == "once" and problem.epochs > 1:
            return Answer.at_most(local, detail=f"no amplification; {_KEPT}")
        if isinstance(problem, ShufflingEpsilon):
            found = self._epsilon(clones, problem.epochs, problem.delta, local)
        else:
            found = self._delta(clones, problem.epochs, problem.epsilon, local)
        if found < local:
            return Answer.at_most(found, detail="amplification by clones")
        return Answer.at_most(local, detail=f"no amplification; {_UNKNOWN}")

    def _epsilon(self, clones: Clones, epochs: int, delta: float, local: float) -> float:
        """Return the bound of epsilon by clones."""
        if epochs == 1:
            return clones_epsilon(clones, delta)
        return composed_epsilon(clones, epochs, delta, min(local, LARGEST_EPSILON), self.tolerance)

    def _delta(self, clones: Clones, epochs: int, epsilon: float, local: float) -> float:
        """Return the bound of delta by clones."""
        if abs(epsilon) > LARGEST_EPSILON:
            return 1.0
        if epochs > 1:
            return composed_delta(clones, epochs, epsilon, local, self.tolerance)
        found = clones_profile(clones, abs(epsilon))
        if epsilon < 0.0:  # delta(x) = 1 - e^x + e^x delta'(-x), delta' that of the other direction
            found = -math.expm1(epsilon) + math.exp(epsilon) * found
            found = math.nextafter(found * (1.0 + CLONE_COUNTS), 2.0)
        return found


_UNKNOWN = "no better upper end is known at this noise"
_KEPT = "no better upper end is known for an order that is kept for all epochs"
