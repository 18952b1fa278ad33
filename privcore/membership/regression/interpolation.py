"""Closed forms for least squares: with no more records than features, and for many records."""

import math

from privcore.membership.gaussian_mean.leading import leading
from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.method import Direction
from privcore.papers import AUBINAIS
from privcore.published import published

MembershipInterpolation = published(
    "membership.interpolation",
    MembershipRegressionAdvantage,
    Direction.ENCLOSURE,
    """Training residuals vanish and fresh residuals do not, so that the attack is never wrong.

    The paper assumes more features than records; an equal number is sufficient.
    """,
    lambda p: 1.0,
    reference=f"{AUBINAIS}, Theorem 11 and Example 2",
    unless=lambda p: None if p.interpolates else "Residuals do not vanish with more records than features.",
    detail="training residuals are 0",
)


def _inaccurate(problem: MembershipRegressionAdvantage) -> str | None:
    if problem.odds != 1.0:
        return "At odds other than 1 the advantage falls faster than any power of the number of records."
    if problem.records < 4 * (problem.coordinates + 1):
        return "The leading term is accurate only if records >= 4 (coordinates + 1)."
    return None


MembershipInfluence = published(
    "membership.influence",
    MembershipRegressionAdvantage,
    Direction.ESTIMATE,
    r"""$\frac{\sqrt 2}{\pi} \Gamma(\frac{d + 1}2) / \Gamma(\frac d2) \, n^{-1/2}$, for equal odds.

    The coefficients are nearly a mean of influences e x, whose mean norm is E|x| times E|e|.
    """,
    lambda p: math.sqrt(2.0 / math.pi) * leading(p.coordinates, p.records**-0.5),
    reference=f"leading term of {AUBINAIS}, equation 7, for least squares",
    unless=_inaccurate,
)
