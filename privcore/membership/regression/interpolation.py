"""Least squares with no more records than features: the residual of a record tells all."""

from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class MembershipInterpolation(Method):
    """Training residuals vanish and fresh ones do not, so that the attack is never wrong.

    The paper asks for more features than records; as many are enough.
    """

    name: ClassVar[str] = "membership.interpolation"
    problems: ClassVar[tuple[type[Problem], ...]] = (MembershipRegressionAdvantage,)
    direction: ClassVar[Direction] = Direction.ENCLOSURE
    reference: ClassVar[str] = f"{AUBINAIS}, Theorem 11 and Example 2"

    def applies(self, problem: Problem) -> str | None:
        assert isinstance(problem, MembershipRegressionAdvantage)
        return None if problem.interpolates else "With more records than features residuals do not vanish."

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: Problem, seed: int) -> Answer:
        return Answer.enclosure(1.0, 1.0, detail="training residuals are 0")
