"""No amplification: the composed Gaussian mechanism, exactly."""

import math
from dataclasses import dataclass
from typing import ClassVar

from privcore.allocation.comparisons import UnamplifiedDelta, UnamplifiedEpsilon
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.papers import BALLE_WANG
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class UnamplifiedExact(Method):
    """Gaussian mechanism with noise multiplier sigma / sqrt(k E); both directions are equal."""

    name: ClassVar[str] = "unamplified.exact"
    problems: ClassVar[tuple[type[Problem], ...]] = (UnamplifiedEpsilon, UnamplifiedDelta)
    direction: ClassVar[Direction] = Direction.ENCLOSURE
    reference: ClassVar[str] = f"{BALLE_WANG}, Theorem 8"

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=2e-3, bytes=1e5)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, UnamplifiedEpsilon | UnamplifiedDelta)
        sigma = problem.sigma / math.sqrt(problem.participations * problem.epochs)
        if isinstance(problem, UnamplifiedEpsilon):
            lower, upper = gaussian_epsilon_bounds(sigma, problem.delta)
        else:
            lower, upper = gaussian_delta_bounds(sigma, problem.epsilon)
        return Answer.enclosure(lower, upper, detail="closed form")
