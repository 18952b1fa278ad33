"""Both assumption-free audits at once: they bound one and the same probability."""

from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.auditing.approximate import AuditingApproximate
from privcore.auditing.counts import recursion_cost
from privcore.auditing.problems import AuditEpsilon, Counts
from privcore.auditing.steinke import AuditingSteinke
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR, STEINKE
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class AuditingCombined(Method):
    """The larger epsilon of Algorithm 3 and of Steinke et al., at the same confidence.

    Both bound the probability of the same event under (epsilon, delta)-DP by a number, without any chance in
    it, so the smaller bound holds, and the larger epsilon needs no correction.
    """

    name: ClassVar[str] = "auditing.combined"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditEpsilon,)
    direction: ClassVar[Direction] = Direction.LOWER
    reference: ClassVar[str] = f"{MAHLOUJIFAR}, Theorem 10, and {STEINKE}, Theorem 5.2"
    version: ClassVar[int] = 2
    covers: ClassVar[tuple[str, ...]] = ("auditing.approximate", "auditing.steinke")

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Counts)
        one, other = recursion_cost(problem), AuditingSteinke().cost(problem)
        return Cost(seconds=one.seconds + other.seconds, bytes=one.bytes + other.bytes)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditEpsilon)
        answers = [AuditingApproximate().answer(problem, seed)]
        if AuditingSteinke().applies(problem) is None:
            answers.append(AuditingSteinke().answer(problem, seed))
        return max(answers, key=lambda answer: answer.lower)
