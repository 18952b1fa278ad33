"""Numbers of records for functions of a mean: Theorem 13 and Remark 13, and the least one if Gaussian."""

import math
from typing import get_args

from privcore.answer import Answer
from privcore.membership.gaussian_mean.problems import (
    MembershipMeanAdvantage,
    MembershipMeanRecords,
    MembershipRateAdvantage,
    MembershipRateRecords,
)
from privcore.membership.gaussian_mean.quadrature import MembershipQuadrature
from privcore.membership.params import RECORDS
from privcore.method import Cost, Direction, Method
from privcore.numerics.least_count import least_count
from privcore.numerics.rounding import CLOSED_FORM
from privcore.papers import AUBINAIS
from privcore.published import published

_TWO = 1.5
"""Any number that is rounded up to 2, the least number for which the theorem holds."""
Planned = MembershipMeanRecords | MembershipRateRecords


def rate_bound(constant: float, coordinates: int, records: int) -> float:
    r"""Return $c / \sqrt n + \sqrt d / (2 n)$, an upper bound of the advantage at all odds.

    Args:
        constant: The constant c > 0.
        coordinates: Number d of coordinates of the averaged function.
        records: Number n of records.

    Reference:
        arXiv:2310.13786v6, Theorem 13 without its factor max(1, gamma).

    Example:
        >>> rate_bound(1.0, 4, 100)
        0.11
    """
    return constant / math.sqrt(records) + 0.5 * math.sqrt(coordinates) / records


def rate_records(constant: float, coordinates: int, target: float) -> float:
    r"""Return the n with $c / \sqrt n + \sqrt d / (2 n) = \epsilon$; more records are sufficient.

    $$n = \left( \frac{c + \sqrt{c^2 + 2 \epsilon \sqrt d}}{2 \epsilon} \right)^2$$

    Args:
        constant: The constant c > 0.
        coordinates: Number d of coordinates of the averaged function.
        target: Tolerated advantage epsilon > 0.

    Reference:
        arXiv:2310.13786v6, proof of Remark 13, without cancellation.

    Example:
        >>> round(rate_records(1.0, 4, 0.11), 9)
        100.0
    """
    root = math.sqrt(constant * constant + 2.0 * target * math.sqrt(coordinates))
    return ((constant + root) / (2.0 * target)) ** 2


def remark_records(constant: float, coordinates: int, target: float) -> float:
    r"""Return the larger $(c / \epsilon)^2 (1 + \sqrt d / c^2)^{3/2}$ of Remark 13, for epsilon <= 1.

    Args:
        constant: The constant c > 0.
        coordinates: Number d of coordinates of the averaged function.
        target: Tolerated advantage epsilon in (0, 1].

    Reference:
        arXiv:2310.13786v6, Remark 13, end of the proof.

    Example:
        >>> remark_records(1.0, 9, 0.5)
        32.0
    """
    return (constant / target) ** 2 * math.pow(1.0 + math.sqrt(coordinates) / constant**2, 1.5)


MembershipTheorem = published(
    "membership.theorem",
    MembershipRateAdvantage,
    Direction.UPPER,
    r"""$c / \sqrt n + \sqrt d / (2n)$, for at least two records.""",
    lambda p: rate_bound(p.rate_constant, p.coordinates, p.records),
    reference=f"{AUBINAIS}, Theorem 13 without its factor max(1, gamma)",
    unless=lambda p: None if p.records >= 2 else "The theorem needs at least two records.",
    slack=CLOSED_FORM,
)
MembershipRate = published(
    "membership.rate",
    get_args(Planned),
    Direction.UPPER,
    """The number of records at which the bound of Theorem 13 is the tolerated advantage, at least two.

    Noise on the release and odds other than 1 do not raise the advantage.
    """,
    lambda p: max(_TWO, rate_records(p.rate_constant, p.coordinates, p.target_advantage)),
    reference=f"{AUBINAIS}, Theorem 13 and the proof of Remark 13",
    slack=CLOSED_FORM,
)
MembershipRemark = published(
    "membership.remark",
    get_args(Planned),
    Direction.UPPER,
    """The published sufficient number of records, at least two, which is above that of `membership.rate`.""",
    lambda p: max(_TWO, remark_records(p.rate_constant, p.coordinates, p.target_advantage)),
    reference=f"{AUBINAIS}, Remark 13",
    slack=CLOSED_FORM,
)


class MembershipMean(Method[MembershipMeanRecords]):
    """Search over the proved ends of the advantage, which falls with the number of records."""

    name = "membership.mean"
    problems = (MembershipMeanRecords,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, equation 7, for Gaussian records"

    def cost(self, problem: MembershipMeanRecords) -> Cost:
        return Cost(seconds=1.0, bytes=2e6)

    def answer(self, problem: MembershipMeanRecords, seed: int) -> Answer:
        def ends(records: int) -> tuple[float, float]:
            asked = MembershipMeanAdvantage(
                coordinates=problem.coordinates, records=records, release_noise=problem.release_noise
            )
            found = MembershipQuadrature().answer(asked, 0)
            return found.lower, found.upper

        lower, upper = least_count(ends, problem.target_advantage, RECORDS.upper)
        return Answer.enclosure(lower, upper, detail="search over the exact advantage")
