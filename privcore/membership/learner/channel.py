"""Lower bounds from learners that are nearly as bad as the information about a record allows."""

import math

from privcore.answer import Answer
from privcore.membership.learner.problems import MembershipInformationAdvantage
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import CLOSED_FORM
from privcore.papers import AUBINAIS

_SIZES = (*range(2, 17), *(2**k for k in range(5, 50)))


class MembershipChannel(Method[MembershipInformationAdvantage]):
    """Release a record of K equally likely values, or with some probability an independent draw of them.

    The bound is the largest advantage over K. For little information, K = 2 attains Pinsker's inequality up
    to a factor that tends to 1.
    """

    name = "membership.channel"
    problems = (MembershipInformationAdvantage,)
    direction = Direction.LOWER
    reference = f"our own learner; compare {AUBINAIS}, equation 8"

    def cost(self, problem: MembershipInformationAdvantage) -> Cost:
        return Cost(seconds=0.01, bytes=1e4)

    def answer(self, problem: MembershipInformationAdvantage, seed: int) -> Answer:
        lower, size = max((channel_advantage(problem.information, size), size) for size in _SIZES)
        return Answer.enclosure(lower, 1.0, detail=f"{size} values")


def channel_advantage(information: float, size: int) -> float:
    r"""Return the advantage for K values if the record is released with the largest allowed probability.

    With probability t the record is released, otherwise a uniform draw of the K values: the advantage is
    $t (1 - 1 / K)$, and with $e = (1 - t) (1 - 1/K)$ the mutual information is
    $\ln K + (1 - e) \ln(1 - e) + e \ln(e / (K - 1))$.

    Args:
        information: Largest mutual information in nats, >= 0.
        size: Number K of values, >= 2.

    Returns:
        Lower bound in [0, 1), rounded down.

    Example:
        >>> round(channel_advantage(0.005, 2), 4), channel_advantage(1.0, 2) > 0.4999999
        (0.05, True)
    """
    low, high = 0.0, 1.0
    if _information(1.0, size) * (1.0 + CLOSED_FORM) <= information:
        low = 1.0
    else:
        while high - low > 1e-13 * high and high > 1e-150:
            middle = 0.5 * (low + high)
            fits = _information(middle, size) * (1.0 + CLOSED_FORM) <= information
            low, high = (middle, high) if fits else (low, middle)
    return low * (1.0 - 1.0 / size) * (1.0 - CLOSED_FORM)


def _information(t: float, size: int) -> float:
    """Return the mutual information of the channel in nats, with a small relative error, rounded up."""
    # 1 - e = (1 + (K - 1) t) / K and e / (K - 1) = (1 - t) / K
    hit, miss = (1.0 + (size - 1) * t) / size, (1.0 - t) / size
    x = (size - 1) * t
    if x < 1e-3:  # the linear terms cancel; the quadratic terms, with a factor that covers the remainder
        return 0.5 * (x * x + (size - 1) * t * t) / size * (1.0 + 2.0 * t)
    return hit * math.log1p(x) + ((size - 1) * miss * math.log1p(-t) if t < 1.0 else 0.0)
