"""Differential privacy: the published bounds of the advantage."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.learner.problems import MembershipPrivateAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_SLACK = 1e-14


@dataclass(frozen=True, kw_only=True)
class MembershipPublished(Method[MembershipPrivateAdvantage]):
    """The smaller of equation 9 and of delta + (1 - delta) tanh(epsilon / 2), times the odds if above 1.

    Both are right as upper bounds; the second is called a supremum in the paper, and is none.
    """

    name = "membership.published"
    problems = (MembershipPrivateAdvantage,)
    direction = Direction.UPPER
    reference = f"{AUBINAIS}, Remark 8 and Appendix H"

    def applies(self, problem: MembershipPrivateAdvantage) -> str | None:
        if problem.neighbours != "substitution":
            return "The paper's neighbours have one record replaced."
        return None

    def cost(self, problem: MembershipPrivateAdvantage) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipPrivateAdvantage, seed: int) -> Answer:
        bound = published_bound(problem.claimed_epsilon, problem.claimed_delta, problem.odds)
        return Answer.at_most(min(1.0, bound * (1.0 + _SLACK) + 1e-16), detail="closed form")


def published_bound(epsilon: float, delta: float, odds: float) -> float:
    r"""Return the smaller of the two published bounds, which may exceed 1.

    $$\max\{1, \gamma\} \min\{(e^\varepsilon - 1 / \gamma)_+ - (1 - 1 / \gamma)_+ + \delta, \;
      \delta + (1 - \delta) \tanh(\varepsilon / 2)\}$$

    Args:
        epsilon: In nats, >= 0.
        delta: In [0, 1].
        odds: Odds gamma of a non-member against a member, > 0.

    Reference:
        arXiv:2310.13786v6, equation 9 and Appendix H.

    Example:
        >>> round(published_bound(1.0, 0.0, 1.0), 5), round(published_bound(0.1, 0.0, 1.0), 5)
        (0.46212, 0.04996)
    """
    gain = math.expm1(epsilon) if odds >= 1.0 else max(0.0, math.exp(epsilon) - 1.0 / odds)
    return max(1.0, odds) * min(gain + delta, delta + (1.0 - delta) * math.tanh(0.5 * epsilon))
