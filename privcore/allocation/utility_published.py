"""Error of a mean with the noise that the published bounds of random allocation require."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from privcore import params
from privcore.allocation.combined import AllocationCombined
from privcore.allocation.problems import AllocationEpsilon
from privcore.allocation.utility_formula import squared_error
from privcore.allocation.utility_problems import AllocationError
from privcore.answer import Answer, Status
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import SHORT_FORMULA, SUBNORMAL
from privcore.papers import FELDMAN_SHENFELD

_START = 1.0
"""Noise multiplier from which the search doubles or halves."""


@dataclass(frozen=True, kw_only=True)
class UtilityPublished(Method[AllocationError]):
    """Bound the error from above by the error at the noise that the published bounds of epsilon require.

    The least noise multiplier is at most any one at which `allocation.combined` meets epsilon. A bisection
    ends at such a noise multiplier, so the result is a bound even if the published bound is not monotone.
    """

    name = "utility.published"
    problems = (AllocationError,)
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Section 5.1, with noise by the minimum over its theorems"
    shares = ("epsilon", "delta", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def applies(self, problem: AllocationError) -> str | None:
        return AllocationCombined().applies(_epsilon_at(1.0, problem.delta, problem.steps))

    def cost(self, problem: AllocationError) -> Cost:
        one = AllocationCombined().cost(_epsilon_at(1.0, problem.delta, problem.steps))
        looks = 12.0 + math.log2(1.0 / self.tolerance)
        return Cost(seconds=looks * one.seconds, bytes=one.bytes)

    def answer(self, problem: AllocationError, seed: int) -> Answer:
        sigma = sufficient_noise(problem.epsilon, problem.delta, problem.steps, 0.5 * self.tolerance)
        if math.isinf(sigma):
            return Answer.without(Status.FAILED, "No noise multiplier meets epsilon by the published bounds.")
        error = squared_error(problem, sigma)
        return Answer.at_most(
            error * (1.0 + SHORT_FORMULA) + SUBNORMAL, detail=f"noise multiplier {sigma!r}, which suffices"
        )


@lru_cache(maxsize=64)
def sufficient_noise(epsilon: float, delta: float, steps: int, precision: float) -> float:
    """Return a noise multiplier at which the published bounds meet epsilon; infinity if none was found.

    Args:
        epsilon: Largest allowed epsilon, > 0.
        delta: Largest allowed delta, in (0, 1).
        steps: Number of steps, >= 1.
        precision: Relative distance at which the bisection ends, > 0.

    Returns:
        A noise multiplier that suffices: an upper bound of the least one.

    Reference:
        arXiv:2502.08202v3, Theorems 4.1, 4.2, 4.6, 4.8 and 4.9.

    Example:
        >>> 2.4 < sufficient_noise(0.1, 1e-10, 1000, 0.01) < 2.6
        True
    """

    def enough(sigma: float) -> bool:
        found = AllocationCombined().answer(_epsilon_at(sigma, delta, steps), 0)
        return found.status is Status.OK and found.upper <= epsilon

    high = _START
    while not enough(high):
        if high >= params.SIGMA.upper:
            return math.inf
        high = min(2.0 * high, params.SIGMA.upper)
    low = 0.5 * high
    while low > params.SIGMA.lower and enough(low):
        low, high = max(0.5 * low, params.SIGMA.lower), low
    while high > low * (1.0 + precision):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _epsilon_at(sigma: float, delta: float, steps: int) -> AllocationEpsilon:
    return AllocationEpsilon(sigma=sigma, delta=delta, steps=steps)
