"""Conversion of Renyi divergences to epsilon and delta, rounded up, over given orders and those between."""

import math

import numpy as np
from numpy.typing import NDArray

from privcore.numerics.rounding import EXPRESSION

_STEPS = 60
"""Most steps of the search for epsilon; it converges quadratically, and every iterate is a valid bound."""

Floats = NDArray[np.float64]


def delta_from_moments(orders: Floats, log_moments: Floats, epsilon: float) -> tuple[float, float]:
    r"""Return an upper bound of delta at epsilon, and the order that gives it.

    $$\delta \le \inf_{\alpha > 1} \exp\bigl(g(\alpha) - (\alpha - 1) \varepsilon\bigr)
      \frac{(1 - 1/\alpha)^{\alpha}}{\alpha - 1},
      \quad g(\alpha) = (\alpha - 1) R_\alpha(P \Vert Q) = \ln E_Q[(dP/dQ)^\alpha]$$

    g is convex with g(1) = 0, and R is non-decreasing, so a bound of R at an order also holds at all smaller
    orders. Between two orders g lies below the chord; there the infimum is at
    $1 / (1 - e^{\varepsilon - m})$ for the slope m of the chord, or at an end.

    Args:
        orders: Orders alpha, increasing, > 1, shape (n,), n >= 1.
        log_moments: Upper bounds of g at these orders, >= 0, shape (n,).
        epsilon: Privacy loss threshold in nats, any real number.

    Returns:
        Upper bound of the hockey-stick divergence of P from Q, in (0, 1], and its order.

    Reference:
        Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4, Proposition 12, which is Lemma 2.4 of
        arXiv:2502.08202v3. The chord: Wang, Balle and Kasiviswanathan (2019), arXiv:1808.00087, Corollary 10.

    Example:
        >>> delta, order = delta_from_moments(np.array([2.0]), np.array([1.0]), epsilon=1.0)
        >>> round(delta, 12), order  # (1 - 1/2)^2 e^(1 - 1)
        (0.25, 2.0)
    """
    finite = np.isfinite(log_moments)  # the bound holds without any order
    if not finite.any():
        return 1.0, math.inf
    points, numerators = _on_chords(orders[finite], log_moments[finite], epsilon)
    drop = (points - 1.0) * epsilon
    exponents = numerators - drop + EXPRESSION * np.abs(drop)
    best = int(np.argmin(exponents))
    delta = math.nextafter(math.exp(min(0.0, float(exponents[best]))) * (1.0 + EXPRESSION), 2.0)
    return min(1.0, delta), float(points[best])


def epsilon_from_moments(orders: Floats, log_moments: Floats, delta: float) -> tuple[float, float]:
    r"""Return an upper bound of the smallest epsilon >= 0 for delta, and the order that gives it.

    $$\varepsilon \le \inf_{\alpha > 1} \frac{g(\alpha) - \ln(\delta \alpha)}{\alpha - 1}
      + \ln\left(1 - \frac1\alpha\right)$$

    This is the inverse of `delta_from_moments`. Between two orders the infimum is found by the method of
    Dinkelbach: the order that minimises delta at the current epsilon gives the next epsilon.

    Args:
        orders: Orders alpha, increasing, > 1, shape (n,), n >= 1.
        log_moments: Upper bounds of g, the logarithms of the moments of these orders, >= 0, shape (n,).
        delta: Probability in (0, 1).

    Returns:
        Upper bound of epsilon, >= 0, and its order.

    Reference:
        Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4, Proposition 12, which is Lemma 2.4 of
        arXiv:2502.08202v3.

    Example:
        >>> epsilon, order = epsilon_from_moments(np.array([2.0]), np.array([1.0]), delta=0.25)
        >>> round(epsilon, 12), order
        (1.0, 2.0)
    """
    finite = np.isfinite(log_moments)
    orders, log_moments = orders[finite], log_moments[finite]
    if orders.size == 0:
        return math.inf, math.inf
    target = math.log(delta)
    best, order, tried = math.inf, math.inf, -1e300  # so low that the first step tries the given orders
    for _ in range(_STEPS):
        points, numerators = _on_chords(orders, log_moments, tried)
        epsilons = (numerators - target + EXPRESSION * abs(target)) / (points - 1.0)
        epsilons += EXPRESSION * np.abs(epsilons)
        at = int(np.argmin(epsilons))
        if epsilons[at] >= best:
            break
        best, order = float(epsilons[at]), float(points[at])
        tried = best
    return max(0.0, best), order


def from_moments(asks: str, orders: Floats, log_moments: Floats, at: float) -> tuple[float, float]:
    """Return an upper bound of epsilon at a delta, or of delta at an epsilon, and the order that gives it."""
    read = epsilon_from_moments if asks == "epsilon" else delta_from_moments
    return read(orders, log_moments, at)


def reflected_delta(epsilon: float, other: float) -> float:
    r"""Return $1 - e^{\varepsilon} + e^{\varepsilon} \delta'$: delta from the other direction at -epsilon.

    Args:
        epsilon: Privacy loss threshold in nats, <= 0, so that nothing cancels.
        other: Upper bound of the delta of the other direction at -epsilon, in [0, 1].

    Returns:
        Upper bound of the delta at epsilon, in [0, 1], rounded up.

    Example:
        >>> reflected_delta(0.0, 0.5) >= 0.5
        True
    """
    return min(1.0, (-math.expm1(epsilon) + math.exp(epsilon) * other) * (1.0 + EXPRESSION))


def _on_chords(orders: Floats, log_moments: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Return the best order a on every chord, and g + (a - 1) ln(a - 1) - a ln(a) there, rounded up."""
    # g / (alpha - 1) is non-decreasing: van Erven and Harremoes (2014), arXiv:1206.2459, Theorem 3.
    divergences = np.minimum.accumulate((log_moments / (orders - 1.0))[::-1])[::-1]
    log_moments = np.minimum(log_moments, divergences * (orders - 1.0) * (1.0 + EXPRESSION))
    left = np.concatenate(([1.0], orders[:-1]))
    left_g = np.concatenate(([0.0], log_moments[:-1]))
    excess = (log_moments - left_g) / (orders - left) - epsilon
    with np.errstate(over="ignore"):  # on a chord that only rises, the infimum is at the left end
        points = np.where(excess > 0.0, -1.0 / np.expm1(-np.where(excess > 0.0, excess, 1.0)), np.inf)
    points = np.clip(points, left, orders)
    points = np.where(points > 1.0, points, orders)  # at order 1 the bound is void
    g = left_g + (points - left) / (orders - left) * (log_moments - left_g)
    b = points - 1.0
    falling, rising = points * np.log1p(b), b * np.log(b)
    size = np.maximum(left_g, log_moments) + falling + np.abs(rising)
    return points, g + rising - falling + EXPRESSION * size
