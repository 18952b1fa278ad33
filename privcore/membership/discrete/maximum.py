"""Two exact advantages: of one learner, the largest bit; and given the training set, of any learner."""

import math
from typing import Annotated

from privcore.distributions.dataset import dataset_pairs
from privcore.membership import params as membership_params
from privcore.membership.problem import AdvantageProblem
from privcore.method import Direction
from privcore.numerics.rounding import CLOSED_FORM, FEW_FUNCTIONS
from privcore.papers import AUBINAIS
from privcore.problem import falls, proved
from privcore.published import published


class MembershipMaximumAdvantage(AdvantageProblem):
    """Largest advantage of an attack on the maximum of n independent bits, each 1 with probability p."""

    name = "membership-maximum-advantage"
    monotone = proved(
        records=falls("The maximum of n + 1 bits is a random function of the maximum of n of them.")
    )

    atom_probability: Annotated[float, membership_params.ATOM_PROBABILITY]
    records: Annotated[int, membership_params.RECORDS]
    odds: Annotated[float, membership_params.ODDS] = 1.0


class MembershipDatasetAdvantage(AdvantageProblem):
    """Largest advantage of an attack on any learner, given its training set.

    The attack may use the training set. A member is one of its records at random, a non-member a fresh draw.
    The mean over training sets is `membership-advantage`. Probability that the list leaves over belongs to
    other values.
    """

    name = "membership-dataset-advantage"

    dataset: Annotated[str, membership_params.DATASET]
    odds: Annotated[float, membership_params.ODDS] = 1.0


def _positive(x: float, y: float) -> tuple[float, float]:
    """Return bounds of the positive part of x - y, for x and y >= 0 with small relative errors."""
    more, less = 1.0 + CLOSED_FORM, 1.0 - CLOSED_FORM
    return max(0.0, x * less - y * more), max(0.0, x * more - y * less)


def maximum_advantage(p: float, records: int, odds: float) -> tuple[float, float]:
    r"""Return bounds of the advantage; with q = 1 - p and $Q = q^n$ it is $2 p Q$ at odds 1.

    $$p (\gamma Q - (\gamma - 1))_+ + Q (\gamma p - (\gamma - 1))_+ \text{ for } \gamma \ge 1, \qquad
      p Q + (p Q - q (1 - \gamma) (1 - Q))_+ / \gamma \text{ for } \gamma \le 1$$

    Args:
        p: Probability in (0, 1] that a bit is 1.
        records: Number n of bits.
        odds: $\gamma$ > 0.

    Reference:
        arXiv:2310.13786v6, Lemma 22, whose order is too small: the advantage is of the order of $(1 - p)^n$.

    Example:
        >>> low, high = maximum_advantage(0.5, 3, 1.0)
        >>> round(low, 9), round(high, 9)
        (0.125, 0.125)
    """
    log = records * math.log1p(-p) if p < 1.0 else -math.inf
    none = math.exp(log)
    if odds >= 1.0:
        first, second = _positive(odds * none, odds - 1.0), _positive(odds * p, odds - 1.0)
        lower, upper = p * first[0] + none * second[0], p * first[1] + none * second[1]
    else:
        first = _positive(p * none, (1.0 - p) * (1.0 - odds) * -math.expm1(log))
        lower, upper = p * none + first[0] / odds, p * none + first[1] / odds
    tiny = 1e-300 if p < 1.0 else 0.0  # products may underflow
    return max(0.0, lower - tiny), upper + tiny


def dataset_advantage(pairs: list[tuple[int, float]], odds: float) -> float:
    r"""Return $\sum_k (N_k / n - \gamma p_k)_+$ for $\gamma \ge 1$; at odds 1 a distance in total variation.

    For $\gamma \le 1$ it is $\sum_k (p_k - N_k / (\gamma n))_+$, over values outside the training set, too.

    Args:
        pairs: Count N, >= 1, and probability p of every value in the training set.
        odds: $\gamma$ > 0.

    Reference:
        Our own; arXiv:2310.13786v6, Remark 4, has the case of continuous records, in which it is 1.

    Example:
        >>> dataset_advantage([(3, 0.5), (1, 0.5)], 1.0), dataset_advantage([(5, 0.0)], 1.0)
        (0.25, 1.0)
    """
    n = sum(count for count, _ in pairs)
    if odds >= 1.0:
        return math.fsum(max(0.0, count / n - odds * p) for count, p in pairs)
    left = max(0.0, 1.0 - math.fsum(p for _, p in pairs))
    return left + math.fsum(max(0.0, p - count / (n * odds)) for count, p in pairs)


MembershipMaximum = published(
    "membership.maximum",
    MembershipMaximumAdvantage,
    Direction.ENCLOSURE,
    "Sum over the four values of the maximum and a bit.",
    lambda p: maximum_advantage(p.atom_probability, p.records, p.odds),
    reference=f"{AUBINAIS}, Lemma 22 with its error corrected",
    slack=CLOSED_FORM,
)
MembershipDataset = published(
    "membership.dataset",
    MembershipDatasetAdvantage,
    Direction.ENCLOSURE,
    """Classify a record as a member if its value is more frequent in the training set than expected.""",
    lambda p: dataset_advantage(dataset_pairs(p.dataset), p.odds),
    reference=f"{AUBINAIS}, Remark 4, extended to discrete records",
    slack=FEW_FUNCTIONS,
    offset=FEW_FUNCTIONS,
    detail="training set against distribution",
)
