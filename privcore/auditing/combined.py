"""Both assumption-free audits at once: they bound one and the same probability."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.approximate import AuditingApproximate
from privcore.auditing.counts import recursion_cost
from privcore.auditing.problems import AuditEpsilon
from privcore.auditing.steinke import AuditingSteinke
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR, STEINKE


@dataclass(frozen=True, kw_only=True)
class AuditingCombined(Method[AuditEpsilon]):
    """The larger epsilon of Algorithm 3 and of Steinke et al., at the same confidence.

    Both bound the probability of the same event under (epsilon, delta)-DP by a number, without any chance in
    it, so the smaller bound holds, and the larger epsilon needs no correction.
    """

    name = "auditing.combined"
    problems = (AuditEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Theorem 10, and {STEINKE}, Theorem 5.2"
    version = 2
    covers = ("auditing.approximate", "auditing.steinke")

    def cost(self, problem: AuditEpsilon) -> Cost:
        one, other = recursion_cost(problem), AuditingSteinke().cost(problem)
        return Cost(seconds=one.seconds + other.seconds, bytes=one.bytes + other.bytes)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        answers = [AuditingApproximate().answer(problem, seed)]
        if AuditingSteinke().applies(problem) is None:
            answers.append(AuditingSteinke().answer(problem, seed))
        return max(answers, key=lambda answer: answer.lower)
