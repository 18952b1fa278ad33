"""Gaussian mechanism of sensitivity 1: its privacy profile and the inverse, with proved ends."""

import math
from collections.abc import Callable

import numpy as np
import scipy

from privcore.numerics.rounding import (
    GAUSSIAN_LOG_DELTA,
    GAUSSIAN_RATE,
    GAUSSIAN_SIGMA,
    NORMAL_QUANTILES,
)

SMALLEST_RATE = 1e-300
"""Smallest positive end of a rate; the normal distribution function loses digits below the normal range."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def log_gaussian_delta(sigma: float, epsilon: float) -> float:
    r"""Return the logarithm of the privacy profile of the Gaussian mechanism.

    $$\delta = \Phi(-a) - e^{\varepsilon} \Phi(-b) = \varphi(a) (m(a) - m(b)),
      \quad a = \varepsilon\sigma - \tfrac1{2\sigma}, \; b = a + \tfrac1\sigma$$

    with the Mills ratio $m(x) = \Phi(-x) / \varphi(x)$. If $b - a$ is small the difference cancels, and the
    integral of $-m'(x) = 1 - x m(x)$ from $a$ to $b$ replaces it. Negative epsilon are reflected:
    $\delta(\varepsilon) = 1 - e^{\varepsilon} + e^{\varepsilon} \delta(-\varepsilon)$.

    Args:
        sigma: Noise multiplier, > 0.
        epsilon: Privacy loss threshold in nats, any real number.

    Returns:
        Natural logarithm of delta, in (-inf, 0]; `gaussian_delta_bounds` accounts for its error.

    Reference:
        Balle and Wang (2018), arXiv:1805.06530v2, Theorem 8.

    Example:
        >>> round(math.exp(log_gaussian_delta(sigma=1.0, epsilon=1.0)), 6)
        0.126937
    """
    if epsilon < 0.0:
        reflected = math.exp(epsilon + log_gaussian_delta(sigma, -epsilon))
        return min(0.0, math.log(reflected - math.expm1(epsilon)))
    shift = 1.0 / sigma
    a = epsilon * sigma - 0.5 * shift
    if shift > 1.0:
        # m(x) is a multiple of erfcx(x / sqrt(2)); m(a) overflows for a < -37, which makes the quotient 0.
        near, far = scipy.special.erfcx(a / math.sqrt(2.0)), scipy.special.erfcx((a + shift) / math.sqrt(2.0))
        quotient = float(far) / float(near)
        return float(scipy.special.log_ndtr(-a)) + math.log1p(-quotient)
    x = a + 0.5 * shift * (1.0 + _NODES)
    # For large x, 1 - x m(x) cancels; 1 / (x^2 + 3) errs by 6 / x^4, tiny next to |log(delta)| > x^2 / 2.
    x_mills = math.sqrt(0.5 * math.pi) * x * scipy.special.erfcx(x / math.sqrt(2.0))
    slope = np.where(x < 500.0, 1.0 - x_mills, 1.0 / (x * x + 3.0))
    return math.log(0.5 * shift * float(_WEIGHTS @ slope)) - 0.5 * a * a - 0.5 * math.log(2.0 * math.pi)


def _log_delta_bound(sigma: float, epsilon: float, side: int) -> float:
    """Return a proved end of log(delta): the upper end for side 1, the lower end for side -1.

    Delta decreases in sigma. Moving sigma by the factor 1 + r moves a by r (epsilon sigma + 1/(2 sigma)),
    which is more than the rounding error of a, even if its terms cancel. The remaining error is that of the
    special functions.
    """
    log_delta = log_gaussian_delta(sigma * (1.0 - side * GAUSSIAN_SIGMA), epsilon)
    return log_delta + side * GAUSSIAN_LOG_DELTA * max(1.0, -log_delta)


def gaussian_delta_bounds(sigma: float, epsilon: float) -> tuple[float, float]:
    """Return proved ends of the privacy profile of the Gaussian mechanism of sensitivity 1.

    Args:
        sigma: Noise multiplier, > 0; a relative error of 2^-51, four roundings, is accounted for.
        epsilon: Privacy loss threshold in nats, any real number.

    Returns:
        Lower end (rounded down, 0 if delta underflows) and upper end (rounded up, positive), in [0, 1].

    Example:
        >>> gaussian_delta_bounds(sigma=1.0, epsilon=100.0)
        (0.0, 5e-324)
    """
    lower = math.exp(_log_delta_bound(sigma, epsilon, -1))
    upper = math.exp(min(0.0, _log_delta_bound(sigma, epsilon, 1)))
    return math.nextafter(lower, 0.0), min(1.0, math.nextafter(upper, 2.0))


def gaussian_epsilon_bounds(sigma: float, delta: float) -> tuple[float, float]:
    """Return proved ends of the smallest epsilon >= 0 at which the profile is at most delta.

    Args:
        sigma: Noise multiplier, > 0; a relative error of 2^-51, four roundings, is accounted for.
        delta: Probability in (0, 1).

    Returns:
        Lower and upper end of epsilon. At the lower end, unless it is 0, the profile exceeds delta; at the
        upper end it does not.

    Example:
        >>> lower, upper = gaussian_epsilon_bounds(sigma=1.0, delta=1e-5)
        >>> round(lower, 9), round(upper, 9)
        (4.377178096, 4.377178096)
    """
    target = math.log(delta)
    # delta(epsilon) <= 1 - Phi(a) <= exp(-a^2/2) / 2 at epsilon = (a + 1/(2 sigma)) / sigma.
    beyond = (math.sqrt(-2.0 * target) + 0.5 / sigma) / sigma
    guess = _epsilon_about(sigma, target, beyond)
    upper = last_true(lambda epsilon: _log_delta_bound(sigma, epsilon, 1) > target, 0.0, beyond, guess)[1]
    lower = last_true(lambda epsilon: _log_delta_bound(sigma, epsilon, -1) > target, 0.0, upper, guess)[0]
    return lower, upper


def gaussian_bounds(asks: str, sigma: float, at: float) -> tuple[float, float]:
    """Return both ends of epsilon at a delta, or of delta at an epsilon.

    Args:
        asks: `epsilon`, or `delta`.
        sigma: Noise multiplier, as in `gaussian_epsilon_bounds`.
        at: The delta, or the epsilon.
    """
    return (gaussian_epsilon_bounds if asks == "epsilon" else gaussian_delta_bounds)(sigma, at)


def gaussian_rate_bounds(rate: float, shift: float) -> tuple[float, float]:
    r"""Return proved ends of $\Phi(\Phi^{-1}(r) + \mu)$, the trade-off curve of the Gaussian mechanism.

    For a mechanism with noise multiplier 1/mu it is the largest true positive rate at the false positive rate
    r, and with -mu for mu the smallest false positive rate at the true positive rate r.

    Args:
        rate: Probability in [1e-300, 1).
        shift: Distance mu between the means in standard deviations, of either sign; an error of 2^-51,
            four roundings, is accounted for.

    Returns:
        Lower end and upper end, in [0, 1]; below 1e-300, 0 and 1e-300.

    Reference:
        Dong, Roth and Su (2022), arXiv:1905.02383, Equation (6).

    Example:
        >>> gaussian_rate_bounds(0.01, 1.0)
        (0.092362248..., 0.092362248...)
    """
    quantile = float(scipy.special.ndtri(rate))
    slack = NORMAL_QUANTILES * (1.0 + abs(quantile) + abs(shift))
    lower = float(scipy.special.ndtr(quantile + shift - slack)) * (1.0 - GAUSSIAN_RATE)
    upper = float(scipy.special.ndtr(quantile + shift + slack)) * (1.0 + GAUSSIAN_RATE)
    return (
        math.nextafter(lower, 0.0) if lower > SMALLEST_RATE else 0.0,
        min(1.0, math.nextafter(max(upper, SMALLEST_RATE), 2.0)),
    )


def _epsilon_about(sigma: float, target: float, beyond: float) -> float:
    """Return an estimate of the epsilon at which log(delta) equals the target, by Newton's method."""
    epsilon = beyond if math.isfinite(beyond) else 0.0
    for _ in range(8):
        log_delta = log_gaussian_delta(sigma, epsilon)
        log_above = float(scipy.special.log_ndtr(-epsilon * sigma - 0.5 / sigma))
        slope = math.exp(min(50.0, epsilon + log_above - log_delta))
        step = (target - log_delta) / max(slope, 1e-300)
        epsilon = max(0.0, epsilon - step)
        if step <= 1e-11 * epsilon:
            break
    return epsilon


def last_true(
    holds: Callable[[float], bool], low: float, high: float, guess: float = math.nan
) -> tuple[float, float]:
    """Return points, at a relative distance of 1e-12, between which a predicate changes from true to false.

    Args:
        holds: Predicate that is true up to some point of [low, high] and false beyond it.
        low: Start of the interval; returned as both points if the predicate is false there.
        high: End of the interval, at which the predicate is false.
        guess: Estimate of the point of change. A good estimate saves more than half of the calls; the result
            does not depend on it.

    Returns:
        A point at which the predicate holds, and a point at which it does not.

    Example:
        >>> last_true(lambda x: x * x < 2.0, 0.0, 2.0)
        (1.4142135623724..., 1.4142135623733...)
    """
    if not holds(low):
        return low, low
    true, false = low, high
    for near in (1e-11, 1e-9):
        left, right = guess * (1.0 - near), min(guess * (1.0 + near), high)
        if low < left < right and holds(left) and (right == high or not holds(right)):
            true, false = left, right
            break
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if middle <= true or (middle < false and holds(middle)):
            low = middle
        else:
            high = middle
    return low, high
