"""Lower confidence bound for the advantage, from the counts of an attack."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.data.problems import MembershipAttackAdvantage
from privcore.method import Cost, Direction, Method
from privcore.numerics.clopper_pearson import rate_at_least, shared_error
from privcore.papers import AUBINAIS


@dataclass(frozen=True, kw_only=True)
class MembershipClopper(Method[MembershipAttackAdvantage]):
    """Binomial bounds for both rates, and the advantage of the attack at these bounds.

    Members and non-members are independent, so each bound may have slightly more than half the error. The
    best attack has at least this advantage. The bound does not hold if trials share a training run, because
    they are dependent.
    """

    name = "membership.clopper"
    problems = (MembershipAttackAdvantage,)
    direction = Direction.LOWER
    reference = f"Clopper and Pearson (1934), The use of confidence or fiducial limits; {AUBINAIS}, Theorem 6"

    def cost(self, problem: MembershipAttackAdvantage) -> Cost:
        size = 4e3 + 76.0 * (problem.members**0.5 + problem.nonmembers**0.5)
        return Cost(seconds=2e-3 + 1e-7 * size, bytes=1e5 + 50.0 * size)

    def answer(self, problem: MembershipAttackAdvantage, seed: int) -> Answer:
        error = shared_error(problem.confidence_level)
        true_rate = rate_at_least(problem.members, problem.true_positives, error)
        true_negatives = problem.nonmembers - problem.false_positives
        true_negative_rate = rate_at_least(problem.nonmembers, true_negatives, error)
        if problem.odds >= 1.0:
            gain = true_rate - problem.odds * (1.0 - true_negative_rate)
        else:
            gain = true_negative_rate - (1.0 - true_rate) / problem.odds
        # Rates have an error of 1e-16, which the odds may multiply.
        gain -= 1e-15 * max(problem.odds, 1.0 / problem.odds)
        detail = f"TPR >= {true_rate:.6g}, FPR <= {1.0 - true_negative_rate:.6g}"
        return Answer.enclosure(max(0.0, gain), 1.0, confidence=problem.confidence_level, detail=detail)
