"""What the audit of Steinke et al. alone will refute, if as many guesses are correct as can be expected."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.plannedapproximate import all_correct, refuted_as_planned, without_a_model
from privcore.auditing.planning_problems import AuditPlannedEpsilon
from privcore.auditing.steinke import AuditingSteinke
from privcore.method import Cost, Direction, Method
from privcore.papers import STEINKE


@dataclass(frozen=True, kw_only=True)
class AuditingPlannedSteinke(Method[AuditPlannedEpsilon]):
    """Audit the expected counts by `auditing.steinke`: a valid audit, so the largest is no smaller."""

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
