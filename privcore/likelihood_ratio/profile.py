r"""Privacy profiles and trade-off curves from likelihood-ratio distributions, with ends rounded outwards.

A test of a null hypothesis N against an alternative M has a false positive rate a = N(A) and a true positive
rate M(A). By the lemma of Neyman and Pearson the largest true positive rate is

$$T(a) = \inf_{\kappa \ge 0} \big(\kappa a + H_\kappa(M \| N)\big),$$

so it rises with every privacy profile: a dominating distribution bounds it from above, a post-processing from
below. For a discrete distribution T is the broken line through the sums of the masses under N and M, in order
of falling likelihood ratio. The smallest false negative rate 1 - T is the broken line through the sums in the
opposite order; each of the two has the digits that the other loses to cancellation.

Every function has an upper form, for a dominating distribution, and a lower form, for a post-processing. For
the smallest false positive rate at a true positive rate it is the other way round: more privacy loss means a
smaller rate.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.grid import Array
from privcore.numerics.rounding import NORMAL_QUANTILES, UNIT

Direction = Literal["remove", "add"]
DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "remove": ("remove",),
    "add": ("add",),
    "add-remove": ("remove", "add"),
    "zero-out-remove": ("remove",),
    "zero-out-add": ("add",),
}
DIRECTIONS |= dict.fromkeys(("zero-out", "replace-one"), DIRECTIONS["add-remove"])

LARGEST_EPSILON = 600.0
"""Largest epsilon of bounds from a distribution; e^epsilon must be in the range of doubles."""


def delta_upper(distribution: RatioDistribution, epsilon: float, adjacency: str) -> float:
    """Return an upper bound of delta for every pair that the distribution dominates, rounding included."""
    shift, factor = slack(distribution, epsilon)
    if factor == math.inf:  # rounding errors exceed the masses
        return 1.0
    return min(
        1.0,
        max(
            factor * _delta(distribution, epsilon - shift, d) + _drift(distribution, d)
            for d in DIRECTIONS[adjacency]
        ),
    )


def delta_lower(distribution: RatioDistribution, epsilon: float, adjacency: str) -> float:
    """Return a lower bound of delta of every pair with this post-processing, rounding included."""
    shift, factor = slack(distribution, epsilon)
    return max(
        0.0,
        *(
            _delta(distribution, epsilon + shift, d) / factor - _drift(distribution, d)
            for d in DIRECTIONS[adjacency]
        ),
    )


def epsilon_upper(distribution: RatioDistribution, delta: float, adjacency: str) -> float:
    """Return an upper bound of the smallest epsilon >= 0 with profile at most delta, possibly infinity."""
    epsilon = max(0.0, *(_epsilon(distribution, delta, d) for d in DIRECTIONS[adjacency]))
    return _first(
        _away_from(epsilon, 1.0), lambda e: delta_upper(distribution, e, adjacency) <= delta, math.inf
    )


def epsilon_lower(distribution: RatioDistribution, delta: float, adjacency: str) -> float:
    """Return a lower bound of the smallest epsilon >= 0 with profile at most delta."""
    epsilon = max(
        0.0, *(min(_epsilon(distribution, delta, d), LARGEST_EPSILON) for d in DIRECTIONS[adjacency])
    )
    return _first(_away_from(epsilon, -1.0), lambda e: delta_lower(distribution, e, adjacency) > delta, 0.0)


def _away_from(epsilon: float, side: float) -> list[float]:
    """Return epsilon and points at growing distances from it on one side, within (0, `LARGEST_EPSILON`]."""
    found, step = [], 1e-15
    while 0.0 < epsilon <= LARGEST_EPSILON or (epsilon == 0.0 and side > 0.0):
        found.append(epsilon)
        epsilon += side * step * max(1e-3, epsilon)
        step *= 2.0
    return found


def _first(candidates: list[float], holds: Callable[[float], bool], otherwise: float) -> float:
    """Return the first candidate for which a monotone predicate holds, or `otherwise`."""
    at = bisect_left(candidates, True, key=holds)
    return candidates[at] if at < len(candidates) else otherwise


def slack(distribution: RatioDistribution, epsilon: float) -> tuple[float, float]:
    """Return the shift of epsilon and the factor on delta that cover all rounding, also in this module."""
    shift = distribution.value_error + 8.0 * UNIT * (2.0 + abs(epsilon))
    error = distribution.mass_error + shift + 4.0 * (distribution.x.size + 4) * UNIT
    return shift, math.exp(error) if error < 1.0 else math.inf


def _delta(distribution: RatioDistribution, epsilon: float, direction: Direction) -> float:
    """Return E_Q[(X - e^epsilon)_+] plus the mean at infinity, or E_Q[(1 - e^epsilon X)_+]."""
    if direction == "remove":
        return (
            float(
                distribution.p @ (distribution.x * -np.expm1(np.minimum(epsilon - _log(distribution.x), 0.0)))
            )
            + distribution.infinite
        )
    return float(distribution.p @ -np.expm1(np.minimum(epsilon + _log(distribution.x), 0.0)))


def _drift(distribution: RatioDistribution, direction: Direction) -> float:
    return distribution.drift_remove if direction == "remove" else distribution.drift_add


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)


def _epsilon(distribution: RatioDistribution, delta: float, direction: Direction) -> float:
    """Return the epsilon, real or infinite, at which the profile of the distribution equals delta.

    The profile is piecewise linear in e^epsilon (remove) or e^-epsilon (add), so a search and a division
    suffice. Errors by rounding are not covered.
    """
    x, p = distribution.x, distribution.p
    if direction == "remove":
        target = delta - distribution.infinite
        if target <= 0.0:
            return math.inf
        above = np.cumsum(p[::-1])[::-1]
        price = np.append(np.cumsum((above[1:] * np.diff(x))[::-1])[::-1], 0.0)  # E(X - x_k)_+
        k = int(np.argmax(price <= target))
        kappa = float(x[k] - (target - price[k]) / above[k])
        return math.log(kappa) if kappa > 0.0 else -math.inf
    below = np.cumsum(p)
    put = np.append(0.0, np.cumsum(below[:-1] * np.diff(x)))  # E(x_k - X)_+
    with np.errstate(divide="ignore", invalid="ignore"):
        profile = np.where(x > 0.0, put / x, p[0] if x[0] == 0.0 else 0.0)
    k = int(np.searchsorted(profile, delta, side="right")) - 1
    if k < 0:
        return math.inf
    room = float(below[k] - delta)
    y = float(x[k] + (delta * x[k] - put[k]) / room) if room > 0.0 else math.inf
    return -math.log(y) if y > 0.0 else math.inf


SMALLEST_RATE = 1e-250
"""Smallest rate at which curves are read, far above products of a mass and a ratio that underflow."""
NEGLIGIBLE = 1e-290
"""Outcomes with a smaller mass under the null hypothesis count as impossible under it."""
UNDERFLOW = 1e-280
"""More than the sum of all masses below `NEGLIGIBLE`, and of the errors of products that underflow."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    r"""Trade-off curve of a discrete distribution in one order of the hypotheses, with all of its errors.

    With F the `factor`, B the broken line of `powers` and C that of `misses`, the errors of profiles give

    $$B(a) / F - d \le T(a) \le F B(a) + d, \quad C((r - d') / F) \le 1 - T(1 - r) \le C(F (r + d')).$$

    The first and the last inequality hold for a post-processing, the others for a dominating distribution.
    The sums err by the relative `error`. The methods below move the broken lines through the computed sums
    outward, and say why this suffices.

    Attributes:
        rates: Masses under the null hypothesis of the k outcomes with the largest ratios, k = 0, 1, ...
        powers: Masses of the same outcomes under the alternative.
        rests: Masses under the null hypothesis of the k outcomes with the smallest ratios, k = 0, 1, ...
        misses: Masses of the same outcomes under the alternative.
        slopes: Ratio of the next outcome, for every element of `rests`.
        error: Relative error of sums, interpolations and their inputs.
        factor: Factor by which masses and values together may err.
        drift: Error d of the profile of the alternative against the null hypothesis.
        other_drift: Error d' of the profile of the null hypothesis against the alternative.
    """

    rates: Array
    powers: Array
    rests: Array
    misses: Array
    slopes: Array
    error: float
    factor: float
    drift: float
    other_drift: float

    def power_upper(self, rates: Array) -> Array:
        """Return upper bounds of the true positive rates at false positive rates.

        Every piece of B, extended to a line, lies above B; at a computed sum it errs by the relative error.
        """
        if self.factor == np.inf:
            return np.ones_like(rates)
        found = np.interp(rates, self.rates, self.powers) * (1.0 + 4.0 * self.error)
        return np.minimum(self.factor * found + (self.drift + UNDERFLOW), 1.0)

    def power_lower(self, rates: Array) -> Array:
        """Return lower bounds of the true positive rates at false positive rates.

        B is concave, so the points (sum, B) moved to the right by the relative error have chords below B.
        """
        if self.factor == np.inf:
            return np.zeros_like(rates)
        inner = rates * (1.0 - 4.0 * self.error) - UNDERFLOW
        found = np.interp(inner, self.rates, self.powers, left=0.0) * (1.0 - 4.0 * self.error)
        return np.maximum(found / self.factor - (self.drift + UNDERFLOW), 0.0)

    def miss_lower(self, rests: Array) -> Array:
        """Return lower bounds of the false negative rates at false positive rates 1 - rests."""
        if self.factor == np.inf:
            return np.zeros_like(rests)
        found = np.interp((rests - self.other_drift) / self.factor, self.rests, self.lowered())
        return np.where(
            rests > self.other_drift, np.maximum(found * (1.0 - self.error) - UNDERFLOW, 0.0), 0.0
        )

    def miss_upper(self, rests: Array) -> Array:
        """Return upper bounds of the false negative rates at false positive rates 1 - rests.

        C is convex, so the points (sum, C) moved to the left by the relative error have chords above C.
        """
        if self.factor == np.inf:
            return np.ones_like(rests)
        outer = self.factor * (rests + self.other_drift) * (1.0 + 4.0 * self.error)
        found = np.interp(outer, self.rests, self.misses, right=np.inf)
        return np.minimum(found * (1.0 + 4.0 * self.error) + UNDERFLOW, 1.0)

    def lowered(self) -> Array:
        """Return the values of C at `rests`, lowered until chords between them are below C.

        Every piece of C, extended to a line, lies below C. At a computed sum r it errs by at most the
        relative error of C plus that of r times the slope.
        """
        return self.misses - self.error * (self.misses + 2.0 * self.slopes * self.rests)


def outcomes(
    distribution: RatioDistribution, direction: Direction
) -> tuple[Array, Array, float, tuple[float, float]]:
    """Return the outcomes of a distribution in falling order of the ratio, in one order of the hypotheses.

    Args:
        distribution: Distribution of the ratio dP/dQ under Q.
        direction: As for `curve`.

    Returns:
        Masses under the null hypothesis and under the alternative, the mass under the alternative of the
        outcomes that are impossible under the null hypothesis, and the drifts of both orders.
    """
    product = distribution.p * distribution.x
    if direction == "remove":
        null, alternative, start = distribution.p[::-1], product[::-1], distribution.infinite
        drifts = distribution.drift_remove, distribution.drift_add
    else:  # the outcomes with infinite ratio come last; those with ratio 0 first, at no mass under P
        null = np.append(product, distribution.infinite)
        alternative, start = np.append(distribution.p, 0.0), 0.0
        drifts = distribution.drift_add, distribution.drift_remove
    keep = null > NEGLIGIBLE
    start += float(np.sum(alternative[~keep]))
    return null[keep], alternative[keep], start, drifts


def curve(distribution: RatioDistribution, direction: Direction) -> Curve:
    """Return the trade-off curve of a distribution in one order of the hypotheses.

    Args:
        distribution: Distribution of the ratio dP/dQ under Q.
        direction: "remove" for the null hypothesis Q (without the example) against P (with it), "add" for the
            null hypothesis P against Q.
    """
    null, alternative, start, drifts = outcomes(distribution, direction)
    # a sum of n terms errs by n - 1 roundings, a product by one, and an interpolation by six
    error = 2.0 * (null.size + 16) * UNIT
    exponent = distribution.mass_error + distribution.value_error + 16.0 * UNIT
    slopes = (alternative / null)[::-1]
    return Curve(
        rates=np.append(0.0, np.cumsum(null)),
        powers=np.cumsum(np.append(start, alternative)),
        rests=np.append(0.0, np.cumsum(null[::-1])),
        misses=np.append(0.0, np.cumsum(alternative[::-1])),
        slopes=np.append(slopes, slopes[-1:]),
        error=error,
        factor=float(np.exp(exponent)) if exponent < 1.0 else np.inf,
        drift=drifts[0],
        other_drift=drifts[1],
    )


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
