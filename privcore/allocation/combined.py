"""The least of the published upper bounds of random allocation, separately for each direction."""

from dataclasses import dataclass, replace
from typing import Annotated, get_args

from privcore import params
from privcore.allocation.analytic import AllocationAnalytic
from privcore.allocation.decomposition import AllocationDecomposition
from privcore.allocation.direct import AllocationDirect
from privcore.allocation.problems import Allocation
from privcore.allocation.recursive import AllocationRecursive
from privcore.allocation.truncation import unamplified
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.method import Cost, Direction, Method
from privcore.papers import FELDMAN_SHENFELD


@dataclass(frozen=True, kw_only=True)
class AllocationCombined(Method[Allocation]):
    """Take the least of no amplification, analytic, decomposition, direct and recursive, per direction.

    Each of these is a bound in each direction, so the least is too. The answer is the larger direction.
    """

    name = "allocation.combined"
    problems = get_args(Allocation)
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, the minimum over Theorems 4.1, 4.2, 4.6, 4.8 and 4.9"
    version = 3
    shares = ("sigma", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Allocation) -> Cost:
        costs = [
            method.cost(part)
            for part in _directions(problem)
            for method in self._methods()
            if method.applies(part) is None
        ]
        # Directions share distributions, and theorems that do not apply take no time.
        return Cost(
            seconds=0.4 * sum(cost.seconds for cost in costs), bytes=max(cost.bytes for cost in costs)
        )

    def answer(self, problem: Allocation, seed: int) -> Answer:
        found = [self._least(part, seed) for part in _directions(problem)]
        return Answer.at_most(max(upper for upper, _ in found), detail="; ".join(text for _, text in found))

    def _methods(self) -> tuple[Method, ...]:
        """Return the methods of the paper, by falling priority in case of equal bounds."""
        return (
            AllocationDirect(),
            AllocationDecomposition(tolerance=self.tolerance),
            AllocationRecursive(tolerance=self.tolerance),
            AllocationAnalytic(tolerance=self.tolerance),
        )

    def _least(self, problem: Allocation, seed: int) -> tuple[float, str]:
        """Return the least bound in one direction, and the method that gives it."""
        upper, text = unamplified(problem), f"{problem.adjacency}: no amplification"
        for method in self._methods():
            if method.applies(problem) is None:
                answer = method.answer(problem, seed)
                if answer.upper < upper:
                    detail = answer.detail.removeprefix(f"{problem.adjacency}: ")
                    upper, text = answer.upper, f"{problem.adjacency}: {method.name}, {detail}"
        return upper, text


def _directions(problem: Allocation) -> list[Allocation]:
    """Return the problem in each direction of its adjacency."""
    return [replace(problem, adjacency=direction) for direction in profile.DIRECTIONS[problem.adjacency]]
