"""Closed form for the mean of Gaussian records with two coordinates."""

import math

from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.method import Direction
from privcore.papers import AUBINAIS
from privcore.published import published

_EPSILON = 2.0**-52


def _ends(problem: MembershipMeanAdvantage) -> tuple[float, float]:
    value, error = two_coordinates_advantage(problem.surplus, problem.odds)
    return value - error, value + error + 1e-300


def _excluded(problem: MembershipMeanAdvantage) -> str | None:
    if problem.coordinates != 2:
        return "The closed form is for two coordinates."
    return None if problem.surplus > 1e-200 else "The release equals the record, or is too close to it."


MembershipPlane = published(
    "membership.plane",
    MembershipMeanAdvantage,
    Direction.ENCLOSURE,
    """Elementary integrals, as the log-likelihood ratio for two coordinates is two-sided exponential.""",
    _ends,
    reference=f"{AUBINAIS}, equation 7, for Gaussian records",
    unless=_excluded,
)


def two_coordinates_advantage(surplus: float, odds: float) -> tuple[float, float]:
    r"""Return the advantage for pairs of correlation $\rho = (1 + q)^{-1/2}$, and a bound of its error.

    With $c = 2 (\ln \gamma + \ln(1 - \rho^2)) / \rho$ it is $\frac{\rho e^{-c/2}}{2 (1 + \rho)}$ if
    $c \ge 0$, otherwise $\frac{\rho e^{c/2}}{2 (1 - \rho)} / \min\{1, \gamma\} - (\gamma - 1)_+$.

    Args:
        surplus: Number q > 0.
        odds: Odds gamma of a non-member against a member, > 0.

    Returns:
        The advantage, in [0, 1] up to the error, and a bound of the rounding error.

    Example:
        >>> round(two_coordinates_advantage(9.0, 1.0)[0], 12)
        0.165714554175
    """
    rho = 1.0 / math.sqrt(1.0 + surplus)
    log_rest = -math.log1p(1.0 / surplus) if surplus >= 1.0 else math.log(surplus) - math.log1p(surplus)
    half_cut = (math.log(odds) + log_rest) / rho
    moved = 8.0 * _EPSILON * (abs(math.log(odds)) + abs(log_rest)) / rho
    if half_cut >= 0.0:
        main, taken = 0.5 * rho / (1.0 + rho) * math.exp(-half_cut), 0.0
    else:
        # 1 - rho is (1 - rho^2) / (1 + rho), without cancellation; it may be as small as the exponential
        main = 0.5 * rho * (1.0 + rho) * math.exp(half_cut - log_rest) / min(1.0, odds)
        taken = max(0.0, odds - 1.0)
    return main - taken, main * (moved + 32.0 * _EPSILON) + 4.0 * _EPSILON * taken
