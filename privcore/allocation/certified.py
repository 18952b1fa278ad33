"""Random allocation, both bounds proved: the likelihood ratio bracketed in convex order."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

from privcore import params
from privcore.allocation.problems import AllocationDelta, AllocationEpsilon
from privcore.answer import Answer
from privcore.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.likelihood.enclose import Laws, Question, cost, enclose, powering
from privcore.likelihood.law import Bracket, Resolution, combine, mean_of, product_of
from privcore.likelihood.lognormal import lognormal
from privcore.method import Cost, Direction, Method
from privcore.problem import Problem

Allocation = AllocationEpsilon | AllocationDelta


@dataclass(frozen=True, kw_only=True)
class AllocationCertified(Method):
    r"""Enclose epsilon or delta of k-of-t random allocation over E epochs.

    The likelihood ratio of 1-of-t is the mean of t i.i.d. lognormals, that of E epochs a product of E such
    means. Both are built by binary powering; after every step the law is spread (kept dominating) or merged
    (kept a garbling) on a grid, so both ends are proved whatever the grid. For k > 1 the upper end is that of
    the composition of (k - r) E copies of 1-of-f and r E of 1-of-(f + 1), where t = f k + r; the lower end is
    the larger of that of 1-of-t (nesting) and that of the test on the sum of all outputs.
    """

    name: ClassVar[str] = "allocation.certified"
    problems: ClassVar[tuple[type[Problem], ...]] = (AllocationEpsilon, AllocationDelta)
    direction: ClassVar[Direction] = Direction.ENCLOSURE
    reference: ClassVar[str] = (
        "arXiv:2502.08202, Theorem 3.1 (dominating pair), Lemma 3.2 (k to 1), Lemma D.1 (nesting); "
        "convex order: docs/certified.md"
    )
    shares: ClassVar[tuple[str, ...]] = ("sigma", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Allocation)
        return cost(_question(problem), 1.0 / problem.sigma, self.tolerance, _combinations(problem))

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, Allocation)
        question = _question(problem)
        lower, upper, detail = enclose(
            lambda res: _laws(problem, res),
            question,
            self.tolerance,
            copies=problem.participations * problem.epochs,
            outer=_closed_form(problem),
            combinations=_combinations(problem),
        )
        return Answer.enclosure(lower, upper, detail=detail)


def _combinations(problem: Allocation) -> int:
    """Return how many combinations of two laws one resolution takes, about."""
    steps = problem.steps // problem.participations
    copies = problem.participations * problem.epochs
    return powering(steps) + powering(copies)


def _question(problem: Allocation) -> Question:
    at = problem.delta if isinstance(problem, AllocationEpsilon) else problem.epsilon
    return Question(asks=problem.asks, at=at, adjacency=problem.adjacency)


def _closed_form(problem: Allocation) -> tuple[float, float]:
    """Return the bracket between the test on the sum of all outputs and no amplification.

    The sum of the outputs of an epoch is N(k, t sigma^2) against N(0, t sigma^2). Knowing the chosen steps
    as well can only reveal more. The two agree for k = t.
    """
    k, epochs = problem.participations, problem.epochs
    blind = problem.sigma * math.sqrt(problem.steps / epochs) / k
    public = problem.sigma / math.sqrt(k * epochs)
    if isinstance(problem, AllocationEpsilon):
        return gaussian_epsilon_bounds(blind, problem.delta)[0], gaussian_epsilon_bounds(
            public, problem.delta
        )[1]
    return gaussian_delta_bounds(blind, problem.epsilon)[0], gaussian_delta_bounds(public, problem.epsilon)[1]


def _laws(problem: Allocation, res: Resolution) -> Laws:
    """Return the laws of the k-fold reduction, and of one participation for the lower end."""
    s, k, epochs = 1.0 / problem.sigma, problem.participations, problem.epochs
    reduction = composed(s, problem.steps, k, epochs, res)
    nested = reduction if k == 1 else composed(s, problem.steps, 1, epochs, res)
    return Laws(upper=reduction.upper, lower=nested.lower, twin=reduction.lower)


def composed(s: float, steps: int, participations: int, epochs: int, res: Resolution) -> Bracket:
    """Return the bracket of the composition to which k-of-t allocation over E epochs reduces.

    Args:
        s: Inverse noise multiplier.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k.
        epochs: Number of epochs, E.
        res: Resolution of all laws.
    """
    block, rest = divmod(steps, participations)
    parts = [
        _block(s, block, (participations - rest) * epochs, res),
        _block(s, block + 1, rest * epochs, res),
    ]
    first, *others = [part for part in parts if part is not None]
    return combine(first, others[0], res, product=True) if others else first


def _block(s: float, steps: int, copies: int, res: Resolution) -> Bracket | None:
    """Return the product of some copies of one-of-`steps`; None where there are no copies."""
    if copies == 0:
        return None
    if steps == 1:  # copies of a public step compose to one Gaussian
        return lognormal(s * math.sqrt(copies), res)
    return product_of(one_of(s, steps, res), copies, res)


@lru_cache(maxsize=32)
def one_of(s: float, steps: int, res: Resolution) -> Bracket:
    """Return the bracket of the likelihood ratio of one step chosen out of `steps`; cached, it is shared."""
    return mean_of(lognormal(s, res), steps, res)
