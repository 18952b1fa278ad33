"""Largest advantage under differential privacy, attained by a learner, and the published bounds."""

import math

from privcore.answer import Answer
from privcore.membership.learner.problems import MembershipPrivateAdvantage
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import MOVED_EPSILON, PRIVATE_ADVANTAGE, probability_at_most
from privcore.papers import AUBINAIS
from privcore.published import published

_NO_SUBSTITUTION = "The published bounds are for neighbours by substitution."
_CLOSE = 1e-7
"""Epsilon below which odds are compared by their distance from 1, to keep digits."""


class MembershipSharp(Method[MembershipPrivateAdvantage]):
    """The supremum over all private learners, and learners that attain it.

    The learner: a record is uniform on a circle. With probability delta the record is released, otherwise a
    random point whose density is higher by a factor of e^epsilon on an arc of optimal length around the
    record. The functions of this module prove that this is optimal. For neighbours by adding or removing a
    record and delta > 0, the upper end is that of a substitution at 2 epsilon and (1 + e^epsilon) delta.
    """

    name = "membership.sharp"
    problems = (MembershipPrivateAdvantage,)
    direction = Direction.ENCLOSURE
    reference = f"our own proofs; compare {AUBINAIS}, Appendix H: its tanh(epsilon / 2) is not a supremum"
    version = 2

    def cost(self, problem: MembershipPrivateAdvantage) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipPrivateAdvantage, seed: int) -> Answer:
        delta, odds = problem.claimed_delta, problem.odds
        # Both advantages grow with epsilon, so moving epsilon covers the rounding of the log odds.
        low, high = (problem.claimed_epsilon * (1.0 + move) for move in (-MOVED_EPSILON, MOVED_EPSILON))
        if problem.neighbours == "substitution":
            least, most = substitution_advantage(low, odds), substitution_advantage(high, odds)
            lower, upper, detail = with_delta(least, delta), with_delta(most, delta), "attained"
        else:
            lower, detail = with_delta(add_remove_advantage(low, odds), delta), "attained"
            upper = with_delta(add_remove_advantage(high, odds), delta)
            if delta > 0.0:
                group = min(1.0, (1.0 + math.exp(high)) * delta)
                upper = max(upper, with_delta(substitution_advantage(2.0 * high, odds), group))
                detail = "the lower end is attained; the upper end counts a removal and an addition"
        return Answer.enclosure(
            max(0.0, lower * (1.0 - PRIVATE_ADVANTAGE)),
            probability_at_most(upper, PRIVATE_ADVANTAGE),
            detail=detail,
        )


def with_delta(advantage: float, delta: float) -> float:
    """Return the advantage if, in addition, the record itself is released with probability delta."""
    return delta + (1.0 - delta) * advantage


def substitution_advantage(epsilon: float, odds: float) -> float:
    r"""Return the largest advantage under epsilon-DP for neighbours by substitution.

    $$\frac{(e^{\varepsilon / 2} - \sqrt g)_+^2}{e^\varepsilon - 1}, \quad g = \max\{\gamma, 1 / \gamma\}$$

    Proof. Given a release, let S be the set of records that the attack classifies as members, s its
    probability, and r the mean likelihood ratio on S; outside S the mean is (1 - s r) / (1 - s). Privacy for
    every pair of a record in S and a record outside gives $r \le E / (1 - s + s E)$ with $E = e^\varepsilon$.
    The gain s (r - g) is largest at $1 + s (E - 1) = \sqrt{E / g}$, and its value there is the formula. A
    pair may exceed this bound only by using delta; the cheapest use, in the limit of s to 0, gains at most
    delta (1 - formula). The proof for odds below 1 is symmetric.

    Args:
        epsilon: In nats, >= 0.
        odds: Odds gamma of a non-member against a member, > 0.

    Returns:
        Advantage in [0, 1]; exact up to rounding. For gamma = 1 it is tanh(epsilon / 4).

    Example:
        >>> round(substitution_advantage(1.0, 1.0), 6), round(math.tanh(0.25), 6)
        (0.244919, 0.244919)
    """
    over = epsilon - abs(math.log(odds))
    if over <= 0.0:
        return 0.0
    gain = -math.expm1(-0.5 * over)
    return gain * (gain / -math.expm1(-epsilon))  # the square of a small gain would underflow


def add_remove_advantage(epsilon: float, odds: float) -> float:
    r"""Return the largest advantage under epsilon-DP for neighbours by adding or removing a record.

    With $E = e^\varepsilon$ and $g = \max\{\gamma, 1 / \gamma\}$ it is $(E - g) / (E + 1)$ for moderate odds,
    $\gamma \le (E + 1) / 2$ and $1 / \gamma \le 2 E / (E + 1)$. For other odds some outputs carry no
    information, and it is $(\sqrt{\gamma (E^2 - 1)} - E \sqrt{\gamma - 1})^2 / (E + 1)$ and
    $(\sqrt{E^2 - 1} - \sqrt{1 / \gamma - 1})^2 / (E (E + 1))$, until it vanishes at $g = E^2$.

    Proof. Let q be the density of the release without the record. Given a release, the densities with a
    record lie in [q / E, q E] and have the mean p = r q. So their mean excess over gamma p is at most that of
    the two-point distribution on the ends, $k(r) q$ with $k(r) = (r - 1/E) (E - \gamma r)_+ / (E - 1/E)$. The
    q-mean of r is 1. At 1 the least concave function above k has the value of the formula, which is that of k
    itself or of the tangent from (E, 0). Two-point distributions on arcs attain it. The proof for odds below
    1 is symmetric.

    Args:
        epsilon: In nats, >= 0.
        odds: Odds gamma of a non-member against a member, > 0.

    Returns:
        Advantage in [0, 1]; exact up to rounding. For gamma = 1 it is tanh(epsilon / 2).

    Example:
        >>> round(add_remove_advantage(1.0, 1.0), 6), round(math.tanh(0.5), 6)
        (0.462117, 0.462117)
    """
    if 2.0 * epsilon <= abs(math.log(odds)):
        return 0.0
    inverse = math.exp(-epsilon)  # 1 / E, which does not overflow
    share = 1.0 / (1.0 + inverse)  # E / (E + 1)
    log_odds = abs(math.log(odds))
    if odds >= 1.0:
        moderate = odds * inverse <= 0.5 * (1.0 + inverse)
        if epsilon < _CLOSE:
            moderate = odds - 1.0 <= 0.5 * math.expm1(epsilon)
        if moderate:
            return -share * math.expm1(log_odds - epsilon)
        # (u - v)^2 with u^2 - v^2 = E^2 - g, over (E + 1): no cancellation of the roots
        root = math.sqrt(-math.expm1(-2.0 * epsilon) * odds) + math.sqrt(odds - 1.0)
        return share * math.exp(epsilon) * (math.expm1(log_odds - 2.0 * epsilon) / root) ** 2
    moderate = 2.0 * share * odds >= 1.0
    if epsilon < _CLOSE:
        moderate = (1.0 - odds) / odds <= math.tanh(0.5 * epsilon)
    if moderate:
        return -share * math.expm1(log_odds - epsilon)
    # (1 - odds) / odds keeps digits that 1 / odds - 1 would lose for odds close to 1
    root = math.sqrt(-math.expm1(-2.0 * epsilon)) + inverse * math.sqrt((1.0 - odds) / odds)
    return share * (math.expm1(log_odds - 2.0 * epsilon) / root) ** 2


MembershipPublished = published(
    "membership.published",
    MembershipPrivateAdvantage,
    Direction.UPPER,
    """The smaller of equation 9 and of delta + (1 - delta) tanh(epsilon / 2), times the odds if above 1.

    Both are valid upper bounds. The paper calls the second a supremum, but smaller bounds hold.
    """,
    lambda p: published_bound(p.claimed_epsilon, p.claimed_delta, p.odds),
    reference=f"{AUBINAIS}, Remark 8 and Appendix H",
    unless=lambda p: None if p.neighbours == "substitution" else _NO_SUBSTITUTION,
    slack=PRIVATE_ADVANTAGE,
    offset=1e-16,
)


def published_bound(epsilon: float, delta: float, odds: float) -> float:
    r"""Return the smaller of the two published bounds, which may exceed 1.

    $$\max\{1, \gamma\} \min\{(e^\varepsilon - 1 / \gamma)_+ - (1 - 1 / \gamma)_+ + \delta, \;
      \delta + (1 - \delta) \tanh(\varepsilon / 2)\}$$

    Args:
        epsilon: In nats, >= 0.
        delta: In [0, 1].
        odds: Odds gamma of a non-member against a member, > 0.

    Reference:
        arXiv:2310.13786v6, equation 9 and Appendix H.

    Example:
        >>> round(published_bound(1.0, 0.0, 1.0), 5), round(published_bound(0.1, 0.0, 1.0), 5)
        (0.46212, 0.04996)
    """
    gain = math.expm1(epsilon) if odds >= 1.0 else max(0.0, math.exp(epsilon) - 1.0 / odds)
    return max(1.0, odds) * min(gain + delta, delta + (1.0 - delta) * math.tanh(0.5 * epsilon))
