r"""Logarithms of the moments of likelihood ratios, exact up to rounding up or down.

Throughout, $g_n = \ln E_Q[X^n]$ for n = 0, 1, ..., N, with $g_0 = g_1 = 0$. So $g_n = (n - 1) R_n$ with the
Renyi divergence $R_n$ of order n. All sums are of terms $w_j (e^{x_j} - 1) \ge 0$, with weights of sum 1, and
are computed by logarithms. So there is no cancellation and no overflow: g is accurate from 1e-12 to 1e12. All
operations grow with their inputs; `side` is 1.0 to round every one of them up, and -1.0 to round it down.
"""

import math
from functools import lru_cache

import numpy as np
import scipy

from privcore.numerics.renyi import Floats
from privcore.numerics.rounding import EXPRESSION

FRACTIONS: Floats = 1.0 + np.exp2(-0.25 * np.arange(80.0, 0.0, -1.0))
"""Orders between 1 and 2 at which moments are bounded; they matter if one step reveals much."""

SPREAD_ORDERS: Floats = np.unique(
    np.concatenate([np.arange(2.0, 257.0), np.floor(256.0 * np.exp2(0.125 * np.arange(57.0)))])
)
"""Integer orders up to 256, then eight per octave up to 2^15; high ones matter if all steps reveal little."""


def gaussian_moments(sigma: float, highest: int, side: float = 1.0) -> Floats:
    r"""Return $g_n = n (n - 1) / (2 \sigma^2)$ of the Gaussian mechanism, for n = 0, ..., highest.

    Example:
        >>> [float(round(g, 9)) for g in gaussian_moments(sigma=1.0, highest=3)]
        [0.0, 0.0, 1.0, 3.0]
    """
    n = np.arange(highest + 1.0)
    return n * np.maximum(n - 1.0, 0.0) * (0.5 / sigma / sigma) * (1.0 + side * EXPRESSION)


def mixed_moments(first: Floats, second: Floats, share: float, rest: float, side: float = 1.0) -> Floats:
    r"""Return the moments of a X + (1 - a) Y for independent ratios X and Y.

    $$E[(a X + (1-a) Y)^n] - 1 = \sum_j \binom nj a^j (1-a)^{n-j} (E[X^j] E[Y^{n-j}] - 1)$$

    Args:
        first: Log-moments of X, shape (N + 1,).
        second: Log-moments of Y, shape (N + 1,).
        share: Weight a in (0, 1).
        rest: Complement 1 - a, passed separately because it may be known more accurately.
        side: 1.0 for upper bounds, -1.0 for lower bounds.

    Returns:
        Bounds of the log-moments, shape (N + 1,).
    """
    highest = len(first) - 1
    log_share = math.log(share) if share < 0.5 else math.log1p(-rest)
    log_rest = math.log(rest) if rest < 0.5 else math.log1p(-share)
    log_factorial = scipy.special.gammaln(np.arange(highest + 1.0) + 1.0)
    result = np.zeros(highest + 1)
    for n in range(2, highest + 1):
        j = np.arange(n + 1.0)
        powers = j * log_share + (n - j) * log_rest
        falling = log_factorial[: n + 1] + log_factorial[n::-1]
        log_weights = log_factorial[n] - falling + powers
        sizes = log_factorial[n] + falling - powers
        result[n] = log_mean(log_weights, sizes, first[: n + 1] + second[n::-1], side)
    return result


@lru_cache(maxsize=64)
def allocation_moments(sigma: float, steps: int, highest: int, side: float = 1.0) -> Floats:
    r"""Return the log-moments of the ratio of 1-of-t allocation of the Gaussian mechanism, direction remove.

    The ratio is the mean of t i.i.d. ratios of one step, so $E[S^n] = n! \, t^{-n} [x^n] f(x)^t$ with
    $f(x) = \sum_p e^{p(p-1)/(2\sigma^2)} x^p / p!$. This collects the sum over the integer partitions of n in
    the theorem, and takes $N^2$ operations instead of a number exponential in $\sqrt N$. For t >= N the power
    of the series is computed by the recurrence of J. C. P. Miller, otherwise by binary powering.

    Args:
        sigma: Noise multiplier, > 0.
        steps: Number of steps t, >= 1.
        highest: Highest order N, >= 2.
        side: 1.0 for upper bounds, -1.0 for lower bounds.

    Returns:
        Bounds of g_0, ..., g_N, shape (N + 1,), exact to about 1e-11; a cached, read-only array.

    Reference:
        arXiv:2502.08202v3, Theorem 4.8 and Corollary 4.10, with the logarithm and the factor 1/(alpha - 1)
        that are missing in the printed theorem; Henrici (1956), J. ACM 3, for the recurrence.

    Example:
        >>> round(float(allocation_moments(sigma=1.0, steps=1000, highest=2)[2]), 12)  # ln(1 + (e - 1) / t)
        0.001716807271
    """
    result = averaged_moments(gaussian_moments(sigma, highest, side), steps, side)
    result.flags.writeable = False
    return result


def averaged_moments(one: Floats, steps: int, side: float = 1.0) -> Floats:
    """Return the log-moments of the mean of i.i.d. ratios; they grow with those of one ratio.

    Args:
        one: Log-moments of one ratio, shape (N + 1,), N >= 2.
        steps: Number of ratios t, >= 1.
        side: 1.0 for upper bounds, -1.0 for lower bounds.
    """
    return _by_recurrence(one, steps, side) if steps >= len(one) - 1 else _by_powering(one, steps, side)


def _by_recurrence(one: Floats, steps: int, side: float) -> Floats:
    r"""Return the moments of the mean of t ratios: $M_n = \sum_j w_{nj} E[X^j] M_{n-j}$, weights >= 0."""
    highest = len(one) - 1
    log_steps = math.log(steps)
    log_factorial = scipy.special.gammaln(np.arange(highest + 1.0) + 1.0)
    result = np.zeros(highest + 1)
    for n in range(2, highest + 1):
        j = np.arange(1.0, n + 1.0)
        falling = log_factorial[1 : n + 1] + log_factorial[n - 1 :: -1]
        # binomial(n, j) t^(-j) (j (t + 1) - n) / n; these sum to 1, as the case X = 1 shows
        log_factor = np.log((j * (steps + 1.0) - n) / n)
        log_weights = log_factor + log_factorial[n] - falling - j * log_steps
        sizes = np.abs(log_factor) + log_factorial[n] + falling + j * log_steps + 1.0
        result[n] = log_mean(log_weights, sizes, one[1 : n + 1] + result[n - 1 :: -1], side)
    return result


def _by_powering(one: Floats, steps: int, side: float) -> Floats:
    """Return the moments of the mean of t ratios, by doubling the number of ratios and adding one."""
    result, terms = one, 1
    for bit in f"{steps:b}"[1:]:
        result, terms = mixed_moments(result, result, 0.5, 0.5, side), 2 * terms
        if bit == "1":
            terms += 1
            result = mixed_moments(result, one, (terms - 1) / terms, 1.0 / terms, side)
    return result.copy()


def log_mean(log_weights: Floats, sizes: Floats, x: Floats, side: float = 1.0) -> float:
    r"""Return an upper or a lower bound of $\ln(1 + \sum_j w_j (e^{x_j} - 1))$.

    Args:
        log_weights: Logarithms of the weights w; all weights, with those left out, sum to at most 1; shape
            (n,).
        sizes: Sums of the absolute values of the terms of each logarithm, for its rounding error; shape (n,).
        x: Exponents, >= 0, shape (n,).
        side: 1.0 for an upper bound, -1.0 for a lower bound.
    """
    positive = x > 0.0
    if not positive.any():
        return 0.0
    x = x[positive]
    large, little = np.maximum(x, 1.0), np.minimum(x, 1.0)
    log_grown = np.where(x > 1.0, large + np.log1p(-np.exp(-large)), np.log(np.expm1(little)))
    terms = log_weights[positive] + log_grown
    terms += side * EXPRESSION * (sizes[positive] + np.abs(log_grown) + 1.0)
    largest = float(terms.max())
    total = largest + math.log(float(np.exp(terms - largest).sum()))
    total += side * EXPRESSION * (abs(total) + abs(largest) + len(x))
    return float(np.logaddexp(0.0, total)) * (1.0 + side * EXPRESSION)
