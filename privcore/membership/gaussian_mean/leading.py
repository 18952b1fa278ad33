"""Leading term of the advantage for means of many Gaussian records, and the published bound."""

import math

from privcore.membership.gaussian_mean.gamma_ratio import log_half_ratio, mean_norm
from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.method import Direction
from privcore.numerics.rounding import CLOSED_FORM
from privcore.papers import AUBINAIS
from privcore.published import published

_LARGEST = 0.5
"""Largest leading term that is used as an estimate."""


def leading(coordinates: int, correlation: float) -> float:
    r"""Return $\rho \Gamma((d + 1) / 2) / (\sqrt \pi \Gamma(d / 2))$.

    This is the mean norm of a standard normal vector times $\rho / \sqrt{2 \pi}$.

    Args:
        coordinates: Dimension d, >= 1.
        correlation: Correlation rho of release and record.

    Example:
        >>> round(leading(10, 1.0), 5)
        1.23047
    """
    return correlation * math.exp(log_half_ratio(0.5 * coordinates)) / math.sqrt(math.pi)


def _inaccurate(problem: MembershipMeanAdvantage) -> str | None:
    if problem.odds != 1.0:
        return "At odds other than 1 the advantage falls faster than any power of the correlation."
    if problem.surplus < 1.0 or leading(problem.coordinates, problem.correlation) > _LARGEST:
        return "The correlation of release and record is too large for the leading term to be accurate."
    return None


MembershipLeading = published(
    "membership.leading",
    MembershipMeanAdvantage,
    Direction.ESTIMATE,
    r"""Correlation times $\Gamma((d + 1) / 2) / (\sqrt \pi \Gamma(d / 2))$, for equal odds.""",
    lambda p: leading(p.coordinates, p.correlation),
    reference=f"leading term of {AUBINAIS}, equation 7, for Gaussian records",
    unless=_inaccurate,
    detail=lambda p: f"correlation {p.correlation:.6g}",
)
MembershipProposition = published(
    "membership.proposition",
    MembershipMeanAdvantage,
    Direction.UPPER,
    """Distance of two normal distributions, averaged over a record: d^(1/2) / (2n) + E|z| / (2 n^(1/2)).

    The bound also holds with noise on the release and at odds other than 1: neither raises the advantage.
    """,
    lambda p: (
        0.5 * math.sqrt(p.coordinates) / p.records + 0.5 * mean_norm(p.coordinates) / math.sqrt(p.records)
    ),
    reference=f"{AUBINAIS}, Proposition 25, for at least two records",
    unless=lambda p: None if p.records >= 2 else "The proposition needs at least two records.",
    slack=CLOSED_FORM,
)
