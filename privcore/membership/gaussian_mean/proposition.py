"""The published bound for means, of Gaussian records, where all of its constants are known."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.gaussian_mean.gamma_ratio import mean_norm
from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_SLACK = 1e-12


@dataclass(frozen=True, kw_only=True)
class MembershipProposition(Method[MembershipMeanAdvantage]):
    """The distance of two normal laws, averaged over a record: d^(1/2) / (2n) + E|z| / (2 n^(1/2)).

    Noise on the release can only lower the advantage, and so can odds other than 1.
    """

    name = "membership.proposition"
    problems = (MembershipMeanAdvantage,)
    direction = Direction.UPPER
    reference = f"{AUBINAIS}, Proposition 25, for at least two records"

    def applies(self, problem: MembershipMeanAdvantage) -> str | None:
        return None if problem.records >= 2 else "The proposition needs at least two records."

    def cost(self, problem: MembershipMeanAdvantage) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipMeanAdvantage, seed: int) -> Answer:
        n, d = problem.records, problem.coordinates
        bound = 0.5 * math.sqrt(d) / n + 0.5 * mean_norm(d) / math.sqrt(n)
        return Answer.at_most(min(1.0, bound * (1.0 + _SLACK)), detail="closed form")
