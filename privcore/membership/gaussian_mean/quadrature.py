"""The mean of Gaussian records: the exact advantage, by a quadrature with a proved error."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.gaussian_mean.integral import LEAST_LOG, MeanIntegral
from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_LEAST_SURPLUS = 1e-200
"""Below this a release with more noise gives the lower end."""
_WIDE = 1e-9
"""Relative width from which on the other integral is tried.

That over fresh records has no good bound off the real line where the release is nearly the record.
"""
_EPSILON = 2.0**-52


@dataclass(frozen=True, kw_only=True)
class MembershipQuadrature(Method[MembershipMeanAdvantage]):
    """Integrate the Gaussian privacy profile over the squared norm of a record, between proved ends.

    The threshold is rounded outward, the quadrature's error is proved, and the rounding of its terms is
    allowed for by a relative slack; a tenth of that was measured against 40 digits. One record without noise
    is certain to be recognised.
    """

    name = "membership.quadrature"
    problems = (MembershipMeanAdvantage,)
    direction = Direction.ENCLOSURE
    reference = (
        f"{AUBINAIS}, equation 7 and Theorem 6, for Gaussian records; Trefethen (2013), Approximation "
        "Theory and Approximation Practice, Theorem 19.3"
    )

    def cost(self, problem: MembershipMeanAdvantage) -> Cost:
        return Cost(seconds=0.03, bytes=2e6)

    def answer(self, problem: MembershipMeanAdvantage, seed: int) -> Answer:
        if problem.records == 1 and problem.release_noise == 0.0:
            return Answer.enclosure(1.0, 1.0, detail="the release is the record")
        surplus = max(problem.surplus, _LEAST_SURPLUS)
        below = problem.odds < 1.0
        lower, upper = mean_advantage(problem.coordinates, surplus, problem.odds, below=below)
        if upper - lower > _WIDE * upper and below:
            other = mean_advantage(problem.coordinates, surplus, problem.odds, below=False)
            lower, upper = max(lower, other[0]), min(upper, other[1])
        if problem.surplus < surplus:
            return Answer.enclosure(lower, 1.0, detail="nearly the record: the lower end has more noise")
        return Answer.enclosure(lower, upper, detail=f"correlation {problem.correlation:.6g}")


def mean_advantage(coordinates: int, surplus: float, odds: float, *, below: bool) -> tuple[float, float]:
    r"""Return proved ends of the advantage for Gaussian vectors of correlation $\rho = (1 + q)^{-1/2}$.

    Args:
        coordinates: Dimension d of release and record, >= 1.
        surplus: Number $q = \rho^{-2} - 1$, > 0; that of a mean is $n - 1 + n^2 \tau^2$.
        odds: Odds gamma of a non-member against a member, > 0.
        below: Whether to integrate over fresh records instead of members. Both are right; for odds below 1
            the former has no cancellation, above 1 the latter.

    Returns:
        Lower end (rounded down) and upper end (rounded up) in [0, 1].

    Reference:
        arXiv:2310.13786v6, equation 7.

    Example:
        >>> [round(end, 10) for end in mean_advantage(5, 9.0, 1.0, below=False)]
        [0.2759952992, 0.2759952992]
    """
    rho = 1.0 / math.sqrt(1.0 + surplus)
    log_rest = -math.log1p(1.0 / surplus) if surplus >= 1.0 else math.log(surplus) - math.log1p(surplus)
    gain, loss = 2.0 * math.log(odds), coordinates * log_rest
    cut = (gain + loss) / rho
    moved = 4.0 * _EPSILON * (abs(gain) + abs(loss)) / rho + 8.0 * _EPSILON * abs(cut)
    ends = []
    for side, move in zip((0, 1), (-moved, moved) if below else (moved, -moved), strict=True):
        integral = MeanIntegral(
            half=0.5 * coordinates, rho=rho, log_rest=log_rest, cut=cut + move, below=below
        )
        log = integral.log_bounds()[side]
        slack = 2e-13 + 4e-15 * math.sqrt(coordinates) + 4e-15 * abs(max(log, 2.0 * LEAST_LOG))
        ends.append(math.exp(log + slack if side else log - slack))
    if odds < 1.0 and not below:  # what is found is the largest TPR - gamma FPR
        ends = [
            (end - (1.0 - odds)) / odds + side * 4.0 * _EPSILON / odds
            for side, end in zip((-1, 1), ends, strict=True)
        ]
    elif odds > 1.0 and below:  # the largest TNR - FNR / gamma
        ends = [
            odds * end - (odds - 1.0) + side * 4.0 * _EPSILON * odds
            for side, end in zip((-1, 1), ends, strict=True)
        ]
    return min(max(ends[0], 0.0), 1.0), min(max(ends[1], 0.0), 1.0)
