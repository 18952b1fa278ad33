"""What quantisation costs at least: a classifier cannot tell apart what has the same code."""

from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.membership.experiments.digits import codes, refusal
from privcore.membership.experiments.problems import MembershipQuantised
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class MembershipPurity(Method):
    """Count the tested images that show the most frequent digit of their cluster.

    No classifier that knows images by their cluster is right more often on these images, whatever it was
    trained on. For raw images it is 1.
    """

    name: ClassVar[str] = "membership.purity"
    problems: ClassVar[tuple[type[Problem], ...]] = (MembershipQuantised,)
    direction: ClassVar[Direction] = Direction.UPPER
    reference: ClassVar[str] = f"Counting; see {AUBINAIS}, Table 1, for what is claimed above it"
    shares: ClassVar[tuple[str, ...]] = ("clusters",)

    def applies(self, problem: Problem) -> str | None:
        return refusal()

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=0.15, bytes=5e6)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, MembershipQuantised)
        return Answer.at_most(
            codes(problem.clusters).purity(), detail="share of the largest digit of each cluster"
        )
