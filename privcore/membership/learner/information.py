"""Upper bounds on the advantage from the mutual information between a release and a record."""

import math
from typing import get_args

from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.membership.learner.problems import MembershipBitsAdvantage, MembershipInformationAdvantage
from privcore.method import Direction
from privcore.numerics.rounding import CLOSED_FORM
from privcore.papers import AUBINAIS
from privcore.published import published

Answered = MembershipMeanAdvantage | MembershipInformationAdvantage | MembershipBitsAdvantage


def _bound(problem: Answered) -> float:
    bound = information_bound(problem.information)
    if isinstance(problem, MembershipBitsAdvantage):
        return min(bound, -math.expm1(-problem.bits * math.log(2.0)))
    return bound


MembershipInformation = published(
    "membership.information",
    get_args(Answered),
    Direction.UPPER,
    """Pinsker's inequality, or that of Bretagnolle and Huber if it is tighter.

    For b bits about n independent records, the mutual information with one of them is at most b ln(2) / n.
    The advantage is also at most 1 - 2^-b, as a guess from the distribution of the release equals the release
    with probability at least 2^-b.
    """,
    _bound,
    reference=f"{AUBINAIS}, equation 8 without its factor; Bretagnolle and Huber (1979), Estimation des "
    "densites: risque minimax",
    slack=CLOSED_FORM,
    detail=lambda p: f"mutual information at most {p.information:.6g}",
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
