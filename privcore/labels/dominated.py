"""The sharp bound by label differential privacy alone: nothing reveals more than randomized response."""

import math
from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.distributions.prior import Prior
from privcore.distributions.prior_finite import Finite
from privcore.labels.bag_problems import BagAdvantage
from privcore.labels.problems import LabelAdvantage, LabelAdvantageAt, LabelProblem
from privcore.labels.response import response_advantage
from privcore.labels.tails import PRIVATE, at_most, closed_form, uncovered
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class LabelsDominated(Method):
    r"""The advantage is at most that of randomized response, $E(\min(\eta, 1 - \eta) - \pi)_+$.

    Given the features, the releases for the two labels of an example are a pair of laws whose ratio is within
    $e^{\pm \varepsilon}$. Such a pair is a randomisation of the two laws of randomized response with
    $\pi = 1 / (1 + e^\varepsilon)$, so an attacker who sees the latter can do all that another can. The bound
    depends on the own law of the attacked example only, is attained at bag size 1 by geometric noise, and is
    at most $\tanh(\varepsilon / 2) / 2$.
    """

    name: ClassVar[str] = "labels.dominated"
    problems: ClassVar[tuple[type[Problem], ...]] = (LabelAdvantage, LabelAdvantageAt, BagAdvantage)
    direction: ClassVar[Direction] = Direction.UPPER
    reference: ClassVar[str] = (
        f"{BUSA_FEKETE}, Theorem 3.5, with the domination in the proof of Theorem 3.3 of Kairouz, Oh and "
        "Viswanath, The Composition Theorem for Differential Privacy, ICML 2015"
    )

    def applies(self, problem: Problem) -> str | None:
        assert isinstance(problem, LabelProblem | BagAdvantage)
        return uncovered(problem, PRIVATE)

    def cost(self, problem: Problem) -> Cost:
        cost = closed_form(problem)
        members = problem.etas.size if isinstance(problem, BagAdvantage) else 1
        return Cost(seconds=cost.seconds + 1e-4 * members, bytes=cost.bytes)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, LabelAdvantage | LabelAdvantageAt | BagAdvantage)
        laws: list[Prior]
        if isinstance(problem, BagAdvantage):
            laws = [Finite.point(float(eta)) for eta in problem.etas]
        else:
            laws = [Finite.point(problem.eta) if isinstance(problem, LabelAdvantageAt) else problem.law]
        bounds = [response_advantage(law, problem.label_epsilon)[1] for law in laws]
        return at_most(problem, math.fsum(bounds) / len(bounds), "randomized response with the same epsilon")
