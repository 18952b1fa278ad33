"""Overfitting: the largest security that the two shares leave, and a learner that attains it."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.learner.overfitting import theorem11
from privcore.membership.learner.problems import MembershipOverfittingSecurity
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_SLACK = 1e-15


@dataclass(frozen=True, kw_only=True)
class MembershipArcs(Method[MembershipOverfittingSecurity]):
    """Theorem 11 for the attack by the loss and for its opposite; the smaller of both is attained.

    Let one record be uniform on a circle, and release an arc whose length is the fresh share and that covers
    the record but for the unfitted share: then nothing is known of a record but whether the arc covers it.
    """

    name = "membership.arcs"
    problems = (MembershipOverfittingSecurity,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Theorem 11, with a learner of ours that attains it"

    def cost(self, problem: MembershipOverfittingSecurity) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipOverfittingSecurity, seed: int) -> Answer:
        unfitted, fresh = problem.unfitted_share, problem.fresh_share
        one = theorem11(unfitted, fresh, problem.odds)
        other = theorem11(1.0 - unfitted, 1.0 - fresh, problem.odds)
        found = min(1.0, one, other)
        detail = "attained by an arc that covers members more often"
        if other < one:
            detail = "attained by an arc that covers members less often: the attack is turned round"
        return Answer.enclosure(found * (1.0 - _SLACK), min(1.0, found * (1.0 + _SLACK)), detail=detail)
