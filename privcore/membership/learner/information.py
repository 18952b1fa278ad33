"""Upper bounds on the advantage from the mutual information between a release and a record."""

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
    """Pinsker's inequality, or that of Bretagnolle and Huber if it is tighter.

    For b bits about n independent records, the mutual information with one of them is at most b ln(2) / n.
    The advantage is also at most 1 - 2^-b, as a guess from the distribution of the release equals the release
    with probability at least 2^-b.
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
        information: Upper bound I of the mutual information of release and record, in nats, in [0, inf].

    Returns:
        Upper bound in [0, 1], up to rounding.

    Reference:
        arXiv:2310.13786v6, equation 8.

    Example:
        >>> information_bound(0.02), information_bound(math.inf)
        (0.1, 1.0)
    """
    return min(math.sqrt(0.5 * information), math.sqrt(-math.expm1(-information)))
