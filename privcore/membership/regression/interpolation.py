"""Closed forms for least squares: with no more records than features, and for many records."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.gaussian_mean.leading import leading
from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS


@dataclass(frozen=True, kw_only=True)
class MembershipInterpolation(Method[MembershipRegressionAdvantage]):
    """Training residuals vanish and fresh residuals do not, so that the attack is never wrong.

    The paper assumes more features than records; an equal number is sufficient.
    """

    name = "membership.interpolation"
    problems = (MembershipRegressionAdvantage,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Theorem 11 and Example 2"

    def applies(self, problem: MembershipRegressionAdvantage) -> str | None:
        return None if problem.interpolates else "Residuals do not vanish with more records than features."

    def cost(self, problem: MembershipRegressionAdvantage) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipRegressionAdvantage, seed: int) -> Answer:
        return Answer.enclosure(1.0, 1.0, detail="training residuals are 0")


@dataclass(frozen=True, kw_only=True)
class MembershipInfluence(Method[MembershipRegressionAdvantage]):
    r"""$\frac{\sqrt 2}{\pi} \Gamma(\frac{d + 1}2) / \Gamma(\frac d2) \, n^{-1/2}$, for equal odds.

    The coefficients are nearly a mean of influences e x, whose mean norm is E|x| times E|e|.
    """

    name = "membership.influence"
    problems = (MembershipRegressionAdvantage,)
    direction = Direction.ESTIMATE
    reference = f"leading term of {AUBINAIS}, equation 7, for least squares"

    def applies(self, problem: MembershipRegressionAdvantage) -> str | None:
        if problem.odds != 1.0:
            return "At odds other than 1 the advantage falls faster than any power of the number of records."
        if problem.records < 4 * (problem.coordinates + 1):
            return "The leading term is accurate only if records >= 4 (coordinates + 1)."
        return None

    def cost(self, problem: MembershipRegressionAdvantage) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipRegressionAdvantage, seed: int) -> Answer:
        value = math.sqrt(2.0 / math.pi) * leading(problem.coordinates, problem.records**-0.5)
        return Answer.about(value, detail="closed form")
