r"""Bounds of hockey-stick divergences of k-of-t allocation from the moments of its ratio in cells.

**Upper end.** Parabolas above the hinge bound its mean in each cell. In the direction remove, the ratio in a
cell is at most that of a certain number of participations times the probability of the likeliest number,
except if the number is less uncertain than usual. In the direction add, it is rarely small if the sum of
losses is not.

**Lower end.** The divergence of any event of cells is a lower bound.

Both are sums of mass and moments with fixed coefficients, to which the errors of the transforms are added.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.likelihood_ratio import hinges
from privcore.likelihood_ratio.conditional import Conditional, beyond
from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.large_ratios import likeliest
from privcore.likelihood_ratio.losses import PLACES
from privcore.likelihood_ratio.saddle import log_binomial
from privcore.likelihood_ratio.small_ratios import floor
from privcore.numerics.rounding import SUMMED, UNIT

MARGINS = (0.0, *np.geomspace(0.02, 50.0, 30).tolist())
"""Distances of the limit of the sums that are tried for exceptions, in nats over the slope of the tail."""
SHARES = (0.995, 0.99, 0.98, 0.96, 0.93, 0.9, 0.85, 0.8, 0.7, 0.6, 0.45, 0.3, 0.15)
"""Least variances of the number of participations that are tried, relative to that near the threshold."""
RARE = 1e-3
"""Share of the bound that smaller variances may have."""
LEAST_KNOWN = 1e3
"""Mass of a cell relative to its error from which its moments decide about the parabola."""
NEAR = 3.0
"""Distance of cells that may belong to the event of a lower end, in standard deviations, on the far side."""
LARGEST_EXPONENT, IMPOSSIBLE = 600.0, 1e100
"""Logarithm up to which moments of cells are in range, and a product with a coefficient that shows more."""


def upper_remove(cells: Conditional, epsilon: float) -> float:
    """Return an upper bound of E(R - e^epsilon)_+ without the errors of the distribution of one step."""
    choice, epochs = cells.choice, cells.choice.epochs
    binomial = log_binomial(choice.participations, choice.steps, cells.centre.rate)
    slack = PLACES * choice.steps + 64.0 * UNIT * float(scipy.special.gammaln(choice.steps + 2.0))
    start = epsilon + epochs * (
        binomial - slack
    )  # least sum of losses at which the ratio may exceed e^epsilon
    found = _values(cells, cells.loss > start, (epsilon, 0.0, -epsilon))
    likely = cells.loss[cells.loss > start] > start - epochs * math.log(likeliest(cells.centre.variance))
    expected = float(np.sum(np.maximum(found.moments[1] - found.moments[0], 0.0)[:, likely]))
    limit, equal, rare = _limit(cells, epsilon, start, RARE * expected)
    if cells.loss[0] > limit:  # sums below the window might count
        return 1.0
    above = cells.loss[cells.loss > start]
    most = above - equal
    found, most = found.where(above > limit), most[above > limit]
    mass, mean, square = found.moments
    known = (mass > LEAST_KNOWN * found.errors[0]) & found.possible
    limits = np.broadcast_to(np.exp(np.minimum(most, LARGEST_EXPONENT)), mass.shape)
    totals = _bounds(cells, hinges.above(np.where(known, mass, 0.0), mean, square, limits), found)
    infinite = choice.participations * epochs * cells.losses.law.infinite
    return min(1.0, float(totals[-1] if totals.size else 0.0) + rare + beyond(cells, 1, 1.0) + infinite)


def _limit(cells: Conditional, epsilon: float, start: float, enough: float) -> tuple[float, float, float]:
    """Return the limit of the sums that count, an a with R <= e^(epsilon + A - a), and a chance.

    At sums up to the limit, R is at most e^epsilon, except for outputs whose probability under P is at most
    this chance.

    Args:
        cells: Cells of an upper distribution.
        epsilon: Logarithm of the threshold.
        start: Sum of losses at which R = e^epsilon if k participations are certain there.
        enough: Probability that is small enough.
    """
    centre, epochs = cells.centre, cells.choice.epochs
    limit, rare = start, 0.0
    for share in SHARES:
        chance = cells.uncertain.probability(start, share * centre.variance)
        if chance <= enough:
            limit, rare = start - epochs * math.log(likeliest(share * centre.variance)), chance
            break
    largest = cells.means.largest(epsilon)
    for margin in MARGINS:
        near = largest - margin / centre.slope
        if near <= limit:
            break
        chance = cells.means.probability(epsilon, near)
        if chance <= enough:
            return near, start, chance
    return limit, limit, rare


def line_remove(cells: Conditional, epsilon: float) -> tuple[float, float]:
    """Return an event as a and b such that E(R - kappa)_+ >= a - b kappa, nearly equal at e^epsilon.

    The errors of the distribution of one step are not included.
    """
    near = cells.loss > cells.centre.sum - NEAR * cells.centre.deviation
    used, unused = _event(_values(cells, near, (epsilon, 0.0)), gain=1)
    return used, unused * math.exp(-epsilon)


def lower_remove(cells: Conditional, epsilon: float) -> float:
    """Return a lower bound of E(R - e^epsilon)_+ without the errors of the distribution of one step."""
    near = cells.loss > cells.centre.sum - NEAR * cells.centre.deviation
    used, unused = _event(_values(cells, near, (epsilon, 0.0)), gain=1)
    return max(0.0, used - unused)


def upper_add(cells: Conditional, epsilon: float) -> float:
    """Return an upper bound of E(1 - e^epsilon R)_+ without the errors of the distribution of one step."""
    start = cells.choice.epochs * floor(cells.choice, cells.centre) - epsilon
    room = float(cells.loss[-1]) - start  # sums above the window must be beyond the limit
    slopes = {cells.centre.slope, min(1.0, cells.centre.slope)}
    margins = sorted({margin for each in MARGINS for slope in slopes if (margin := each / slope) <= room})
    if not margins:
        return 1.0
    kept = cells.loss <= start + margins[-1]
    found = _values(cells, kept, (0.0, epsilon, 2.0 * epsilon))
    mass, mean, square = found.moments
    known = (mass > LEAST_KNOWN * found.errors[0]) & found.possible
    totals = np.append(0.0, _bounds(cells, hinges.below(mass, np.where(known, mean, 0.0), square), found))
    places = np.searchsorted(cells.loss[kept], start + np.array(margins), side="right")
    rares = [cells.small.probability(epsilon, start + margin) for margin in margins]
    return min(1.0, float(np.min(totals[places] + rares)) + beyond(cells, 0, -1.0))


def lower_add(cells: Conditional, epsilon: float) -> float:
    """Return a lower bound of E(1 - e^epsilon R)_+ without the errors of the distribution of one step."""
    near = cells.loss < cells.centre.sum + NEAR * cells.centre.deviation
    unused, used = _event(_values(cells, near, (0.0, epsilon)), gain=0)
    return max(0.0, unused - used)


def line_add(cells: Conditional, epsilon: float) -> tuple[float, float]:
    """Return an event as a and b such that E(kappa - R)_+ >= b kappa - a, nearly equal at e^-epsilon.

    The errors of the distribution of one step are not included.
    """
    near = cells.loss < cells.centre.sum + NEAR * cells.centre.deviation
    unused, used = _event(_values(cells, near, (0.0, epsilon)), gain=0)
    return used * math.exp(-epsilon), unused


@dataclass(frozen=True)
class Values:
    """Moments of cells, their absolute errors, a relative error of all, and which sums are in range."""

    moments: tuple[Array, ...]
    errors: tuple[Array, ...]
    factors: tuple[Array, ...]
    outside: tuple[float, ...]
    relative: float
    possible: NDArray[np.bool_]

    def where(self, kept: NDArray[np.bool_]) -> "Values":
        """Return the values of some of the sums."""
        return Values(
            tuple(moment[:, kept] for moment in self.moments),
            tuple(error[:, kept] for error in self.errors),
            tuple(factor[kept] for factor in self.factors),
            self.outside,
            self.relative,
            self.possible[kept],
        )


def _values(cells: Conditional, kept: NDArray[np.bool_], powers: tuple[float, ...]) -> Values:
    """Return the moments of the kept cells times exponentials."""
    values, errors, factors, relative = [], [], [], 0.0
    loss, possible = cells.loss[kept], np.ones(int(np.sum(kept)), dtype=bool)
    for moment, power in zip(cells.moments, powers, strict=True):
        exponent = moment.scale - moment.tilt * loss + power
        possible &= exponent < LARGEST_EXPONENT
        factor = np.exp(np.minimum(exponent, LARGEST_EXPONENT))
        factors.append(factor)
        values.append(moment.tilted[:, kept] * factor)
        errors.append(np.broadcast_to(moment.error * factor, values[-1].shape))
        sizes = abs(moment.scale) + float(np.max(np.abs(moment.tilt * loss), initial=0.0)) + abs(power)
        relative = max(relative, moment.relative + 8.0 * UNIT * (sizes + 8.0))
    return Values(
        tuple(values), tuple(errors), tuple(factors), cells.outside[: len(values)], relative, possible
    )


def _bounds(cells: Conditional, parts: hinges.Coefficients, values: Values) -> Array:
    """Return the sums over the cells up to every sum of losses, with the errors of the moments."""
    totals = np.zeros(values.possible.size)
    for part, value, error, moment, outside in zip(
        parts.all, values.moments, values.errors, cells.moments, cells.outside, strict=True
    ):
        sizes = np.abs(part)
        lost = sizes * error
        columns = part * value + values.relative * sizes * np.abs(value) + lost
        beyond_range = ~values.possible & np.any(sizes * value >= IMPOSSIBLE, axis=0)
        totals += np.cumsum(np.where(beyond_range, math.inf, columns.sum(axis=0)))
        totals += outside / moment.error * np.maximum.accumulate(lost.max(axis=0))
    return totals


def _event(found: Values, gain: int) -> tuple[float, float]:
    """Return a lower bound of a moment on the best event, and an upper bound of the other one."""
    gains, losses = found.moments[gain], found.moments[1 - gain]
    relative, errors = found.relative, found.errors
    event = gains - losses > errors[0] + errors[1] + relative * (np.abs(gains) + np.abs(losses))
    event &= found.possible
    least = float(np.sum((gains * (1.0 - relative) - errors[gain])[event])) * (1.0 - SUMMED)
    most = float(np.sum((losses * (1.0 + relative) + errors[1 - gain])[event])) * (1.0 + SUMMED)
    # Mass outside of the window appears in the cells, with the factors there.
    factors = [float(np.max(factor[event.any(axis=0)], initial=0.0)) for factor in found.factors]
    return (
        max(0.0, least - found.outside[gain] * factors[gain]),
        most + found.outside[1 - gain] * factors[1 - gain],
    )
