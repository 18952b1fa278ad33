"""Epsilon that an audit refutes if the number of correct guesses is the expected number."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.approximate import AuditingApproximate, epsilon_of, no_epsilon_of_family, refuted_mu
from privcore.auditing.ceiling import ceiling_cost, refutable
from privcore.auditing.optimal import expected_correct
from privcore.auditing.planning_problems import AuditCeiling, AuditPlannedEpsilon, AuditTraining
from privcore.auditing.problems import AuditEpsilon, recursion_cost
from privcore.auditing.steinke import AuditingSteinke
from privcore.auditing.tightest import AuditingTightest, counts_of, mu_cost, refuted_by
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR, STEINKE


@dataclass(frozen=True, kw_only=True)
class AuditingPlanned(Method[AuditPlannedEpsilon]):
    """Audit the expected counts: the lower end is the result of the audit, the upper end limits all audits.

    The detail has the counts and, unless delta is 0, the epsilon that is refuted for the other family. The
    epsilon for the Gaussian family depends on a model; the epsilon for (epsilon, delta)-DP does not.
    """

    name = "auditing.planned"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Section 5, idealised setting, and Theorems 9 and 10"
    version = 4

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        return no_epsilon_of_family(problem.family, problem.delta)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        audit = all_correct(problem)
        one, free, modelled = (
            ceiling_cost(_ceiling(audit, problem.family)),
            AuditingTightest().cost(audit),
            mu_cost(audit),
        )
        return Cost(
            seconds=one.seconds + free.seconds + modelled.seconds,
            bytes=one.bytes + free.bytes + modelled.bytes,
        )

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        audit = planned_audit(
            problem.canaries, problem.guesses, problem.mu, problem.delta, problem.audit_confidence
        )
        lower, upper = refutable(_ceiling(audit, problem.family))
        detail = f"{audit.correct} of {audit.guesses} correct"
        if problem.family == "gaussian":
            detail += f"; without a model: {refuted_by(audit, 'approximate'):.6g}"
        elif problem.delta > 0.0:
            detail += f"; model-based, Gaussian noise: {refuted_by(audit, 'gaussian'):.6g}"
        return Answer.enclosure(lower, upper, value=lower, detail=detail)


def planned_audit(canaries: int, guesses: int, mu: float, delta: float, confidence: float) -> AuditEpsilon:
    """Return the audit with the expected number of correct guesses, rounded to the nearest whole number.

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses, those about the clearest scores.
        mu: Gaussian differential privacy of the mechanism, >= 0.
        delta: Delta of the refuted claim, in [0, 1).
        confidence: Confidence of the audit, in [1/2, 1).

    Reference:
        arXiv:2410.22235v1, Section 5, idealised setting.

    Example:
        >>> planned_audit(100_000, 1500, 1.0, 1e-5, 0.95).correct
        1429
    """
    correct = round(expected_correct(canaries, guesses, mu))
    return AuditEpsilon(
        canaries=canaries, guesses=guesses, correct=correct, delta=delta, audit_confidence=confidence
    )


def _ceiling(audit: AuditEpsilon, family: str) -> AuditCeiling:
    """Return the problem of the largest epsilon that audits of these counts can refute."""
    return AuditCeiling(
        **counts_of(audit), delta=audit.delta, audit_confidence=audit.audit_confidence, family=family
    )


@dataclass(frozen=True, kw_only=True)
class AuditingPlannedApproximate(Method[AuditPlannedEpsilon]):
    """Audit the expected counts by `auditing.approximate`: a lower bound of the largest epsilon.

    The audit is valid, but `auditing.planned` takes a better one, `auditing.tightest`. This method is for
    figures that show the audit of the paper as a separate curve.
    """

    name = "auditing.plannedapproximate"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Section 4, idealised setting, and Theorem 10"
    version = 2

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        return without_a_model(problem)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        return AuditingApproximate().cost(all_correct(problem))

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        return refuted_as_planned(problem, AuditingApproximate())


def without_a_model(problem: AuditPlannedEpsilon) -> str | None:
    """Return the reason why an audit of (epsilon, delta)-DP does not apply to a problem, or None."""
    return None if problem.family == "approximate" else "The audit refutes (epsilon, delta)-DP only."


def all_correct(problem: AuditPlannedEpsilon) -> AuditEpsilon:
    """Return the audit in which every guess is correct, which is the most expensive, to estimate costs."""
    return audit_of(problem, problem.guesses)


def audit_of(problem: AuditPlannedEpsilon | AuditTraining, correct: int) -> AuditEpsilon:
    """Return the audit with the counts of a problem and this number of correct guesses."""
    return AuditEpsilon(
        canaries=problem.canaries,
        guesses=problem.guesses,
        correct=correct,
        delta=problem.delta,
        audit_confidence=problem.audit_confidence,
    )


def refuted_as_planned(problem: AuditPlannedEpsilon, audit: Method) -> Answer:
    """Return the epsilon refuted at the expected counts, a lower bound of the largest valid one."""
    counts = planned_audit(
        problem.canaries, problem.guesses, problem.mu, problem.delta, problem.audit_confidence
    )
    refuted = audit.answer(counts, 0)
    return Answer.at_least(
        refuted.lower, detail=f"{counts.correct} of {counts.guesses} correct; {refuted.detail}"
    )


@dataclass(frozen=True, kw_only=True)
class AuditingPlannedSteinke(Method[AuditPlannedEpsilon]):
    """Audit the expected counts by `auditing.steinke`: a lower bound of the largest epsilon."""

    name = "auditing.plannedsteinke"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.LOWER
    reference = f"{STEINKE}, Theorem 5.2"

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        return without_a_model(problem)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        return AuditingSteinke().cost(all_correct(problem))

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        return refuted_as_planned(problem, AuditingSteinke())


@dataclass(frozen=True, kw_only=True)
class AuditingPlannedGaussian(Method[AuditPlannedEpsilon]):
    """Audit the expected counts by `auditing.gaussian`: a lower bound of the largest epsilon of the family.

    `auditing.planned` takes the linear programme, too. This method is for figures of the paper, as
    `auditing.plannedapproximate`.
    """

    name = "auditing.plannedgaussian"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Section 5, idealised setting, and Theorem 10"

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        if problem.family != "gaussian":
            return "The audit is for the Gaussian family only."
        return no_epsilon_of_family(problem.family, problem.delta)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        return recursion_cost(all_correct(problem))

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        counts = planned_audit(
            problem.canaries, problem.guesses, problem.mu, problem.delta, problem.audit_confidence
        )
        return Answer.at_least(
            epsilon_of(refuted_mu(counts), counts.delta),
            detail=f"{counts.correct} of {counts.guesses} correct; Algorithm 3, Gaussian family",
        )
