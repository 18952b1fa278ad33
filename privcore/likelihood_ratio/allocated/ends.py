r"""Bounds of hockey-stick divergences from the mass and two moments of the ratio in every cell.

Let y be the ratio relative to the threshold. The mean of a parabola that lies above the hinge $(y - 1)_+$ is
a bound of the mean of the hinge, for every distribution of y in the cell, and this mean is a sum of the mass
and of two moments with fixed coefficients. So any choice of the parabola is valid, and errors of the moments
are multiplied by its coefficients. The choice here is the best one for the given mean and variance.

The moments are those of an upper distribution, whose steps are spread to a lattice of losses, or of a lower
one, whose losses are rounded.

**Upper end.** Parabolas above the hinge bound its mean in each cell. In the direction remove, the ratio in a
cell is at most that of a certain number of participations times the probability of the likeliest number,
except if the number is less uncertain than usual. In the direction add, it is rarely small if the sum of
losses is not.

**Lower end.** The divergence of any event of cells is a lower bound.

Both are sums of mass and moments with fixed coefficients, to which the errors of the transforms are added.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.likelihood_ratio.allocated.losses import (
    PLACES,
    Circle,
    Losses,
    Participation,
    Sums,
    log_total,
    sums,
)
from privcore.likelihood_ratio.allocated.saddle import Saddle, log_binomial
from privcore.likelihood_ratio.allocated.tails import (
    FewUncertain,
    LargeMeans,
    SmallRatios,
    few_uncertain,
    floor,
    large_means,
    likeliest,
    small_ratios,
)
from privcore.likelihood_ratio.grid import Array
from privcore.numerics.rounding import SUMMED, UNIT

LARGEST = 1e100
"""Largest second moment relative to the mass for which a parabola is computed."""
NARROWEST = 1e-4
"""Least distance of the vertex of a parabola from the threshold, relative to the threshold."""


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """Coefficients of the mass, the mean and the second moment of y in every cell."""

    mass: Array
    mean: Array
    square: Array

    @property
    def all(self) -> tuple[Array, Array, Array]:
        """The coefficients in the order of the moments."""
        return self.mass, self.mean, self.square


def parabolas_above(mass: Array, mean: Array, square: Array, most: Array) -> Coefficients:
    r"""Return coefficients whose sum bounds the mean of $(y - 1)_+$ in every cell.

    Args:
        mass: Approximate masses of the cells.
        mean: Approximate means of y on the cells, times their masses.
        square: Approximate means of y^2 on the cells, times their masses.
        most: Largest y in each cell; where it is at most 1, all coefficients are 0.

    Example:
        >>> cell = [np.array([value]) for value in (1.0, 0.5, 0.26)]
        >>> parts = parabolas_above(*cell, most=np.array([np.inf])).all
        >>> bound = sum(a * b for a, b in zip(parts, cell, strict=True))
        >>> float(bound[0].round(6)), round((0.26**0.5 - 0.5) / 2, 6)  # (sqrt(v + (1 - m)^2) - (1 - m)) / 2
        (0.004951, 0.004951)
    """
    known = (mass > 0.0) & (mean > 0.0) & (square > 0.0) & (square / LARGEST < mass)
    m = np.where(known, mean, 0.0) / np.where(known, mass, 1.0)
    second = np.where(known, square, 1.0) / np.where(known, mass, 1.0)
    variance = np.maximum(second - m * m, 0.0)
    far = np.maximum(np.sqrt(variance + (1.0 - m) ** 2), NARROWEST)
    # A parabola that touches the axis at 1 - far and the line y - 1 at 1 + far
    vertex, factor = 1.0 - far, 0.25 / far
    # ... or meets the line at the largest y, if it would touch the line beyond
    short = (1.0 + far > most) & (m < most)
    room = np.where(short, most - m, 1.0)
    ended = np.minimum(m - variance / room, 2.0 - np.where(short, most, 1.0))
    ended_factor = (np.where(short, most, 1.0) - 1.0) / np.maximum(
        np.where(short, most, 2.0) - ended, 1e-300
    ) ** 2
    vertex, factor = np.where(short, ended, vertex), np.where(short, ended_factor, factor)
    alpha, beta, gamma = factor * vertex**2, -2.0 * factor * vertex, factor
    # ... or a parabola through the origin, since y >= 0
    touch = np.maximum(2.0, second / np.where(known, m, 1.0))
    low = known & (vertex < 0.0) & ~short
    alpha, beta, gamma = (
        np.where(low, other, one)
        for one, other in ((alpha, 0.0), (beta, 1.0 - 2.0 / touch), (gamma, touch**-2.0))
    )
    # ... or y itself, where nothing is known
    value = alpha * mass + beta * mean + gamma * square
    plain = ~known | ~(value < mean)
    possible = most > 1.0
    return Coefficients(
        mass=np.where(possible & ~plain, alpha, 0.0),
        mean=np.where(possible, np.where(plain, 1.0, beta), 0.0),
        square=np.where(possible & ~plain, gamma, 0.0),
    )


def parabolas_below(mass: Array, mean: Array, square: Array) -> Coefficients:
    r"""Return coefficients whose sum bounds the mean of $(1 - y)_+$ in every cell.

    Args:
        mass: Approximate masses of the cells.
        mean: Approximate means of y on the cells, times their masses.
        square: Approximate means of y^2 on the cells, times their masses.
    """
    known = (mass > 0.0) & (mean > 0.0) & (square > 0.0) & (square / LARGEST < mass)
    m = np.where(known, mean, 0.0) / np.where(known, mass, 1.0)
    second = np.where(known, square, 1.0) / np.where(known, mass, 1.0)
    far = np.maximum(np.sqrt(np.maximum(second - m * m, 0.0) + (1.0 - m) ** 2), NARROWEST)
    vertex, factor = 1.0 + far, 0.25 / far
    alpha, beta, gamma = factor * vertex**2, -2.0 * factor * vertex, factor
    # ... or a parabola through (0, 1) that touches the axis, since y >= 0
    touch = np.maximum(2.0, second / np.where(known, m, 1.0))
    low = known & (far > 1.0)
    alpha, beta, gamma = (
        np.where(low, other, one) for one, other in ((alpha, 1.0), (beta, -2.0 / touch), (gamma, touch**-2.0))
    )
    plain = ~known | ~(alpha * mass + beta * mean + gamma * square < mass)
    return Coefficients(
        mass=np.where(plain, 1.0, alpha),
        mean=np.where(plain, 0.0, beta),
        square=np.where(plain, 0.0, gamma),
    )


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
    totals = _bounds(cells, parabolas_above(np.where(known, mass, 0.0), mean, square, limits), found)
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
    totals = np.append(0.0, _bounds(cells, parabolas_below(mass, np.where(known, mean, 0.0), square), found))
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


def _bounds(cells: Conditional, parts: Coefficients, values: Values) -> Array:
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
