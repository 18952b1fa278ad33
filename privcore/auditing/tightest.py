"""Audits that use Theorem 9 for all events of counts: without a model, and for the Gaussian family."""

from typing import Any

from privcore.answer import Answer
from privcore.auditing.counts import epsilon_of, no_gaussian_epsilon, refuted_mu
from privcore.auditing.exact import MOST_MU, AuditingExact, curve_cost, curve_mu, exact_epsilon
from privcore.auditing.problems import (
    LEAST,
    AuditEpsilon,
    AuditMu,
    AuditTail,
    Counts,
    level,
    recursion_cost,
    refuted,
)
from privcore.auditing.programme import gaussian_profile, largest_mu, too_many_guesses
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import AUDIT_SEARCH
from privcore.papers import MAHLOUJIFAR


class AuditingTightest(Method[AuditEpsilon]):
    """Refute (epsilon, delta)-DP if the exact probability of the count is below 1 - confidence.

    The probability is the largest one of all private mechanisms and grows with epsilon, so no other use of
    the counts refutes more.
    """

    name = "auditing.tightest"
    version = 2
    problems = (AuditEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Theorem 9; the solution is ours"
    covers = ("auditing.combined", "auditing.approximate", "auditing.steinke")

    def cost(self, problem: AuditEpsilon) -> Cost:
        once = AuditingExact().cost(claim_of(problem, 1.0))
        return Cost(seconds=60.0 * once.seconds, bytes=once.bytes)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        return refuted(problem, exact_epsilon(problem), "closed form")


class AuditingTightestMu(Method[AuditEpsilon]):
    """Epsilon of the least private Gaussian mechanism that any bound of the probability of the count refutes.

    The bounds are Algorithm 3, the exact probabilities along the privacy curve and, for up to 500 guesses,
    the linear programme of Theorem 9. As for `auditing.gaussian`, the value depends on the model and may
    exceed the true epsilon of another mechanism.
    """

    name = "auditing.tightestmu"
    version = 2
    problems = (AuditEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Theorem 9 and Definition 7, Gaussian family; the programme is ours"

    def applies(self, problem: AuditEpsilon) -> str | None:
        return no_gaussian_epsilon(problem.delta)

    def cost(self, problem: AuditEpsilon) -> Cost:
        return mu_cost(problem)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        mu = tightest_mu(problem)
        return Answer.about(
            epsilon_of(mu, problem.delta),
            detail=f"model-based: mu = {mu:.6g} of Gaussian noise, confidence {problem.audit_confidence:.4g}",
        )


class AuditingMu(Method[AuditMu]):
    """Mu of Gaussian differential privacy that any bound of the probability of the count refutes.

    The bounds are those of `auditing.tightestmu`.
    """

    name = "auditing.mu"
    version = 2
    problems = (AuditMu,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Theorems 9 and 10, Gaussian family"

    def cost(self, problem: AuditMu) -> Cost:
        return mu_cost(problem)

    def answer(self, problem: AuditMu, seed: int) -> Answer:
        mu = tightest_mu(problem)
        mu = mu if mu > LEAST else 0.0
        return Answer.at_least(mu, confidence=problem.audit_confidence, detail="Gaussian family")


def mu_cost(problem: Counts) -> Cost:
    """Return the cost of the largest mu of the Gaussian family that the counts refute."""
    parts = [recursion_cost(problem), curve_cost(problem), curve_cost(problem)]
    if too_many_guesses(problem) is None:
        parts.append(programme_cost(problem))
    return Cost(seconds=sum(part.seconds for part in parts), bytes=sum(part.bytes for part in parts))


def programme_cost(problem: Counts) -> Cost:
    """Return the cost of the search with the linear programme."""
    guesses = float(problem.guesses)
    return Cost(seconds=0.05 + 3.5e-3 * guesses + 2e-5 * guesses**2, bytes=3e7 + 2e4 * guesses)


def mu_without_programme(problem: AuditEpsilon | AuditMu) -> float:
    """Return the largest mu that Algorithm 3 or the privacy curve refutes, rounded down."""
    start = refuted_mu(problem)
    return start if start >= MOST_MU else max(start, curve_mu(problem, start) * (1.0 - AUDIT_SEARCH))


def tightest_mu(problem: AuditEpsilon | AuditMu) -> float:
    """Return the largest mu that any bound of the probability refutes, rounded down."""
    start = mu_without_programme(problem)
    if start == 0.0 or start >= MOST_MU or too_many_guesses(problem) is not None:
        return start
    found = largest_mu(problem, gaussian_profile, start, level(problem))
    return max(start, found * (1.0 - AUDIT_SEARCH))


def refuted_by(audit: AuditEpsilon, family: str) -> float:
    """Return the largest epsilon that an audit refutes, rounded down: without a model, or for a family.

    A Gaussian mechanism with an epsilon that is refuted for every mechanism is refuted, too.

    Args:
        audit: Counts, delta and confidence.
        family: "approximate" for every mechanism, or "gaussian"; then delta must be above 0.

    Example:
        >>> counts = AuditEpsilon(canaries=1000, guesses=100, correct=90, delta=1e-5)
        >>> [round(refuted_by(counts, family), 4) for family in ("approximate", "gaussian")]
        [1.6302, 2.5255]
    """
    free = AuditingTightest().answer(audit, 0).lower
    return free if family == "approximate" else max(free, epsilon_of(tightest_mu(audit), audit.delta))


def claim_of(problem: AuditEpsilon, epsilon: float) -> AuditTail:
    """Return the problem of the p-value of an epsilon, with the counts of an audit."""
    return AuditTail(**counts_of(problem), claimed_epsilon=epsilon, delta=problem.delta)


def counts_of(problem: Counts) -> dict[str, Any]:
    """Return the counts of an audit, and its design, as fields."""
    return {
        "canaries": problem.canaries,
        "guesses": problem.guesses,
        "correct": problem.correct,
        "alternatives": problem.alternatives,
        "design": problem.design,
    }
