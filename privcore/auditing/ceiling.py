"""Limit of every audit by counts: the epsilon at which a private mechanism attains the counts."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.approximate import no_epsilon_of_family, refuted_mu
from privcore.auditing.attaining import Attaining
from privcore.auditing.exact import AuditingExact, exact_tail
from privcore.auditing.planning_problems import AuditCeiling
from privcore.auditing.problems import MOST, AuditEpsilon
from privcore.auditing.recursion import GAUSSIAN
from privcore.auditing.tightest import (
    claim_of,
    counts_of,
    mu_cost,
    refuted_by,
)
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_epsilon_bounds, last_true
from privcore.papers import MAHLOUJIFAR

_PRECISION = 1e-7
"""Relative precision of the search, far below the gap due to the finite choice of accuracies."""
_MOST_MU = 60.0
_LEAST_MU = 1e-6
"""Least mu in computations; the epsilon for a smaller mu is bounded by the epsilon for this mu."""


@dataclass(frozen=True, kw_only=True)
class AuditingCeiling(Method[AuditCeiling]):
    """Enclose the largest refutable epsilon by an audit and by a mechanism that attains the counts.

    The lower end is the best known audit: `auditing.tightest`, or `auditing.tightestmu` for the Gaussian
    family if it refutes more. The upper end is the least epsilon at which a private mechanism has this many
    correct guesses with probability above 1 - confidence: refuting this epsilon would be an error. Without a
    model the probability is exact, and the ends differ by roundings, unless the probability approaches
    1 - confidence without crossing it clearly.
    """

    name = "auditing.ceiling"
    problems = (AuditCeiling,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Theorems 9 and 10; the mechanisms of the upper end are ours"
    version = 4

    def applies(self, problem: AuditCeiling) -> str | None:
        if problem.family == "gaussian" and problem.alternatives != 2:
            return "The mechanism is for guesses of inclusion only (alternatives=2)."
        return no_epsilon_of_family(problem.family, problem.delta)

    def cost(self, problem: AuditCeiling) -> Cost:
        return ceiling_cost(problem)

    def answer(self, problem: AuditCeiling, seed: int) -> Answer:
        lower, upper = refutable(problem)
        return Answer.enclosure(
            lower, upper, detail=f"audit and attaining mechanism, {problem.family} family"
        )


def ceiling_cost(problem: AuditCeiling) -> Cost:
    """Return the cost of bounding the largest refutable epsilon from below and above."""
    if problem.family == "approximate":
        once = AuditingExact().cost(claim_of(_audit(problem), 1.0))
        return Cost(seconds=120.0 * once.seconds, bytes=once.bytes)
    audit, root = mu_cost(problem), problem.guesses**0.5
    return Cost(seconds=0.1 + 3e-4 * root + audit.seconds, bytes=2e6 + 4e4 * root + audit.bytes)


def refutable(problem: AuditCeiling) -> tuple[float, float]:
    """Return lower and upper bounds of the largest epsilon that a valid audit can refute.

    Args:
        problem: Counts, delta, confidence and family; for the Gaussian family, guesses of inclusion.

    Returns:
        Epsilon that an audit refutes, rounded down, and ceiling of all audits, rounded up; in nats.

    Example:
        >>> counts = {"canaries": 1000, "guesses": 1000, "correct": 691}
        >>> low, high = refutable(AuditCeiling(**counts, delta=1e-5, family="gaussian"))
        >>> round(low, 4), round(high, 4)
        (1.2967, 1.4524)
    """
    audit, tau = _audit(problem), 1.0 - problem.audit_confidence
    refuted = refuted_by(audit, problem.family)
    counts = problem.canaries, problem.guesses, problem.correct
    if problem.family == "approximate":

        def may_be_refuted(epsilon: float) -> bool:
            return exact_tail(*counts, epsilon, problem.delta, problem.alternatives)[0] <= tau

        return refuted, max(refuted, last_true(may_be_refuted, 0.0, MOST)[1])
    attaining, mu = Attaining(*counts), refuted_mu(audit)
    ceiling = _least(lambda x: attaining.probability((GAUSSIAN, x, 0.0)) > tau, mu, _MOST_MU)
    return refuted, max(refuted, _epsilon_above(ceiling, problem.delta))


def _audit(problem: AuditCeiling) -> AuditEpsilon:
    """Return the audit of these counts."""
    return AuditEpsilon(**counts_of(problem), delta=problem.delta, audit_confidence=problem.audit_confidence)


def _least(attained: Callable[[float], bool], start: float, most: float) -> float:
    """Return the least parameter at which the counts are attained, rounded up to the precision."""
    if attained(0.0):
        return 0.0
    low, high = start, min(most, 1.05 * start + 0.1)
    while not attained(high):
        if high >= most:
            return math.inf
        low, high = high, min(most, 2.0 * high)
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if attained(middle) else (middle, high)
    return high


def _epsilon_above(mu: float, delta: float) -> float:
    """Return the epsilon of a Gaussian mechanism, rounded up."""
    if mu in (0.0, math.inf):
        return mu
    return gaussian_epsilon_bounds(1.0 / max(mu, _LEAST_MU), delta)[1]
