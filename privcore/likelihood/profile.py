"""Read the privacy profile, and its inverse, off the laws of a likelihood ratio, on the safe side."""

import math
from typing import Literal

import numpy as np

from privcore.likelihood.kernel import Array
from privcore.likelihood.law import ROUNDING, Law

Direction = Literal["remove", "add"]
DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "remove": ("remove",),
    "add": ("add",),
    "add-remove": ("remove", "add"),
}


def delta_upper(law: Law, epsilon: float, adjacency: str) -> float:
    """Return an upper bound of delta for every pair that the law dominates, rounding included."""
    shift, factor = _slack(law, epsilon)
    delta = factor * max(_delta(law, epsilon - shift, d) for d in DIRECTIONS[adjacency])
    return min(1.0, delta + max(1.0, _exp(epsilon)) * law.drift)


def delta_lower(law: Law, epsilon: float, adjacency: str) -> float:
    """Return a lower bound of delta for every pair of which the law is a garbling, rounding included."""
    shift, factor = _slack(law, epsilon)
    delta = max(_delta(law, epsilon + shift, d) for d in DIRECTIONS[adjacency]) / factor
    return max(0.0, delta - max(1.0, _exp(epsilon)) * law.drift)


def epsilon_upper(law: Law, delta: float, adjacency: str) -> float:
    """Return an upper bound of the smallest epsilon >= 0 with profile at most delta; maybe infinity."""
    epsilon = max(0.0, *(_epsilon(law, delta, d) for d in DIRECTIONS[adjacency]))
    step = 1e-15
    while math.isfinite(epsilon) and delta_upper(law, epsilon, adjacency) > delta:
        epsilon += step * max(1e-3, epsilon)
        step *= 2.0
        if step > 1e30:
            return math.inf
    return epsilon


def epsilon_lower(law: Law, delta: float, adjacency: str) -> float:
    """Return a lower bound of the smallest epsilon >= 0 with profile at most delta."""
    finite = [e for d in DIRECTIONS[adjacency] if math.isfinite(e := _epsilon(law, delta, d))]
    epsilon = max([0.0, *finite])
    step = 1e-15
    while epsilon > 0.0 and delta_lower(law, epsilon, adjacency) <= delta:
        epsilon = max(0.0, epsilon - step * max(1e-3, epsilon))
        step *= 2.0
    return epsilon


def _slack(law: Law, epsilon: float) -> tuple[float, float]:
    """Return the shift of epsilon and the factor on delta that cover all rounding, that of reading included."""
    shift = law.value_error + 8.0 * ROUNDING * (2.0 + abs(epsilon))
    return shift, math.exp(law.mass_error + shift + 4.0 * (law.x.size + 4) * ROUNDING)


def _delta(law: Law, epsilon: float, direction: Direction) -> float:
    """Return E_Q[(X - e^epsilon)_+] plus the mean at infinity, or E_Q[(1 - e^epsilon X)_+]."""
    log_ratio = epsilon - _log(law.x)
    if direction == "remove":
        return float(law.p @ (law.x * -np.expm1(np.minimum(log_ratio, 0.0)))) + law.infinite
    return float(law.p @ -np.expm1(np.minimum(epsilon + _log(law.x), 0.0)))


def _exp(epsilon: float) -> float:
    return math.exp(min(epsilon, 700.0))


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)


def _epsilon(law: Law, delta: float, direction: Direction) -> float:
    """Return the epsilon, any real or infinite, at which the profile of the law itself equals delta.

    The profile is linear in e^epsilon (remove) or e^-epsilon (add) between atoms: one search, then a division.
    """
    x, p = law.x, law.p
    if direction == "remove":
        target = delta - law.infinite
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
