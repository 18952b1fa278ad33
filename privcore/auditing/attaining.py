"""A mechanism that is as private as is claimed and lets many guesses be correct: p-values from below."""

from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.auditing.problems import AuditGaussianTail, AuditTail, Counts
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN
from privcore.auditing.two_level import Attaining
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class AuditingAttaining(Method):
    """Publish many correct responses, as privately as is claimed, as often as that allows.

    The mechanism of `two_level` is private at the claim, and no valid p-value is below its probability of so
    many correct guesses. That is also a ceiling for every audit by counts: `auditing.ceiling`.
    """

    name: ClassVar[str] = "auditing.attaining"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditTail, AuditGaussianTail)
    direction: ClassVar[Direction] = Direction.LOWER
    reference: ClassVar[str] = f"a mechanism of ours, beside {MAHLOUJIFAR}, Lemma 11"
    version: ClassVar[int] = 2

    def applies(self, problem: Problem) -> str | None:
        assert isinstance(problem, Counts)
        return (
            None if problem.alternatives == 2 else "The mechanism is proved for guesses of inclusion, k = 2."
        )

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Counts)
        root = problem.guesses**0.5 if self.applies(problem) is None else 0.0
        return Cost(seconds=0.02 + 1e-4 * root, bytes=2e6 + 4e4 * root)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditTail | AuditGaussianTail)
        claim = (
            (APPROXIMATE, problem.claimed_epsilon, problem.delta)
            if isinstance(problem, AuditTail)
            else (GAUSSIAN, problem.mu, 0.0)
        )
        attaining = Attaining(problem.canaries, problem.guesses, problem.correct)
        return Answer.enclosure(attaining.probability(claim), 1.0, detail="responses of the best accuracy")
