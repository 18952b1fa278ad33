"""No amplification: the exact composition of Gaussian mechanisms."""

import math
from dataclasses import dataclass
from typing import get_args

from privcore.allocation.comparisons import UnamplifiedDelta, UnamplifiedEpsilon
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.papers import BALLE_WANG

Answered = UnamplifiedEpsilon | UnamplifiedDelta


@dataclass(frozen=True, kw_only=True)
class UnamplifiedExact(Method[Answered]):
    """All k E steps equal one Gaussian step with noise multiplier sigma / sqrt(k E)."""

    name = "unamplified.exact"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{BALLE_WANG}, Theorem 8"

    def cost(self, problem: Answered) -> Cost:
        return Cost(seconds=2e-3, bytes=1e5)

    def answer(self, problem: Answered, seed: int) -> Answer:
        sigma = problem.sigma / math.sqrt(problem.participations * problem.epochs)
        if problem.adjacency == "replace-one":  # opposite gradients have twice the distance
            sigma *= 0.5
        if isinstance(problem, UnamplifiedEpsilon):
            lower, upper = gaussian_epsilon_bounds(sigma, problem.delta)
        else:
            lower, upper = gaussian_delta_bounds(sigma, problem.epsilon)
        return Answer.enclosure(lower, upper, detail="closed form")
