"""Upper bounds by information: what a release tells of a record bounds how well an attack can do."""

import math
from dataclasses import dataclass
from typing import get_args

from privcore.answer import Answer
from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.membership.learner.problems import MembershipBitsAdvantage, MembershipInformationAdvantage
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import CLOSED_FORM, probability_at_most
from privcore.papers import AUBINAIS

Answered = MembershipMeanAdvantage | MembershipInformationAdvantage | MembershipBitsAdvantage


@dataclass(frozen=True, kw_only=True)
class MembershipInformation(Method[Answered]):
    """Pinsker's inequality, or that of Bretagnolle and Huber where it is tighter.

    For b bits about n independent records the mutual information with one of them is at most b ln(2) / n, and
    the advantage is at most 1 - 2^-b besides: the release agrees with a guess from its own law so often.
    """

    name = "membership.information"
    problems = get_args(Answered)
    direction = Direction.UPPER
    reference = (
        f"{AUBINAIS}, equation 8 without its factor; Bretagnolle and Huber (1979), Estimation des "
        "densites: risque minimax"
    )

    def cost(self, problem: Answered) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: Answered, seed: int) -> Answer:
        if isinstance(problem, MembershipBitsAdvantage):
            information = problem.bits / problem.records * math.log(2.0)
            bound = min(information_bound(information), -math.expm1(-problem.bits * math.log(2.0)))
        else:
            information = problem.information
            bound = information_bound(information)
        return Answer.at_most(
            probability_at_most(bound, CLOSED_FORM), detail=f"mutual information at most {information:.6g}"
        )


def information_bound(information: float) -> float:
    r"""Return the smaller of $\sqrt{I / 2}$ and $\sqrt{1 - e^{-I}}$, a bound of the advantage for all odds.

    Args:
        information: Mutual information I of release and record, or more, in nats, >= 0; may be infinite.

    Returns:
        Upper bound in [0, 1], up to rounding.

    Reference:
        arXiv:2310.13786v6, equation 8.

    Example:
        >>> information_bound(0.02), information_bound(math.inf)
        (0.1, 1.0)
    """
    return min(math.sqrt(0.5 * information), math.sqrt(-math.expm1(-information)))
