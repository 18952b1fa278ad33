"""Overfitting: bounds of the security by the shares of training and fresh records that are fitted."""

import math

from privcore.membership.learner.problems import (
    MembershipInterpolationCap,
    MembershipOverfittingSecurity,
    MembershipStoppingSecurity,
)
from privcore.method import Direction
from privcore.numerics.rounding import ERROR_FUNCTION, FEW_OPERATIONS
from privcore.papers import AUBINAIS
from privcore.parameter import SMALLEST_NORMAL
from privcore.published import published

MembershipOverfitting = published(
    "membership.overfitting",
    MembershipOverfittingSecurity,
    Direction.UPPER,
    """Classify a record as a member if its loss is at most the level: max(1, 1 / gamma) (alpha + gamma P).

    alpha is the share of training records above the level, and P that of fresh records up to the level.
    """,
    lambda p: theorem11(p.unfitted_share, p.fresh_share, p.odds),
    reference=f"{AUBINAIS}, Theorem 11",
    slack=FEW_OPERATIONS,
    detail="loss-threshold attack",
    version=2,
)


def theorem11(unfitted_share: float, fresh_share: float, odds: float) -> float:
    r"""Return $\max\{1, 1 / \gamma\} (\alpha + \gamma P)$, which may exceed 1.

    Args:
        unfitted_share: Probability alpha that a training record's loss is above the level.
        fresh_share: Probability P that a fresh record's loss is at most the level.
        odds: Odds gamma of a non-member against a member, > 0.

    Reference:
        arXiv:2310.13786v6, Theorem 11.

    Example:
        >>> round(theorem11(0.05, 0.008, 1.0), 12)
        0.058
    """
    if 0.0 < odds * fresh_share < SMALLEST_NORMAL:  # a subnormal product lacks digits; odds are below 1
        return unfitted_share / odds + fresh_share
    return max(1.0, 1.0 / odds) * (unfitted_share + odds * fresh_share)


MembershipStopping = published(
    "membership.stopping",
    MembershipStoppingSecurity,
    Direction.UPPER,
    """At most a share eta / level of the training losses exceeds the level (Markov); then Theorem 11.""",
    lambda p: theorem11(stopped_share(p.mean_loss, p.loss_level), p.fresh_share, p.odds),
    reference=f"{AUBINAIS}, Proposition 10 and Theorem 11",
    slack=FEW_OPERATIONS,
    detail="loss-threshold attack",
)


def stopped_share(mean_loss: float, loss_level: float) -> float:
    r"""Return $\min\{1, \eta / \varepsilon\}$, the largest share of training losses above the level.

    Args:
        mean_loss: Mean training loss eta at which the training stops, >= 0.
        loss_level: Level epsilon, >= 0.

    Reference:
        arXiv:2310.13786v6, Proposition 10.

    Example:
        >>> stopped_share(5e-8, 1e-6), stopped_share(0.0, 0.0), stopped_share(2.0, 1.0)
        (0.05, 0.0, 1.0)
    """
    if mean_loss == 0.0 or mean_loss >= loss_level:
        return 0.0 if mean_loss == 0.0 else 1.0
    share = mean_loss / loss_level
    return share if share >= SMALLEST_NORMAL else math.nextafter(share, math.inf)


def _both(problem: MembershipOverfittingSecurity) -> tuple[float, float]:
    """Return the bounds by the attack and by its opposite."""
    unfitted, fresh = problem.unfitted_share, problem.fresh_share
    return theorem11(unfitted, fresh, problem.odds), theorem11(1.0 - unfitted, 1.0 - fresh, problem.odds)


def _more_or_less(problem: MembershipOverfittingSecurity) -> str:
    one, other = _both(problem)
    if other < one:
        return "attained by an arc that covers members less often: the attack is reversed"
    return "attained by an arc that covers members more often"


MembershipArcs = published(
    "membership.arcs",
    MembershipOverfittingSecurity,
    Direction.ENCLOSURE,
    """Theorem 11 for the loss-threshold attack and for its opposite; the smaller bound is attained.

    The learner that attains it: one record is uniform on a circle, and the release is an arc whose length is
    the fresh share and that covers the record except with probability the unfitted share. The release then
    reveals only whether the arc covers a record.
    """,
    lambda p: min(1.0, *_both(p)),
    reference=f"{AUBINAIS}, Theorem 11, with our own learner that attains it",
    slack=FEW_OPERATIONS,
    detail=_more_or_less,
)


MembershipConcentration = published(
    "membership.concentration",
    MembershipInterpolationCap,
    Direction.ENCLOSURE,
    """Among intervals of a given length, the centred interval has the largest normal probability.

    The true regression function attains it: 2 Phi(e^(1/2) / s) - 1 for the level e and the noise s.
    """,
    lambda p: math.erf(math.sqrt(0.5 * p.loss_level) / p.noise_deviation),
    reference=f"Levy's concentration function; compare {AUBINAIS}, Theorem 11 and Section 6",
    slack=ERROR_FUNCTION,
    detail="attained by the true regression function",
)
