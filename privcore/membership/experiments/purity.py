"""What quantisation costs at least: a classifier cannot tell apart what has the same code."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.experiments.digits import codes, refusal
from privcore.membership.experiments.problems import MembershipQuantised
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS


@dataclass(frozen=True, kw_only=True)
class MembershipPurity(Method[MembershipQuantised]):
    """Count the tested images that show the most frequent digit of their cluster.

    No classifier that knows images by their cluster is right more often on these images, whatever it was
    trained on. For raw images it is 1.
    """

    name = "membership.purity"
    problems = (MembershipQuantised,)
    direction = Direction.UPPER
    reference = f"Counting; see {AUBINAIS}, Table 1, for what is claimed above it"
    shares = ("clusters",)

    def applies(self, problem: MembershipQuantised) -> str | None:
        return refusal()

    def cost(self, problem: MembershipQuantised) -> Cost:
        return Cost(seconds=0.15, bytes=5e6)

    def answer(self, problem: MembershipQuantised, seed: int) -> Answer:
        return Answer.at_most(
            codes(problem.clusters).purity(), detail="share of the largest digit of each cluster"
        )
