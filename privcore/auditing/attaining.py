"""A mechanism that is as private as is claimed and lets many guesses be correct: p-values from below."""

from dataclasses import dataclass
from typing import get_args

from privcore.answer import Answer
from privcore.auditing.problems import AuditGaussianTail, AuditTail
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN
from privcore.auditing.two_level import Attaining
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR

Answered = AuditTail | AuditGaussianTail


@dataclass(frozen=True, kw_only=True)
class AuditingAttaining(Method[Answered]):
    """Publish many correct responses, as privately as is claimed, as often as that allows.

    The mechanism of `two_level` is private at the claim, and no valid p-value is below its probability of so
    many correct guesses. That is also a ceiling for every audit by counts: `auditing.ceiling`.
    """

    name = "auditing.attaining"
    problems = get_args(Answered)
    direction = Direction.LOWER
    reference = f"a mechanism of ours, beside {MAHLOUJIFAR}, Lemma 11"
    version = 2

    def applies(self, problem: Answered) -> str | None:
        return (
            None if problem.alternatives == 2 else "The mechanism is proved for guesses of inclusion, k = 2."
        )

    def cost(self, problem: Answered) -> Cost:
        root = problem.guesses**0.5 if self.applies(problem) is None else 0.0
        return Cost(seconds=0.02 + 1e-4 * root, bytes=2e6 + 4e4 * root)

    def answer(self, problem: Answered, seed: int) -> Answer:
        claim = (
            (APPROXIMATE, problem.claimed_epsilon, problem.delta)
            if isinstance(problem, AuditTail)
            else (GAUSSIAN, problem.mu, 0.0)
        )
        attaining = Attaining(problem.canaries, problem.guesses, problem.correct)
        return Answer.enclosure(attaining.probability(claim), 1.0, detail="responses of the best accuracy")
