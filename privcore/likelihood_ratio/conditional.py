"""Mass and moments of the ratio of k out of t in cells: at sums of losses, and places of its participations.

The moments are those of an upper distribution, whose steps are spread to a lattice of losses, or of a lower
one, whose losses are rounded.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.large_ratios import FewUncertain, LargeMeans, few_uncertain, large_means
from privcore.likelihood_ratio.losses import Losses
from privcore.likelihood_ratio.saddle import Saddle
from privcore.likelihood_ratio.small_ratios import SmallRatios, small_ratios
from privcore.likelihood_ratio.tilted import Circle, Participation, Sums, log_total, sums

TURN = 8.0
"""Circumference of the places, in standard deviations of the expected number of participations at a sum."""
WIDE = 7.0
"""Half of the window in standard deviations of the tilted sums; it is doubled while too much lies outside."""
OUTSIDE = 1e-9
"""Tilted mass that may lie outside of the window."""
REACHES = np.geomspace(0.02, 8.0, 24)
"""Differences of tilts that are tried for a tail, relative to that of a normal distribution."""
STEEPEST = 1e5
ROUGH = 1e-6
"""Added to the logarithm of a bound of a tail for its rounding."""
MOST_CELLS = 2**21


@dataclass(frozen=True, kw_only=True)
class Conditional:
    """Moments of the ratio in all cells, near a threshold.

    Attributes:
        losses: Losses of one step.
        choice: Steps of an epoch and epochs.
        centre: Sums near the threshold.
        moments: The moments of the ratio, two for a lower and three for an upper end.
        loss: Sum of losses A of every cell, shape (sums,).
        outside: For each moment, a bound of the tilted mass whose sum is outside of the window.
    """

    losses: Losses
    choice: Participation
    centre: Saddle
    moments: tuple[Sums, ...]
    loss: Array
    outside: tuple[float, ...]

    @cached_property
    def uncertain(self) -> FewUncertain:
        """Probabilities that the variance of the number of participations is small."""
        return few_uncertain(self.losses, self.choice, self.centre)

    @cached_property
    def means(self) -> LargeMeans:
        """Probabilities that the ratio is large although the sum of losses is small."""
        return large_means(self.losses, self.choice, self.centre)

    @cached_property
    def small(self) -> SmallRatios:
        """Probabilities that the ratio is small although the sum of losses is not."""
        return small_ratios(self.losses, self.choice, self.centre)


def conditional(losses: Losses, choice: Participation, centre: Saddle, degree: int) -> Conditional | None:
    """Return the moments in all cells near a threshold; None if there are too many cells.

    Args:
        losses: Losses of one step, at the rate of `centre`.
        choice: Steps of an epoch and epochs; 1 < k < t.
        centre: Sums near the threshold.
        degree: Degree of the places of the expected number of participations, 0 for one place.
    """
    count = len(losses.moments)
    tilts = [_tilt(losses, moment, choice, centre.sum) for moment in range(count)]
    half = WIDE * centre.deviation
    while True:
        size = 2 ** max(4, math.ceil(math.log2(2.0 * half / losses.spacing)))
        if size * (2 * degree + 2) > MOST_CELLS:
            return None
        first = round(centre.sum / losses.spacing) - size // 2
        ends = (first - 0.5) * losses.spacing, (first + size - 0.5) * losses.spacing
        outside = tuple(
            sum(
                math.exp(min(0.0, _log_tail(losses, moment, choice, centre, tilt, end, side)))
                for end, side in zip(ends, (-1.0, 1.0), strict=True)
            )
            for moment, tilt in enumerate(tilts)
        )
        if max(outside) <= OUTSIDE:
            break
        half *= 1.4
    circle = Circle(degree=degree, circumference=TURN * max(centre.spread, 1e-6))
    moments = tuple(
        sums(losses, moment, choice, tilt=tilt, first=first, size=size, circle=circle)
        for moment, tilt in enumerate(tilts)
    )
    return Conditional(
        losses=losses,
        choice=choice,
        centre=centre,
        moments=moments,
        loss=losses.spacing * (first + np.arange(size)),
        outside=outside,
    )


def _tilt(losses: Losses, moment: int, choice: Participation, wanted: float) -> float:
    """Return the tilt at which the mean of the sums is as wanted."""

    def excess(tilt: float) -> float:
        return log_total(losses, moment, choice, tilt)[1] - wanted

    low, high = -1.0, 1.0
    while excess(low) > 0.0 and low > -STEEPEST:
        low *= 1.6
    while excess(high) < 0.0 and high < STEEPEST:
        high *= 1.6
    if excess(low) > 0.0 or excess(high) < 0.0:
        return 0.0
    return float(scipy.optimize.brentq(excess, low, high, xtol=1e-3))


def _log_tail(
    losses: Losses, moment: int, choice: Participation, centre: Saddle, tilt: float, end: float, side: float
) -> float:
    """Return the logarithm of a bound of the tilted mass of a tail, by Chernoff's inequality."""
    extreme = choice.steps * choice.epochs * losses.spacing * int(losses.index[-1 if side > 0.0 else 0])
    if side * (end - extreme) >= 0.0:
        return -math.inf
    total = log_total(losses, moment, choice, tilt)[0]
    reach = abs(end - centre.sum) / centre.deviation**2
    logs = [
        log_total(losses, moment, choice, tilt + side * more)[0] - total - side * more * end
        for more in (reach * REACHES).tolist()
    ]
    return float(min(logs)) + ROUGH


def beyond(cells: Conditional, moment: int, side: float) -> float:
    """Return a bound of a moment over the sums beyond an end of the window, by Chernoff's inequality."""
    choice, losses = cells.choice, cells.losses
    end = float(cells.loss[-1 if side > 0.0 else 0]) + 0.5 * side * losses.spacing
    extreme = choice.steps * choice.epochs * losses.spacing * int(losses.index[-1 if side > 0.0 else 0])
    if side * (end - extreme) >= 0.0:
        return 0.0
    reach = abs(end - cells.centre.sum) / cells.centre.deviation**2
    tilts = cells.moments[moment].tilt + side * reach * REACHES
    logs = [log_total(losses, moment, choice, tilt)[0] - tilt * end for tilt in tilts if tilt * side > 0.0]
    return math.exp(min(0.0, *logs, 0.0) + ROUGH)
