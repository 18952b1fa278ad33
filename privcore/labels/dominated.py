"""Bounds that follow from label differential privacy alone, for every mechanism."""

import math
from dataclasses import dataclass
from typing import get_args

from privcore.answer import Answer
from privcore.distributions.prior import Prior
from privcore.distributions.prior_finite import FinitePrior
from privcore.labels.bag_problems import Advantage, BagAdvantage
from privcore.labels.response import response_advantage
from privcore.labels.tails import PRIVATE, at_most, closed_form, uncovered
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE, WU


@dataclass(frozen=True, kw_only=True)
class LabelsDominated(Method[Advantage]):
    r"""The advantage is at most that of randomized response, $E(\min(\eta, 1 - \eta) - \pi)_+$.

    Given the features, the releases for the two labels of an example are a pair of distributions whose ratio
    lies within $e^{\pm \varepsilon}$. This pair is a post-processing of the two distributions of randomized
    response with $\pi = 1 / (1 + e^\varepsilon)$, so randomized response gives an attacker at least the same
    advantage. The bound depends only on the distribution of eta of the attacked example, is attained at bag
    size 1 by geometric noise, and is at most $\tanh(\varepsilon / 2) / 2$.
    """

    name = "labels.dominated"
    problems = get_args(Advantage)
    direction = Direction.UPPER
    reference = (
        f"{BUSA_FEKETE}, Theorem 3.5, with the domination in the proof of Theorem 3.3 of Kairouz, Oh and "
        "Viswanath, The Composition Theorem for Differential Privacy, ICML 2015"
    )

    def applies(self, problem: Advantage) -> str | None:
        return uncovered(problem, PRIVATE)

    def cost(self, problem: Advantage) -> Cost:
        cost = closed_form(problem)
        members = problem.etas.size if isinstance(problem, BagAdvantage) else 1
        return Cost(seconds=cost.seconds + 1e-4 * members, bytes=cost.bytes)

    def answer(self, problem: Advantage, seed: int) -> Answer:
        laws: list[Prior]
        if isinstance(problem, BagAdvantage):
            laws = [FinitePrior.point(float(eta)) for eta in problem.etas]
        else:
            laws = [problem.attacked]
        bounds = [response_advantage(law, problem.label_epsilon)[1] for law in laws]
        return at_most(problem, math.fsum(bounds) / len(bounds), "randomized response with the same epsilon")


def wu_bound(epsilon: float) -> float:
    r"""Return the bound of Wu et al. on the additive advantage, for every prior.

    $$1 - \frac{2}{1 + e^\varepsilon} = \tanh(\varepsilon / 2)$$

    Args:
        epsilon: Label differential privacy in nats, > 0.

    Returns:
        Upper bound in (0, 1], exact up to rounding.

    Reference:
        R. Wu, J. P. Zhou, K. Q. Weinberger and C. Guo (2022), arXiv:2202.12968, as quoted in
        arXiv:2406.02797v1, Section 3.1, where it has $1 + \varepsilon$ for $1 + e^\varepsilon$ in one place.

    Example:
        >>> round(wu_bound(1.0), 4)
        0.4621
    """
    return math.tanh(0.5 * epsilon)


@dataclass(frozen=True, kw_only=True)
class LabelsWu(Method[Advantage]):
    r"""The advantage is at most $\tanh(\varepsilon / 2)$, for every prior.

    The bound is at least twice the advantage of any mechanism, since an advantage is at most half a total
    variation distance; see `labels.dominated`.
    """

    name = "labels.wu"
    problems = get_args(Advantage)
    direction = Direction.UPPER
    reference = f"{WU}, as quoted in {BUSA_FEKETE}, Section 3.1"

    def applies(self, problem: Advantage) -> str | None:
        return uncovered(problem, PRIVATE)

    def cost(self, problem: Advantage) -> Cost:
        return closed_form(problem)

    def answer(self, problem: Advantage, seed: int) -> Answer:
        return at_most(problem, wu_bound(problem.label_epsilon), "1 - 2 / (1 + e^epsilon)")
