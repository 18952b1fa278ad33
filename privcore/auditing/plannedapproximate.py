"""What Algorithm 3 alone will refute without a model, if as many guesses are correct as can be expected."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.approximate import AuditingApproximate
from privcore.auditing.planned import planned_audit
from privcore.auditing.planning_problems import AuditPlannedEpsilon
from privcore.auditing.problems import AuditEpsilon
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR


@dataclass(frozen=True, kw_only=True)
class AuditingPlannedApproximate(Method[AuditPlannedEpsilon]):
    """Audit the expected counts by `auditing.approximate`: a valid audit, so the largest is no smaller.

    `auditing.planned` takes the better one of this and of the bound of Steinke et al.; alone it is a curve of
    its own in the figures.
    """

    name = "auditing.plannedapproximate"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Section 4, idealised setting, and Theorem 10"

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        return without_a_model(problem)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        return AuditingApproximate().cost(all_correct(problem))

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        return refuted_as_planned(problem, AuditingApproximate())


def without_a_model(problem: AuditPlannedEpsilon) -> str | None:
    """Return why an audit of (epsilon, delta) does not answer a problem, None where it does."""
    return None if problem.family == "approximate" else "The audit is of (epsilon, delta), not of a family."


def all_correct(problem: AuditPlannedEpsilon) -> AuditEpsilon:
    """Return the audit in which every guess is correct: the dearest one, for estimates of the cost."""
    return AuditEpsilon(
        canaries=problem.canaries,
        guesses=problem.guesses,
        correct=problem.guesses,
        delta=problem.delta,
        audit_confidence=problem.audit_confidence,
    )


def refuted_as_planned(problem: AuditPlannedEpsilon, audit: Method) -> Answer:
    """Return what an audit refutes with the expected counts, a lower bound of what a valid one can refute."""
    counts = planned_audit(
        problem.canaries, problem.guesses, problem.mu, problem.delta, problem.audit_confidence
    )
    refuted = audit.answer(counts, 0)
    return Answer.at_least(
        refuted.lower, detail=f"{counts.correct} of {counts.guesses} correct; {refuted.detail}"
    )
