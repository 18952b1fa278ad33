"""Bounds of the privacy profile and its inverse from likelihood-ratio distributions, rounded safely."""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Literal

import numpy as np

from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.kernel import Array
from privcore.numerics.rounding import UNIT

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
    shift, factor = _slack(distribution, epsilon)
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
    shift, factor = _slack(distribution, epsilon)
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


def _slack(distribution: RatioDistribution, epsilon: float) -> tuple[float, float]:
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
