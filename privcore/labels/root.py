"""Three explicit bounds of the advantage, for bags of labels without features."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.labels.problems import Featured
from privcore.labels.tails import Featureless, at_most
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
    r"""The advantage is at most $\sqrt{p (1 - p) / k}$ if eta is constant.

    Adding noise is a post-processing of the sum, so it lowers the advantage. At p = 1/2 the exact sum attains
    $\sqrt{2 / \pi}$ of the bound in large bags.
    """

    name = "labels.root"
    reference = f"{BUSA_FEKETE}, Theorem 3.2, for all p"

    def answer(self, problem: Featured, seed: int) -> Answer:
        return at_most(
            problem, root_bound(problem.distribution.mean, problem.bag_size), "sqrt(p (1 - p) / k)"
        )


def bernstein_bound(p: float, bag_size: int) -> float:
    r"""Return Bernstein's bound for the probability that more than half of a bag has the rarer label.

    $$\exp\left(-\frac{k (1/2 - p)^2}{2 p (1 - p) + (1 - 2 p) / 3}\right)$$

    for $p \le 1/2$; for $p > 1/2$, p is replaced by 1 - p.

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
    """An attack on labels without features gains only in bags in which the rarer label has the majority.

    The advantage is the mean of 2 alpha - 1 over these bags, at most their probability, which falls
    exponentially with the bag size unless p = 1/2. Noise lowers the advantage. `labels.chernoff` is better
    unless p is small.
    """

    name = "labels.bernstein"
    reference = f"{BUSA_FEKETE}, Theorem 3.2 and its proof; Bernstein's inequality"

    def answer(self, problem: Featured, seed: int) -> Answer:
        return at_most(
            problem, bernstein_bound(problem.distribution.mean, problem.bag_size), "Bernstein's inequality"
        )


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
    # for p near 1/2 the product is near 1, so its distance from 1 needs the relative accuracy
    near = abs(1.0 - 2.0 * p) < 0.5
    log = math.log1p(-((1.0 - 2.0 * p) ** 2)) if near else math.log(4.0) + math.log(p) + math.log1p(-p)
    return math.exp(0.5 * bag_size * log)


@dataclass(frozen=True, kw_only=True)
class LabelsChernoff(Featureless):
    r"""The advantage is at most $(4 p (1 - p))^{k/2}$ if eta is constant.

    The argument is that of `labels.bernstein`, with the moment generating function itself instead of a bound
    of it. The exponential rate is exact: the advantage is $k^{-3/2}$ times this bound, up to a factor that
    depends on p.
    """

    name = "labels.chernoff"
    reference = f"{BUSA_FEKETE}, Theorem 3.2, made explicit by Chernoff's inequality"

    def answer(self, problem: Featured, seed: int) -> Answer:
        return at_most(
            problem, chernoff_bound(problem.distribution.mean, problem.bag_size), "(4 p (1 - p))^(k/2)"
        )
