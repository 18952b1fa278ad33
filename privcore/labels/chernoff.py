"""Labels without features in bags: Chernoff's bound of how often the minority has the majority of a bag."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.labels.tails import Featured, Featureless, at_most
from privcore.papers import BUSA_FEKETE


def chernoff_bound(p: float, bag_size: int) -> float:
    r"""Return Chernoff's bound for the probability that at least half of a bag has the rarer label.

    $$\min_t E e^{t (S - k/2)} = (4 p (1 - p))^{k/2} = (1 - 4 \beta^2)^{k/2} \le e^{-2 \beta^2 k},
      \qquad \beta = |p - 1/2|$$

    Args:
        p: Probability of label 1 in [0, 1].
        bag_size: Number k of examples in a bag, >= 1.

    Returns:
        Upper bound of the additive advantage in [0, 1], exact up to rounding.

    Reference:
        Chernoff's inequality; an explicit form of arXiv:2406.02797v1, Theorem 3.2, second case.

    Example:
        >>> round(chernoff_bound(p=0.3, bag_size=8), 4)
        0.4979
    """
    if p in (0.0, 1.0):
        return 0.0
    # near 1/2 the product is near 1, and its distance from 1 is what counts
    near = abs(1.0 - 2.0 * p) < 0.5
    log = math.log1p(-((1.0 - 2.0 * p) ** 2)) if near else math.log(4.0) + math.log(p) + math.log1p(-p)
    return math.exp(0.5 * bag_size * log)


@dataclass(frozen=True, kw_only=True)
class LabelsChernoff(Featureless):
    r"""The advantage is at most $(4 p (1 - p))^{k/2}$ where eta is constant.

    As `labels.bernstein`, by the moment generating function instead of its bound. The rate is the true one:
    the advantage is $k^{-3/2}$ times this, up to a factor that depends on p.
    """

    name = "labels.chernoff"
    reference = f"{BUSA_FEKETE}, Theorem 3.2, made explicit by Chernoff's inequality"

    def answer(self, problem: Featured, seed: int) -> Answer:
        return at_most(problem, chernoff_bound(problem.law.mean, problem.bag_size), "(4 p (1 - p))^(k/2)")
