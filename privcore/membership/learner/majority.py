"""Lower bound for releases of few bits: every bit is the majority value of a binary feature."""

import math

import scipy

from privcore.answer import Answer
from privcore.membership.gaussian_mean.gamma_ratio import log_half_ratio
from privcore.membership.learner.problems import MembershipBitsAdvantage
from privcore.method import Cost, Direction
from privcore.numerics.rounding import MAJORITY_TAILS
from privcore.papers import AUBINAIS
from privcore.published import published


def _by_majority(problem: MembershipBitsAdvantage) -> Answer:
    """Return the advantage of counting agreements, with its threshold."""
    lower, count = agreement_advantage(problem.bits, majority_bias(problem.records))
    return Answer.enclosure(lower, problem.largest, detail=f"member if at least {count} bits agree")


MembershipMajority = published(
    "membership.majority",
    MembershipBitsAdvantage,
    Direction.LOWER,
    """Records of b fair bits; the release is the majority of every column, with ties broken by a fair coin.

    A member agrees with each released bit independently with probability 1/2 + E|B / n - 1/2|, where B is
    binomial, and the attack counts the agreements. For one bit and large n this is about 0.68 of the upper
    bound; for one record it attains the upper bound.
    """,
    _by_majority,
    reference=f"our own learner; compare {AUBINAIS}, equation 8",
    cost=lambda p: Cost(seconds=1e-3, bytes=1e4),
)


def majority_bias(records: int) -> float:
    r"""Return $\mathrm E|B / n - 1/2|$ for B binomial with n fair trials, to about 1e-13.

    It is $\binom{2m}{m} 2^{-2m - 1}$ with $m = \lfloor n / 2 \rfloor$.

    Example:
        >>> [round(majority_bias(n), 6) for n in (1, 2, 3, 5)]
        [0.5, 0.25, 0.25, 0.1875]
    """
    half = records // 2
    if half == 0:
        return 0.5
    return 0.5 * math.exp(log_half_ratio(float(half))) / (half * math.sqrt(math.pi))


def agreement_advantage(bits: int, bias: float) -> tuple[float, int]:
    """Return the advantage of a threshold on the number of agreeing bits, rounded down, and the threshold.

    Args:
        bits: Number b of bits, >= 1.
        bias: Probability that a member agrees with a bit, minus 1/2; in [0, 1/2].
    """
    if bias >= 0.5:
        return max(0.0, -math.expm1(-bits * math.log(2.0)) * (1.0 - MAJORITY_TAILS)), bits
    # the count at which both binomial distributions have equal probabilities
    count = math.ceil(-bits * math.log1p(-2.0 * bias) / (math.log1p(2.0 * bias) - math.log1p(-2.0 * bias)))
    count = min(max(count, bits // 2 + 1), bits)
    if bits == 1:
        return bias * (1.0 - MAJORITY_TAILS), 1
    member, fresh = (float(scipy.special.betainc(count, bits - count + 1.0, p)) for p in (0.5 + bias, 0.5))
    error = MAJORITY_TAILS + 1e-16 * math.sqrt(bits)  # tails move by a multiple of the rounding of 1/2 + bias
    return max(0.0, (member - fresh) * (1.0 - MAJORITY_TAILS) - error), count
