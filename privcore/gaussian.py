"""The Gaussian mechanism of sensitivity 1: its privacy profile and the inverse, with proved ends."""

import math
from collections.abc import Callable

from scipy.special import erfcx, log_ndtr, ndtr

DELTA_SLACK = 1e-11
"""Relative error allowed for the profile in double precision; tested against 50 digits at 1e-12."""


def log_gaussian_delta(sigma: float, epsilon: float) -> float:
    r"""Return the logarithm of the privacy profile of the Gaussian mechanism.

    $$\\delta = \\Phi(-a) - e^{\\varepsilon} \\Phi(-b), \\quad a = \\varepsilon\\sigma - \\tfrac1{2\\sigma}, b = a + \\tfrac1\\sigma$$

    In the tail this is $\\varphi(a) (m(a) - m(b))$ with Mills ratio $m$, free of the cancellation of the
    first form; the difference of Mills ratios is an integral of $1 - x m(x)$ where $1/\\sigma$ is small.

    Args:
        sigma: Noise multiplier, > 0.
        epsilon: Privacy loss threshold in nats, any real number.

    Returns:
        Natural logarithm of delta, in (-inf, 0]; relative error of delta below `DELTA_SLACK`.

    Reference:
        Balle and Wang (2018), arXiv:1805.06530v2, Theorem 8.

    Example:
        >>> round(math.exp(log_gaussian_delta(sigma=1.0, epsilon=1.0)), 6)
        0.126937
    """
    shift = 1.0 / sigma
    a = epsilon * sigma - 0.5 * shift
    if a < -1.0 and shift > 1.0:
        return math.log1p(-min(1.0, float(ndtr(a)) + math.exp(epsilon + float(log_ndtr(-a - shift)))))
    return -0.5 * a * a - 0.5 * math.log(2.0 * math.pi) + math.log(_mills_difference(a, shift))


def _mills_difference(a: float, shift: float) -> float:
    """Return m(a) - m(a + shift) for the Mills ratio m(x) = (1 - Phi(x)) / phi(x)."""
    if shift > 0.25 * max(1.0, abs(a)) or (shift > 0.25 and a < 30.0):
        return _mills(a) - _mills(a + shift)
    # m' = x m - 1; Gauss-Legendre of 1 - x m(x) over [a, a + shift]: the integrand is positive and smooth.
    total = 0.0
    pieces = max(1, math.ceil(4.0 * shift))
    width = shift / pieces
    for piece in range(pieces):
        left = a + piece * width
        for node, weight in _LEGENDRE:
            total += weight * width * _one_minus_x_mills(left + node * width)
    return total


_LEGENDRE = tuple(
    (0.5 * (1.0 + sign * x), 0.5 * w)
    for x, w in (
        (0.18343464249564980, 0.36268378337836198),
        (0.52553240991632899, 0.31370664587788729),
        (0.79666647741362674, 0.22238103445337447),
        (0.96028985649753623, 0.10122853629037626),
    )
    for sign in (-1.0, 1.0)
)


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))


def _one_minus_x_mills(x: float) -> float:
    """Return 1 - x m(x) > 0, by Lentz's continued fraction where the difference would cancel."""
    if x < 3.0:
        return 1.0 - x * _mills(x)
    # m(x) = 1/(x + 1/(x + 2/(x + ...))), so 1 - x m = c/(x + c) with c = 1/(x + 2/(x + 3/...)).
    c = 0.0
    for k in range(int(400.0 / x) + 20, 0, -1):
        c = k / (x + c)
    return c / (x + c)


def gaussian_delta_bounds(sigma: float, epsilon: float) -> tuple[float, float]:
    """Return proved ends of the privacy profile of the Gaussian mechanism of sensitivity 1.

    Args:
        sigma: Noise multiplier, > 0.
        epsilon: Privacy loss threshold in nats, any real number.

    Returns:
        Lower end (rounded down) and upper end (rounded up) of delta, in [0, 1].
    """
    log_delta = log_gaussian_delta(sigma, epsilon)
    slack = DELTA_SLACK * max(1.0, abs(log_delta))
    lower, upper = math.exp(log_delta - slack), math.exp(log_delta + slack)
    return max(0.0, math.nextafter(lower, 0.0)), min(1.0, math.nextafter(upper, 1.0))


def gaussian_epsilon_bounds(sigma: float, delta: float) -> tuple[float, float]:
    """Return proved ends of the smallest epsilon >= 0 at which the profile is at most delta.

    Args:
        sigma: Noise multiplier, > 0.
        delta: Probability in (0, 1).

    Returns:
        Lower and upper end of epsilon: the profile exceeds delta at the first (unless it is 0), and not at
        the second, each by more than the error of its evaluation.
    """
    target = math.log(delta)

    def above(epsilon: float) -> bool:
        log_delta = log_gaussian_delta(sigma, epsilon)
        return log_delta + DELTA_SLACK * max(1.0, abs(log_delta)) > target

    def surely_above(epsilon: float) -> bool:
        log_delta = log_gaussian_delta(sigma, epsilon)
        return log_delta - DELTA_SLACK * max(1.0, abs(log_delta)) > target

    high = 1.0 / sigma
    while above(high):
        high *= 2.0
    return last_true(surely_above, 0.0, high)[0], last_true(above, 0.0, high)[1]


def last_true(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return neighbours (relative distance 1e-12) between which a falling predicate turns false.

    Args:
        holds: Predicate that is true up to some point of [low, high] and false beyond.
        low: Start; returned as both ends where the predicate is false already here.
        high: A point where the predicate is false.

    Returns:
        A point where it holds, and one where it does not.
    """
    if not holds(low):
        return low, low
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high
