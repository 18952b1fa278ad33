"""Labels without features in bags: Bernstein's bound of how often the minority has the majority of a bag."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.labels.tails import Featured, Featureless, at_most
from privcore.papers import BUSA_FEKETE


def bernstein_bound(p: float, bag_size: int) -> float:
    r"""Return Bernstein's bound for the probability that more than half of a bag has the rarer label.

    $$\exp\left(-\frac{k (1/2 - p)^2}{2 p (1 - p) + (1 - 2 p) / 3}\right)$$

    for $p \le 1/2$, and its mirror image above.

    Args:
        p: Probability of label 1 in [0, 1].
        bag_size: Number k of examples in a bag, >= 1.

    Returns:
        Upper bound of the additive advantage in [0, 1], exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Theorem 3.2, second case, with the constants of its proof.

    Example:
        >>> round(bernstein_bound(p=0.3, bag_size=8), 4)
        0.5608
    """
    rare = min(p, 1.0 - p)
    gap = 0.5 - rare
    return math.exp(-bag_size * gap * gap / (2.0 * rare * (1.0 - rare) + gap / 1.5))


@dataclass(frozen=True, kw_only=True)
class LabelsBernstein(Featureless):
    """An attack on labels without features gains only where the minority has the majority of a bag.

    The advantage is the mean of 2 alpha - 1 over such bags, at most their probability, which falls
    exponentially with the bag size unless p = 1/2. Noise takes advantage away. `labels.chernoff` is better
    where p is not small.
    """

    name = "labels.bernstein"
    reference = f"{BUSA_FEKETE}, Theorem 3.2 and its proof; Bernstein's inequality"

    def answer(self, problem: Featured, seed: int) -> Answer:
        return at_most(problem, bernstein_bound(problem.law.mean, problem.bag_size), "Bernstein's inequality")
