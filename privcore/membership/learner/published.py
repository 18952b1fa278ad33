"""Differential privacy: the published bounds of the advantage."""

import math
from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.membership.learner.problems import MembershipPrivateAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS
from privcore.problem import Problem

_SLACK = 1e-14


@dataclass(frozen=True, kw_only=True)
class MembershipPublished(Method):
    """The smaller of equation 9 and of delta + (1 - delta) tanh(epsilon / 2), times the odds if above 1.

    Both are right as upper bounds; the second is called a supremum in the paper, and is none.
    """

    name: ClassVar[str] = "membership.published"
    problems: ClassVar[tuple[type[Problem], ...]] = (MembershipPrivateAdvantage,)
    direction: ClassVar[Direction] = Direction.UPPER
    reference: ClassVar[str] = f"{AUBINAIS}, Remark 8 and Appendix H"

    def applies(self, problem: Problem) -> str | None:
        assert isinstance(problem, MembershipPrivateAdvantage)
        if problem.neighbours != "substitution":
            return "The paper's neighbours have one record replaced."
        return None

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, MembershipPrivateAdvantage)
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
