r"""Distributions of a ratio whose two profiles are chords between upper bounds at chosen thresholds.

The mean excess over a level is convex, so the chords between upper bounds are above it, and belong to the
distribution whose masses are the changes of their slopes. It dominates.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array, choose_edges
from privcore.likelihood_ratio.potential import hull, mean_excesses
from privcore.numerics.rounding import SUMMED, UNIT

PILOT = 0.5
"""Width of the cells for the profile from which the thresholds are chosen."""
PILOTS = 24
"""Number of thresholds of this profile in each direction."""
WORTH = 0.002
"""Smallest share of a profile that a block must gain to be used for larger thresholds."""
OFTEN = 4
"""Thresholds from one comparison of a block with single steps to the next."""
DEEP = 1000.0
"""Profiles below this many tails need no block."""


Profile = Callable[[str, float, Resolution], float]
"""Upper bound of a profile by direction, threshold >= 1 and resolution."""


def thresholds_of(profile: Profile, mu: float, tail: float, between: float) -> tuple[Array, Array]:
    """Return thresholds from 1 on at which a profile decides about a distribution, for both directions.

    Args:
        profile: The profile, or one near it.
        mu: Shift of a normal distribution that dominates, too.
        tail: Mean that may be moved to infinity.
        between: Distance of the thresholds, in local standard deviations.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    largest = mu * (0.5 * mu - float(scipy.special.ndtri_exp(math.log(tail))))
    if largest > math.log(LARGEST_RATIO):
        raise LikelihoodRangeError
    first = np.exp(largest * (np.arange(PILOTS + 1) / PILOTS) ** 3)
    pilot = from_profile(profile, (first, first), tail, PILOT)
    positive = pilot.x > 0.0
    edges = choose_edges(pilot.x[positive], pilot.p[positive], between, tail, True, 0.0, 0.0)
    if edges.size < 2 or not edges[0] < 1.0 < edges[-1]:
        raise LikelihoodRangeError
    inner = edges[edges > 1.0], 1.0 / edges[(edges > 0.0) & (edges < 1.0)][::-1]
    removing, adding = (  # the profile itself may reach farther than the one of the pilot
        np.concatenate(([1.0], chosen, first[first > chosen[-1]])) for chosen in inner
    )
    return removing, adding


def from_profile(
    profile: Profile,
    thresholds: tuple[Array, Array],
    tail: float,
    fineness: float,
    sharper: Profile | None = None,
) -> RatioDistribution:
    """Return the distribution whose profiles are chords between upper bounds at some thresholds.

    Args:
        profile: Upper bounds of the profile.
        thresholds: Thresholds from 1 on, for direction remove and for add.
        tail: Mean that may be moved to infinity.
        fineness: Width of the cells of sums.
        sharper: Other upper bounds of the profile, slower and sharper for small thresholds.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    res = Resolution(fineness=fineness, tail=tail)
    found = [
        _points(direction, at.tolist(), profile, sharper, res)
        for direction, at in zip(("remove", "add"), thresholds, strict=True)
    ]
    (over, remove), (under, add) = found
    return from_points((over, remove), (1.0 / under[::-1], (add / under)[::-1]))


def from_points(excess: tuple[Array, Array], shortfall: tuple[Array, Array]) -> RatioDistribution:
    """Return the distribution whose mean excesses and shortfalls are chords between upper bounds.

    Args:
        excess: Levels from 1 on, ascending, and upper bounds of the mean excess of the ratio over them.
        shortfall: Levels up to 1, ascending, and upper bounds of the mean shortfall of the ratio below them.

    Raises:
        LikelihoodRangeError: The bounds are not numbers.
    """
    x, y = hull(*excess)
    z, g = hull(np.append(0.0, shortfall[0]), np.append(0.0, shortfall[1]))
    middle = max(float(y[0]), float(g[-1]))
    while True:  # both halves are convex; at 1, where they meet, the upper bound may be too large
        y[0] = g[-1] = middle
        (x, y), (z, g) = hull(x, y), hull(z, g)
        falls = np.append((y[:-1] - y[1:]) / np.diff(x), 0.0)
        rises = np.append(0.0, np.diff(g) / np.diff(z))
        left, right = 1.0 - z[-2], x[1] - 1.0
        chord = (left * float(y[1]) + right * float(g[-2]) + left * right) / (left + right)
        if rises[-1] + falls[0] <= 1.0 or chord >= middle * (1.0 - SUMMED):
            break
        middle = chord
    at_one = max(0.0, 1.0 - float(rises[-1]) - float(falls[0]))
    masses = np.concatenate((np.diff(rises), [at_one], -np.diff(falls)))
    places = np.concatenate((z[:-1], x))
    return _rounded(places, np.maximum(masses, 0.0), float(y[-1]), (x, y), (z, g))


def _points(
    direction: str, thresholds: list[float], profile: Profile, sharper: Profile | None, res: Resolution
) -> tuple[Array, Array]:
    """Return some of the thresholds, and falling upper bounds of the profile there, until below the tail.

    Single large outputs exceed large thresholds, so the sharper bound gains nothing from some threshold on.
    Where the profile is deep below `DEEP` tails, every second threshold is enough.
    """
    at: list[float] = []
    values: list[float] = []
    deep = DEEP * res.tail if sharper else 0.0
    for number, threshold in enumerate(thresholds):
        if values and values[-1] < deep and number % 2:
            continue
        value = sharper(direction, threshold, res) if sharper else math.inf
        if sharper is None or number % OFTEN == 0:
            single = profile(direction, threshold, res)
            if value > (1.0 - WORTH) * single or value < deep:
                sharper = None
            value = min(value, single)
        at.append(threshold)
        values.append(value)
        if len(values) > 1 and value <= res.tail:
            break
    falling: Array = np.minimum.accumulate(np.minimum(values, 1.0))
    return np.array(at), falling


def _rounded(
    x: Array, p: Array, infinite: float, right: tuple[Array, Array], left: tuple[Array, Array]
) -> RatioDistribution:
    """Return the distribution, with the rounding of its masses in its errors.

    Its own profiles are sums of positive terms. They are compared with the ones from which the masses are
    differences: their quotient is a factor of the masses, at most `SUMMED`. If both profiles at 1 differ, or
    the masses do not add up to 1, so do the means, which changes every profile by at most these differences.
    """
    above, below = x >= 1.0, x <= 1.0
    over = mean_excesses(right[0], p[above], infinite)
    under = np.append(0.0, np.cumsum(np.cumsum(p[below][:-1]) * np.diff(left[0])))
    short = max(float(np.max(right[1] / over)), float(np.max(left[1][1:] / under[1:])))
    if not short <= 1.0 + SUMMED:  # also if a profile is not a number
        raise LikelihoodRangeError
    keep = p > 0.0
    drift = abs(float(over[0] - under[-1])) + 64.0 * UNIT
    return RatioDistribution(
        x=x[keep],
        p=p[keep],
        infinite=infinite,
        mass_error=2.0 * SUMMED,
        value_error=8.0 * UNIT,
        drift_remove=drift,
        drift_add=drift,
    )
