"""Algorithm 3 for the Gaussian family: what the counts say if the mechanism is like a Gaussian one."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.counts import SLACK, recursion_cost
from privcore.auditing.problems import AuditDpsgdEpsilon, AuditEpsilon
from privcore.auditing.recursion import GAUSSIAN, largest_refuted
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_epsilon_bounds
from privcore.papers import MAHLOUJIFAR

_MOST_MU = 60.0


@dataclass(frozen=True, kw_only=True)
class AuditingGaussian(Method[AuditEpsilon]):
    r"""The epsilon of the least private Gaussian mechanism that the counts refute.

    To refute mu-GDP is not to refute the $(\varepsilon, \delta)$ of that mu: a mechanism of another shape may
    be as private as it claims and still not be mu-GDP. So this is an estimate that rests on the model, and
    may exceed the true epsilon; `auditing.approximate` and `auditing.steinke` rest on nothing.
    """

    name = "auditing.gaussian"
    problems = (AuditEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Algorithm 3 and Definition 7, Gaussian family"
    version = 2

    def cost(self, problem: AuditEpsilon) -> Cost:
        return recursion_cost(problem)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
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
