"""The bound on label inference that holds for every mechanism with label differential privacy."""

import math
from dataclasses import dataclass
from typing import get_args

from privcore.answer import Answer
from privcore.labels.bag_problems import BagAdvantage
from privcore.labels.problems import LabelAdvantage, LabelAdvantageAt
from privcore.labels.tails import PRIVATE, at_most, closed_form, uncovered
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE, WU


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


Answered = LabelAdvantage | LabelAdvantageAt | BagAdvantage


@dataclass(frozen=True, kw_only=True)
class LabelsWu(Method[Answered]):
    r"""The advantage is at most $\tanh(\varepsilon / 2)$, whatever the prior.

    It is twice what any mechanism attains, since an advantage is half a variation distance at most; see
    `labels.dominated`.
    """

    name = "labels.wu"
    problems = get_args(Answered)
    direction = Direction.UPPER
    reference = f"{WU}, as quoted in {BUSA_FEKETE}, Section 3.1"

    def applies(self, problem: Answered) -> str | None:
        return uncovered(problem, PRIVATE)

    def cost(self, problem: Answered) -> Cost:
        return closed_form(problem)

    def answer(self, problem: Answered, seed: int) -> Answer:
        return at_most(problem, wu_bound(problem.label_epsilon), "1 - 2 / (1 + e^epsilon)")
