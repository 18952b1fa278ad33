"""Audit under the assumption of independent canaries, without which it is not a test of privacy."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.approximate import epsilon_of, no_gaussian_epsilon
from privcore.auditing.optimal import few_errors
from privcore.auditing.problems import AuditEpsilon, level
from privcore.method import Cost, Direction, Method
from privcore.papers import XIANG


@dataclass(frozen=True, kw_only=True)
class AuditingIndependent(Method[AuditEpsilon]):
    """Largest mu at which independent Gaussian scores have this few errors with probability 1 - confidence.

    Under the assumption of independence the audit is exact, and its value is far above every valid audit
    without it. A mu-GDP mechanism whose canaries are guessed correctly all together or not at all is refuted
    far too often: so the value is an estimate, even at a high confidence.
    """

    name = "auditing.independent"
    problems = (AuditEpsilon,)
    direction = Direction.ESTIMATE
    reference = XIANG

    def applies(self, problem: AuditEpsilon) -> str | None:
        if problem.delta == 0.0:
            return no_gaussian_epsilon(problem.delta)
        if problem.alternatives != 2 or problem.design != "independent":
            return "The distribution of the scores is for coins of inclusion (alternatives=2, independent)."
        return None if problem.guesses > 0 else "The audit needs at least one guess."

    def cost(self, problem: AuditEpsilon) -> Cost:
        return Cost(seconds=0.1, bytes=2e6)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        errors, tau = problem.guesses - problem.correct, level(problem)

        def unlikely(mu: float) -> bool:
            return few_errors(problem.canaries, problem.guesses, errors, mu) <= tau

        low, high = 0.0, 30.0
        if not unlikely(0.0):
            high = 0.0
        while high - low > 1e-10 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if unlikely(middle) else (low, middle)
        return Answer.about(
            epsilon_of(low, problem.delta),
            detail=f"assumes independent canaries: mu = {low:.6g} at {1.0 - tau:.4g} confidence",
        )
