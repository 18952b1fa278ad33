"""Audit of Steinke, Nasr and Jagielski (2023), for guesses of inclusion."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.problems import MOST, AuditEpsilon, level, refuted
from privcore.auditing.revealed import only_pure, revealed_tail
from privcore.method import Cost, Direction, Method
from privcore.papers import STEINKE


@dataclass(frozen=True, kw_only=True)
class AuditingSteinke(Method[AuditEpsilon]):
    """Refute (epsilon, delta)-DP if their bound of the probability of the count is below 1 - confidence.

    The bound, which is at least that of `auditing.exact` here, grows with epsilon, so the largest refuted
    epsilon is found by bisection.
    """

    name = "auditing.steinke"
    problems = (AuditEpsilon,)
    direction = Direction.LOWER
    reference = f"{STEINKE}, Theorem 5.2"

    def applies(self, problem: AuditEpsilon) -> str | None:
        return only_pure(problem)

    def cost(self, problem: AuditEpsilon) -> Cost:
        return Cost(seconds=0.03 + 1.5e-4 * problem.guesses**0.5, bytes=2e6 + 4e4 * problem.guesses**0.5)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        tau = level(problem)

        def refutes(epsilon: float) -> bool:
            counts = problem.canaries, problem.guesses, problem.correct
            return revealed_tail(*counts, epsilon, problem.delta, problem.alternatives) < tau

        if not refutes(0.0):
            return refuted(problem, 0.0, "bound of Steinke et al.")
        low, high = 0.0, 1.0
        while refutes(high):
            low, high = high, 2.0 * high
            if low >= MOST:
                break
        while high - low > 1e-11 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if refutes(middle) else (low, middle)
        return refuted(problem, low, "bound of Steinke et al.")
