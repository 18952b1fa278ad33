"""Overfitting: the published bound of the security of a learner that fits its records."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.learner.problems import MembershipOverfittingSecurity
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_SLACK = 1e-15


@dataclass(frozen=True, kw_only=True)
class MembershipOverfitting(Method[MembershipOverfittingSecurity]):
    """Take a record for a member if its loss is at most the level: max(1, 1 / gamma) (alpha + gamma P).

    With alpha for the training records above the level, and P for the fresh ones below.
    """

    name = "membership.overfitting"
    problems = (MembershipOverfittingSecurity,)
    direction = Direction.UPPER
    reference = f"{AUBINAIS}, Theorem 11"

    def cost(self, problem: MembershipOverfittingSecurity) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipOverfittingSecurity, seed: int) -> Answer:
        bound = theorem11(problem.unfitted_share, problem.fresh_share, problem.odds)
        return Answer.at_most(min(1.0, bound * (1.0 + _SLACK)), detail="the attack by the loss")


def theorem11(unfitted_share: float, fresh_share: float, odds: float) -> float:
    r"""Return $\max\{1, 1 / \gamma\} (\alpha + \gamma P)$, which may exceed 1.

    Args:
        unfitted_share: Probability alpha that a training record's loss is above the level.
        fresh_share: Probability P that a fresh record's loss is at most the level.
        odds: Odds gamma of a non-member against a member, > 0.

    Reference:
        arXiv:2310.13786v6, Theorem 11.

    Example:
        >>> round(theorem11(0.05, 0.008, 1.0), 12)
        0.058
    """
    return max(1.0, 1.0 / odds) * (unfitted_share + odds * fresh_share)
