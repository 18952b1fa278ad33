"""Lower confidence bound for the advantage, from the counts of an attack."""

from privcore.answer import Answer
from privcore.membership.data.problems import MembershipAttackAdvantage
from privcore.method import Cost, Direction, Method
from privcore.numerics.pairs_of_rates import RatesBelow
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.numerics.two_rates import TwoSamples, joint_cost, refuted
from privcore.papers import AUBINAIS


class MembershipClopper(Method[MembershipAttackAdvantage]):
    """A joint test of both rates of the attack: the least advantage that its counts do not refute.

    Members and non-members are independent. The best attack has at least the advantage of this attack. The
    bound does not hold if trials share a training run, because they are dependent.
    """

    name = "membership.clopper"
    problems = (MembershipAttackAdvantage,)
    direction = Direction.LOWER
    reference = (
        "Clopper and Pearson (1934), The use of confidence or fiducial limits; Berger and Boos (1994), JASA "
        f"89, 1012-1016; {AUBINAIS}, Theorem 6"
    )
    version = 2

    def cost(self, problem: MembershipAttackAdvantage) -> Cost:
        return joint_cost(problem.members, problem.nonmembers)

    def answer(self, problem: MembershipAttackAdvantage, seed: int) -> Answer:
        counts = TwoSamples(
            many=problem.true_positives,
            trials=problem.members,
            few=problem.false_positives,
            others=problem.nonmembers,
        )
        error = 1.0 - problem.confidence_level
        gain = refuted(counts, lambda gain: _attacks(gain, problem.odds), 1.0, error)
        detail = f"{counts.many} of {counts.trials} members, {counts.few} of {counts.others} others"
        return Answer.enclosure(gain, 1.0, confidence=problem.confidence_level, detail=detail)


def _attacks(gain: float, odds: float) -> RatesBelow:
    """Return the rates of the attacks with at most this advantage."""
    height = gain if odds >= 1.0 else (1.0 - odds) + odds * gain
    return RatesBelow(slope=odds, height=height * (1.0 + FEW_FUNCTIONS), weighed=odds)
