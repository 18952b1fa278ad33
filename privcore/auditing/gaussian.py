"""Algorithm 3 for the Gaussian family: what the counts say if the mechanism is like a Gaussian one."""

from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.auditing.counts import SLACK, recursion_cost
from privcore.auditing.problems import AuditDpsgdEpsilon, AuditEpsilon, Counts
from privcore.auditing.recursion import GAUSSIAN, largest_refuted
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_epsilon_bounds
from privcore.papers import MAHLOUJIFAR
from privcore.problem import Problem

_MOST_MU = 60.0


@dataclass(frozen=True, kw_only=True)
class AuditingGaussian(Method):
    r"""The epsilon of the least private Gaussian mechanism that the counts refute.

    To refute mu-GDP is not to refute the $(\varepsilon, \delta)$ of that mu: a mechanism of another shape may
    be as private as it claims and still not be mu-GDP. So this is an estimate that rests on the model, and
    may exceed the true epsilon; `auditing.approximate` and `auditing.steinke` rest on nothing.
    """

    name: ClassVar[str] = "auditing.gaussian"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditEpsilon,)
    direction: ClassVar[Direction] = Direction.ESTIMATE
    reference: ClassVar[str] = f"{MAHLOUJIFAR}, Algorithm 3 and Definition 7, Gaussian family"
    version: ClassVar[int] = 2

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Counts)
        return recursion_cost(problem)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditEpsilon)
        mu = refuted_mu(problem)
        return Answer.about(
            epsilon_of(mu, problem.delta),
            detail=f"model-based: mu = {mu:.6g} of Gaussian noise, confidence {problem.audit_confidence:.4g}",
        )


def refuted_mu(problem: AuditEpsilon | AuditDpsgdEpsilon) -> float:
    """Return the largest mu that the counts refute, rounded down."""
    mu = largest_refuted(GAUSSIAN, 0.0, problem.counts, 1.0 - problem.audit_confidence, _MOST_MU)
    return min(mu, _MOST_MU) * (1.0 - SLACK)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the epsilon of a Gaussian mechanism, rounded down; at most 1e4.

    Example:
        >>> round(epsilon_of(1.0, 1e-5), 6)
        4.377178
    """
    return 0.0 if mu < 1e-6 else min(1e4, gaussian_epsilon_bounds(1.0 / mu, delta)[0])
