"""Labels without features in bags: the bound by the standard deviation of a proportion."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.labels.tails import Featured, Featureless, at_most
from privcore.papers import BUSA_FEKETE


def root_bound(p: float, bag_size: int) -> float:
    r"""Return the standard deviation of the proportion of labels 1 in a bag.

    $$\min(p, 1 - p) - E \min(\alpha, 1 - \alpha) \le E|\alpha - p| \le \sqrt{p (1 - p) / k}$$

    Args:
        p: Probability of label 1 in [0, 1].
        bag_size: Number k of examples in a bag, >= 1.

    Returns:
        Upper bound of the additive advantage in [0, 1/2], exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Theorem 3.2, first case.

    Example:
        >>> root_bound(p=0.5, bag_size=64)
        0.0625
    """
    return math.sqrt(p * (1.0 - p) / bag_size)


@dataclass(frozen=True, kw_only=True)
class LabelsRoot(Featureless):
    r"""The advantage is at most $\sqrt{p (1 - p) / k}$ where eta is constant.

    Noise is a randomisation of the sum, so it takes advantage away. At p = 1/2 the exact sum attains
    $\sqrt{2 / \pi}$ of the bound in large bags.
    """

    name = "labels.root"
    reference = f"{BUSA_FEKETE}, Theorem 3.2, for all p"

    def answer(self, problem: Featured, seed: int) -> Answer:
        return at_most(problem, root_bound(problem.law.mean, problem.bag_size), "sqrt(p (1 - p) / k)")
