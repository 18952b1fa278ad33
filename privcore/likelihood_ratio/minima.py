r"""Bounds from below of the minimum of phi: every output that is not rare has a bound among them.

For outputs with the ratios $X_i$, let $\varphi(u) = \sum_i \ln(1 + e^u X_i) - k u$, with the minimum at u*.

* **Near a point u of a grid**: $\varphi'' \le \min(k, t - k)\, e^{|u - u^*|}$ there, so $\varphi(u)$ exceeds
  the minimum by at most a gap.
* **Beyond the ends**: $\varphi \ge \sum \max(\ln X_i + u', 0) - k u'$ for all $u \ge u'$ if at most t - k of
  the ratios are below $e^{-u'}$, and for all $u \le u'$ if at most k are above. Outputs for which neither
  holds are rare. Always, $\varphi \ge -k u'$ for $u \le u'$.

If more than t - k ratios are tiny, so is R, and negative powers of it have large means although this is rare.
For other outputs, $\tau\,(t - k - n)$ with the number n of tiny ratios is not negative, and may be subtracted
from $\varphi$ before the mean is taken.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.losses import PLACES
from privcore.likelihood_ratio.saddle import Saddle
from privcore.likelihood_ratio.tilted import Participation
from privcore.numerics.rounding import SUMMED, UNIT

GAP, GAP_OF_EPOCHS = 0.02, 0.25
"""Largest difference of phi at its minimum and at the nearest point, for one epoch and for more,"""
STEEP = 0.2
"""and for one epoch this number over the slope of the tail."""
REACH, DEVIATIONS = 30.0, 60.0
"""Half of the range of u: at most the first, and the second over the root of the variance."""
PAST = 3.0
"""Distance of the last point of the grid from the logarithm of the least ratio that is not tiny."""
NEGLIGIBLE = 14.0
"""Negative logarithm of a share of delta that may be added to a bound,"""
NEARLY_NEGLIGIBLE = 7.0
"""and that may be added if the former would need a lattice without tiny ratios."""
TILTS = np.geomspace(0.01, 1e6, 96)
"""Tilts of the expected number of participations that are tried."""
ROUGH = 1e-9
"""Relative error that covers the rounding of a divergence."""


@dataclass(frozen=True)
class Floor:
    r"""A bound $\varphi(u^*) \ge \sum_i l_i - c$.

    Attributes:
        least: The term l for every point of the lattice of one step.
        less: The constant c.
        odds: The logarithm u of the odds of a rate near which the bound is tight.
    """

    least: Array
    less: float
    odds: float


@dataclass(frozen=True)
class Minima:
    """Bounds: every output that is not rare has a bound among them.

    Attributes:
        floors: The bounds.
        missed: Bound of the probability of these outputs under Q, in one epoch.
    """

    floors: list[Floor]
    missed: float


def minima(p: Array, x: Array, choice: Participation, centre: Saddle) -> Minima:
    """Return bounds of the minimum of phi; every output that is not rare has a bound among them.

    Args:
        p: Masses of the ratios of one step, shape (n,).
        x: The ratios, ascending.
        choice: Steps of an epoch and epochs; 1 < k < t.
        centre: Sums near the threshold of the direction add.
    """
    k, others = choice.participations, choice.steps - choice.participations
    apart, odds = apart_of(choice, centre), math.log(centre.rate / (1.0 - centre.rate))
    below, above = (_end(p, x, choice, centre, odds, side * apart) for side in (-1.0, 1.0))
    floors = [end.floor for end in (below, above) if end.floor is not None]
    for u in odds + apart * np.arange(-below.count, above.count + 1.0):
        credit = max(0.0, u + math.log(above.tiny)) if above.tiny else 0.0
        least = np.log1p(math.exp(u) * x) + credit * (x < above.tiny)
        floors.append(Floor(least, k * u + others * credit, float(u)))
    missed = math.exp(min(0.0, below.missed)) + math.exp(min(0.0, above.missed))
    return Minima(floors, missed * (1.0 + SUMMED))


def gap_of(choice: Participation, centre: Saddle) -> float:
    """Return a bound of the difference of phi at its minimum and at the nearest point."""
    half = 0.5 * apart_of(choice, centre)
    return 0.5 * min(choice.participations, choice.steps - choice.participations) * math.exp(half) * half**2


def apart_of(choice: Participation, centre: Saddle) -> float:
    """Return the distance of two points of the grid of u."""
    gap = min(GAP, STEEP / centre.slope) if choice.epochs == 1 else GAP_OF_EPOCHS
    fewer = min(choice.participations, choice.steps - choice.participations)
    return math.sqrt(8.0 * gap / fewer)


@dataclass(frozen=True)
class _End:
    """End of the grid on one side.

    Attributes:
        count: Number of points of the grid on this side.
        missed: Logarithm of a bound of the probability of minima beyond the end for which nothing is known.
        floor: Bound of the other minima beyond the end; None if there are none.
        tiny: Ratios below this one count as tiny.
    """

    count: int
    missed: float
    floor: Floor | None = None
    tiny: float = 0.0


def _end(p: Array, x: Array, choice: Participation, centre: Saddle, odds: float, apart: float) -> _End:
    """Return the end above the odds, or below them if the distance of two points is negative."""
    t, k, side = choice.steps, choice.participations, -math.copysign(1.0, apart)
    most = math.ceil(min(REACH, DEVIATIONS / math.sqrt(centre.variance)) / abs(apart))
    count = 1
    while True:
        u = odds + apart * (count + 0.5)
        # A minimum is below u if more than k participations are expected there, and above if fewer are.
        exponents = side * np.multiply.outer(TILTS, x / (x + math.exp(-u)) - k / t) + np.log(p)
        logs = scipy.special.logsumexp(exponents, axis=1) + (64.0 * UNIT + PLACES) * (TILTS + 64.0)
        missed = t * float(np.min(logs))
        if missed < centre.log_delta - NEGLIGIBLE:
            return _End(count, missed)
        if count >= most:
            break
        count = min(most, math.ceil(1.3 * count))
    if side > 0.0:
        return _End(count, -math.inf, Floor(np.zeros_like(x), k * u, u))
    masses = np.minimum(np.cumsum(p) * (1.0 + SUMMED), 1.0)
    rare = [_log_tail(t, t - k + 1, float(mass)) for mass in masses]
    place = int(np.searchsorted(rare, centre.log_delta - NEARLY_NEGLIGIBLE))
    place = min(max(place, 1), x.size - 1)
    tiny = float(x[place])
    edge = -math.log(tiny)
    count = max(1, min(most, math.ceil((edge + PAST - odds) / apart)))
    floor = Floor(np.log(np.maximum(x / tiny, 1.0)), k * edge, edge)
    return _End(count, rare[place - 1], floor, tiny)


def _log_tail(trials: int, least: int, rate: float) -> float:
    """Return the logarithm of a bound of the probability of at least `least` successes of all trials."""
    share = least / trials
    if not 0.0 < rate < share:
        return -math.inf if rate == 0.0 else 0.0
    other = (1.0 - share) * math.log((1.0 - rate) / (1.0 - share)) if share < 1.0 else 0.0
    return trials * (share * math.log(rate / share) + other) * (1.0 - ROUGH)
