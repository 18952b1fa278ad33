"""Overfitting: bounds of the security by the shares of training and fresh records that are fitted."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.learner.problems import MembershipInterpolationCap, MembershipOverfittingSecurity
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import ERROR_FUNCTION, FEW_OPERATIONS, probability_at_most
from privcore.papers import AUBINAIS
from privcore.parameter import SMALLEST_NORMAL


@dataclass(frozen=True, kw_only=True)
class MembershipOverfitting(Method[MembershipOverfittingSecurity]):
    """Classify a record as a member if its loss is at most the level: max(1, 1 / gamma) (alpha + gamma P).

    alpha is the share of training records above the level, and P that of fresh records up to the level.
    """

    name = "membership.overfitting"
    problems = (MembershipOverfittingSecurity,)
    direction = Direction.UPPER
    reference = f"{AUBINAIS}, Theorem 11"
    version = 2

    def cost(self, problem: MembershipOverfittingSecurity) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipOverfittingSecurity, seed: int) -> Answer:
        bound = theorem11(problem.unfitted_share, problem.fresh_share, problem.odds)
        return Answer.at_most(probability_at_most(bound, FEW_OPERATIONS), detail="loss-threshold attack")


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
    if 0.0 < odds * fresh_share < SMALLEST_NORMAL:  # a subnormal product lacks digits; odds are below 1
        return unfitted_share / odds + fresh_share
    return max(1.0, 1.0 / odds) * (unfitted_share + odds * fresh_share)


@dataclass(frozen=True, kw_only=True)
class MembershipArcs(Method[MembershipOverfittingSecurity]):
    """Theorem 11 for the loss-threshold attack and for its opposite; the smaller bound is attained.

    The learner that attains it: one record is uniform on a circle, and the release is an arc whose length is
    the fresh share and that covers the record except with probability the unfitted share. The release then
    reveals only whether the arc covers a record.
    """

    name = "membership.arcs"
    problems = (MembershipOverfittingSecurity,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Theorem 11, with our own learner that attains it"

    def cost(self, problem: MembershipOverfittingSecurity) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipOverfittingSecurity, seed: int) -> Answer:
        unfitted, fresh = problem.unfitted_share, problem.fresh_share
        one = theorem11(unfitted, fresh, problem.odds)
        other = theorem11(1.0 - unfitted, 1.0 - fresh, problem.odds)
        found = min(1.0, one, other)
        detail = "attained by an arc that covers members more often"
        if other < one:
            detail = "attained by an arc that covers members less often: the attack is reversed"
        return Answer.enclosure(
            found * (1.0 - FEW_OPERATIONS), probability_at_most(found, FEW_OPERATIONS), detail=detail
        )


@dataclass(frozen=True, kw_only=True)
class MembershipConcentration(Method[MembershipInterpolationCap]):
    """Among intervals of a given length, the centred interval has the largest normal probability.

    The true regression function attains it: 2 Phi(e^(1/2) / s) - 1 for the level e and the noise s.
    """

    name = "membership.concentration"
    problems = (MembershipInterpolationCap,)
    direction = Direction.ENCLOSURE
    reference = f"Levy's concentration function; compare {AUBINAIS}, Theorem 11 and Section 6"

    def cost(self, problem: MembershipInterpolationCap) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipInterpolationCap, seed: int) -> Answer:
        found = math.erf(math.sqrt(0.5 * problem.loss_level) / problem.noise_deviation)
        return Answer.enclosure(
            found * (1.0 - ERROR_FUNCTION),
            probability_at_most(found, ERROR_FUNCTION),
            detail="attained by the true regression function",
        )
