"""Audits by the linear programme of Theorem 9, without a model and for the Gaussian family."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.approximate import AuditingCombined, epsilon_of, no_gaussian_epsilon, refuted_mu
from privcore.auditing.problems import (
    LEAST,
    MOST,
    AuditEpsilon,
    AuditGaussianTail,
    AuditMu,
    AuditTail,
    Counts,
    recursion_cost,
    refuted,
)
from privcore.auditing.programme import too_many_guesses
from privcore.auditing.programme_search import MOST_MU, largest_epsilon, largest_mu
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import AUDIT_SEARCH
from privcore.papers import MAHLOUJIFAR, STEINKE


@dataclass(frozen=True, kw_only=True)
class AuditingTightest(Method[AuditEpsilon]):
    """Refute (epsilon, delta)-DP if any bound of the probability of the count is below 1 - confidence.

    The bounds are Algorithm 3, that of Steinke et al., and the linear programme of Theorem 9. All of them are
    deterministic bounds of the probability of the same event, so the smallest one holds, and the largest
    refuted epsilon needs no correction.
    """

    name = "auditing.tightest"
    problems = (AuditEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Theorem 9, and {STEINKE}, Theorem 5.2; the programme is ours"
    covers = ("auditing.combined", "auditing.approximate", "auditing.steinke")

    def applies(self, problem: AuditEpsilon) -> str | None:
        return too_many_guesses(problem)

    def cost(self, problem: AuditEpsilon) -> Cost:
        guesses = float(problem.guesses if self.applies(problem) is None else 0)
        other = AuditingCombined().cost(problem)
        return Cost(seconds=0.2 + 2e-3 * guesses + other.seconds, bytes=3e7 + 3e3 * guesses + other.bytes)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        def claim(epsilon: float) -> AuditTail:
            return AuditTail(**counts_of(problem), claimed_epsilon=epsilon, delta=problem.delta)

        start = AuditingCombined().answer(problem, seed)
        if start.lower >= MOST:
            return start
        found = largest_epsilon(claim, start.lower, 1.0 - problem.audit_confidence)
        return start if found <= start.lower else refuted(problem, found, "linear programme of Theorem 9")


@dataclass(frozen=True, kw_only=True)
class AuditingTightestMu(Method[AuditEpsilon]):
    """Epsilon of the least private Gaussian mechanism that any bound of the probability of the count refutes.

    The bounds are Algorithm 3 and the linear programme of Theorem 9. As for `auditing.gaussian`, the value
    depends on the model and may exceed the true epsilon of another mechanism.
    """

    name = "auditing.tightestmu"
    problems = (AuditEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Theorem 9 and Definition 7, Gaussian family; the programme is ours"

    def applies(self, problem: AuditEpsilon) -> str | None:
        return too_many_guesses(problem) or no_gaussian_epsilon(problem.delta)

    def cost(self, problem: AuditEpsilon) -> Cost:
        return _gaussian_cost(problem)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        mu = tightest_mu(problem)
        return Answer.about(
            epsilon_of(mu, problem.delta),
            detail=f"model-based: mu = {mu:.6g} of Gaussian noise, confidence {problem.audit_confidence:.4g}",
        )


@dataclass(frozen=True, kw_only=True)
class AuditingMu(Method[AuditMu]):
    """Mu of Gaussian differential privacy that Algorithm 3 or the linear programme of Theorem 9 refutes.

    The programme is used for up to 500 guesses.
    """

    name = "auditing.mu"
    problems = (AuditMu,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Theorems 9 and 10, Gaussian family"

    def cost(self, problem: AuditMu) -> Cost:
        one, other = recursion_cost(problem), _gaussian_cost(problem)
        return Cost(seconds=one.seconds + other.seconds, bytes=one.bytes + other.bytes)

    def answer(self, problem: AuditMu, seed: int) -> Answer:
        mu = tightest_mu(problem)
        mu = mu if mu > LEAST else 0.0
        return Answer.at_least(mu, confidence=problem.audit_confidence, detail="Gaussian family")


def _gaussian_cost(problem: Counts) -> Cost:
    """Return the cost of the linear programmes of the Gaussian family."""
    guesses = float(problem.guesses if too_many_guesses(problem) is None else 0)
    return Cost(seconds=0.3 + 4e-3 * guesses + 2e-5 * guesses**2, bytes=3e7 + 2e4 * guesses)


def tightest_mu(problem: AuditEpsilon | AuditMu) -> float:
    """Return the largest mu that Algorithm 3 or the linear programme refutes, rounded down."""
    start = refuted_mu(problem)
    if start >= MOST_MU or too_many_guesses(problem) is not None:
        return start

    def claim(mu: float) -> AuditGaussianTail:
        return AuditGaussianTail(**counts_of(problem), mu=mu)

    return max(start, largest_mu(claim, start, 1.0 - problem.audit_confidence) * (1.0 - AUDIT_SEARCH))


def counts_of(problem: Counts) -> dict[str, int]:
    """Return the counts of an audit as fields."""
    return {
        "canaries": problem.canaries,
        "guesses": problem.guesses,
        "correct": problem.correct,
        "alternatives": problem.alternatives,
    }
