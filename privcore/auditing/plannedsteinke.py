"""What the audit of Steinke et al. alone will refute, if as many guesses are correct as can be expected."""

from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.auditing.plannedapproximate import all_correct, refuted_as_planned, without_a_model
from privcore.auditing.planning_problems import AuditPlannedEpsilon
from privcore.auditing.steinke import AuditingSteinke
from privcore.method import Cost, Direction, Method
from privcore.papers import STEINKE
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class AuditingPlannedSteinke(Method):
    """Audit the expected counts by `auditing.steinke`: a valid audit, so the largest is no smaller."""

    name: ClassVar[str] = "auditing.plannedsteinke"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditPlannedEpsilon,)
    direction: ClassVar[Direction] = Direction.LOWER
    reference: ClassVar[str] = f"{STEINKE}, Theorem 5.2"

    def applies(self, problem: Problem) -> str | None:
        assert isinstance(problem, AuditPlannedEpsilon)
        return without_a_model(problem)

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, AuditPlannedEpsilon)
        return AuditingSteinke().cost(all_correct(problem))

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditPlannedEpsilon)
        return refuted_as_planned(problem, AuditingSteinke())
