"""Quantities of trade-off curves from likelihood-ratio distributions: rates, and mu with its range.

Every function has an upper form, for a dominating distribution, and a lower form, for a post-processing. For
the smallest false positive rate at a true positive rate it is the other way round: more privacy loss means a
smaller rate.
"""

import numpy as np
import scipy

from privcore.likelihood_ratio.curve import UNDERFLOW, Curve, curve
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.profile import DIRECTIONS, Direction
from privcore.numerics.rounding import NORMAL_QUANTILES, UNIT

SMALLEST_QUANTILE = 1e-300
"""Smallest probability for which the error of normal quantiles is checked."""


def powers_upper(distribution: RatioDistribution, rates: Array, adjacency: str) -> Array:
    """Return upper bounds of the largest true positive rates, rounding included.

    Args:
        distribution: A dominating distribution.
        rates: False positive rates, in [`SMALLEST_RATE`, 1].
        adjacency: "remove" for the null hypothesis without the example, "add" for the one with it, and
            "add-remove" for the larger of both true positive rates.
    """
    curves = [curve(distribution, direction) for direction in DIRECTIONS[adjacency]]
    found = [np.minimum(c.power_upper(rates), _complement(c.miss_lower(1.0 - rates), 2.0)) for c in curves]
    largest: Array = np.max(found, axis=0)
    return largest


def powers_lower(distribution: RatioDistribution, rates: Array, adjacency: str) -> Array:
    """Return lower bounds of the largest true positive rates, rounding included; see `powers_upper`."""
    curves = [curve(distribution, direction) for direction in DIRECTIONS[adjacency]]
    found = [np.maximum(c.power_lower(rates), _complement(c.miss_upper(1.0 - rates), 0.0)) for c in curves]
    largest: Array = np.max([*found, rates], axis=0)  # a test that ignores the outcome has power a
    return largest


def rates_lower(distribution: RatioDistribution, powers: Array, adjacency: str) -> Array:
    """Return lower bounds of the smallest false positive rates at which given powers are reached.

    The roles of the hypotheses are exchanged: this is a false negative rate of the other order.

    Args:
        distribution: A dominating distribution.
        powers: True positive rates, in [`SMALLEST_RATE`, 1].
        adjacency: As for `powers_upper`; "add-remove" gives the smaller of both false positive rates.
    """
    curves = [curve(distribution, _other(direction)) for direction in DIRECTIONS[adjacency]]
    found = [np.maximum(c.miss_lower(powers), _complement(c.power_upper(1.0 - powers), 0.0)) for c in curves]
    smallest: Array = np.min(found, axis=0)
    return smallest


def rates_upper(distribution: RatioDistribution, powers: Array, adjacency: str) -> Array:
    """Return upper bounds of the smallest false positive rates at given powers; see `rates_lower`."""
    curves = [curve(distribution, _other(direction)) for direction in DIRECTIONS[adjacency]]
    found = [np.minimum(c.miss_upper(powers), _complement(c.power_lower(1.0 - powers), 2.0)) for c in curves]
    smallest: Array = np.min([*found, powers], axis=0)
    return smallest


def mu_upper(distribution: RatioDistribution, smallest: float, adjacency: str) -> float:
    r"""Return an upper bound of the largest mu(a) with a in [smallest, 1 - smallest], possibly infinity.

    $\mu(a) = \Phi^{-1}(T(a)) - \Phi^{-1}(a)$ is that of the Gaussian trade-off curve through (a, T(a)).
    Between two vertices T is a chord, and a Gaussian curve that is above both of its ends is above all of it,
    because it is concave. So the vertices and the two ends suffice.

    Args:
        distribution: A dominating distribution.
        smallest: Smallest false positive rate, in [1e-100, 1/2).
        adjacency: As for `powers_upper`; "add-remove" gives the larger mu of both orders.
    """
    return max(_mu_upper(curve(distribution, direction), smallest) for direction in DIRECTIONS[adjacency])


def mu_lower(distribution: RatioDistribution, smallest: float, adjacency: str) -> float:
    """Return a lower bound of the largest mu(a) with a in [smallest, 1 - smallest]; see `mu_upper`.

    Args:
        distribution: A post-processing.
        smallest: Smallest false positive rate, in [1e-100, 1/2).
        adjacency: As for `powers_upper`.
    """
    return max(_mu_lower(curve(distribution, direction), smallest) for direction in DIRECTIONS[adjacency])


def _mu_upper(c: Curve, smallest: float) -> float:
    """Return an upper bound of mu for one order of the hypotheses.

    Up to the false positive rate that equals its false negative rate, T has the better digits; beyond, 1 - T.
    """
    if c.factor == np.inf:
        return np.inf
    balanced = float(np.interp(1.0, c.powers + c.rates, c.rates))
    middle = min(max(balanced, smallest, 4.0 * UNIT), 0.5)
    inside = c.rates[(c.rates > smallest) & (c.rates < middle)]
    rates = np.concatenate(([smallest], inside, [middle]))
    found = _distance(c.power_upper(rates), rates) if middle > smallest else 0.0
    ends = np.array([smallest, 1.0 - middle + UNIT])
    vertices = (c.factor * c.rests + c.other_drift) * (1.0 + 4.0 * UNIT)
    missed = c.lowered() * (1.0 - c.error) - UNDERFLOW
    between = (vertices > ends[0]) & (vertices < ends[1])
    rests = np.concatenate((ends, vertices[between]))
    misses = np.concatenate((c.miss_lower(ends), np.maximum(missed[between], 0.0)))
    largest = max(found, _distance(rests, misses))
    return max(0.0, largest + NORMAL_QUANTILES * (1.0 + abs(largest)))


def _mu_lower(c: Curve, smallest: float) -> float:
    """Return a lower bound of mu for one order of the hypotheses; every rate gives one."""
    if c.factor == np.inf:
        return 0.0
    inside = c.rates[(c.rates > smallest) & (c.rates < 0.5)]
    rates = np.append(inside, smallest)
    powers = c.power_lower(rates)
    vertices = c.rests / (c.factor * (1.0 + 4.0 * c.error)) - c.other_drift
    rests = np.append(vertices[(vertices > smallest) & (vertices < 1.0 - smallest - UNIT)], smallest)
    misses = c.miss_upper(rests)
    seen = powers > SMALLEST_QUANTILE
    largest = max(
        _distance(powers[seen], rates[seen]) if np.any(seen) else 0.0, _distance(rests, misses), 0.0
    )
    return max(0.0, largest * (1.0 - NORMAL_QUANTILES) - NORMAL_QUANTILES)


def _distance(larger: Array, smaller: Array) -> float:
    """Return the largest difference of normal quantiles; infinity if a probability underflows."""
    if np.any(smaller < SMALLEST_QUANTILE):
        return np.inf
    return float(np.max(scipy.special.ndtri(larger) - scipy.special.ndtri(smaller)))


def _complement(probability: Array, towards: float) -> Array:
    """Return 1 - p, rounded towards 0 or 2."""
    return np.clip(np.nextafter(1.0 - probability, towards), 0.0, 1.0)


def _other(direction: Direction) -> Direction:
    return "add" if direction == "remove" else "remove"
