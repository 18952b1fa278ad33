"""Least squares with no more records than features: the residual of a record tells all."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS


@dataclass(frozen=True, kw_only=True)
class MembershipInterpolation(Method[MembershipRegressionAdvantage]):
    """Training residuals vanish and fresh ones do not, so that the attack is never wrong.

    The paper asks for more features than records; as many are enough.
    """

    name = "membership.interpolation"
    problems = (MembershipRegressionAdvantage,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Theorem 11 and Example 2"

    def applies(self, problem: MembershipRegressionAdvantage) -> str | None:
        return None if problem.interpolates else "With more records than features residuals do not vanish."

    def cost(self, problem: MembershipRegressionAdvantage) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipRegressionAdvantage, seed: int) -> Answer:
        return Answer.enclosure(1.0, 1.0, detail="training residuals are 0")
