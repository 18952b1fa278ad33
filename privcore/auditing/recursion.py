"""Algorithm 3: whether so many correct guesses are too unlikely under a trade-off function, compiled."""

import math

import numpy as np
from numpy.typing import NDArray

from privcore.auditing.normal import below, quantile
from privcore.numerics.compiled import compiled

Array = NDArray[np.float64]

GAUSSIAN, LAPLACE, APPROXIMATE, LINES = range(4)
"""Families of trade-off functions: of N(mu, 1), Laplace noise, (epsilon, delta), and by supporting lines."""

Claim = tuple[int, float, float]
"""A family with its parameter, mu or epsilon, and with delta, which only the third family has."""
Counts = tuple[float, float, float, float]
"""Canaries, guesses, correct guesses, and alternatives for every canary."""
Lines = tuple[Array, Array]
"""Slopes of supporting lines of g, rising, and their values at 0; empty but for the last family."""
_STALLED = 1e-13
"""Relative growth that is taken for none: near a fixed point rounding would creep on, a step a guess."""
NO_LINES: Lines = (np.zeros(0), np.zeros(0))


@compiled()
def inverse(claim: Claim, lines: Lines, y: float) -> float:
    r"""Return $g(y) = \inf\{x : 1 - f(x) \ge y\}$, for symmetric trade-off functions $f(1 - y)$.

    Args:
        claim: Family and parameters of f.
        lines: For the last family alone.
        y: Probability; above 1 it is infinite.
    """
    family, a, b = claim
    if y > 1.0:
        return math.inf
    if family == GAUSSIAN:
        return float(below(quantile(y) - a))
    if family == LAPLACE:
        x = 1.0 - y
        if x < 0.5 * math.exp(-a):
            return math.exp(a) * y - math.expm1(a)
        return 0.25 * math.exp(-a) / x if x <= 0.5 else math.exp(-a) * y
    if family == APPROXIMATE:
        # The third is 1 - delta - e^epsilon (1 - y), in which nothing cancels for small y.
        return max(0.0, math.exp(-a) * (y - b), math.exp(a) * y - math.expm1(a) - b)
    slopes, offsets = lines
    low, high = 0, slopes.size - 1  # the lines are ordered so that the largest is found by bisection
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] + slopes[middle] * y < offsets[middle + 1] + slopes[middle + 1] * y:
            low = middle + 1
        else:
            high = middle
    return max(0.0, float(offsets[low] + slopes[low] * y))


@compiled()
def unlikely(claim: Claim, lines: Lines, counts: Counts, tau: float) -> bool:
    """Return whether so many correct guesses have a probability of at most tau for every such mechanism.

    The recursion of the paper from the last guess to the first, which stops as soon as its end is known: what
    does not grow in a step never passes the limit, and what grows once never falls. What grows by rounding
    alone is taken not to grow, which refutes less.
    """
    canaries, guesses, correct, alternatives = counts
    if guesses == 0.0 or correct == 0.0:
        return tau >= 1.0
    r, h = tau * correct / canaries, tau * (guesses - correct) / canaries
    limit = guesses / canaries
    i = correct - 1.0
    while i >= 0.0:
        following = (alternatives - 1.0) * inverse(claim, lines, r)
        if following <= h * (1.0 + _STALLED):
            return False
        r += i / (guesses - i) * (following - h)
        h = following
        if r + h >= limit:
            return True
        i -= 1.0
    return False


@compiled()
def smallest_level(claim: Claim, lines: Lines, counts: Counts) -> float:
    """Return the least tau at which the count is unlikely, by bisection of its logarithm; 1 at most."""
    low, high = -700.0, 0.0
    if not unlikely(claim, lines, counts, 1.0 - 1e-14):
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if unlikely(claim, lines, counts, math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


@compiled()
def largest_refuted(family: int, delta: float, counts: Counts, tau: float, most: float) -> float:
    """Return the largest parameter of a nested family at which the count is unlikely, 0 if there is none.

    Args:
        family: Gaussian, Laplace or (epsilon, delta); a larger parameter is less private.
        delta: Of the last.
        counts: Canaries, guesses, correct guesses, alternatives.
        tau: Significance level.
        most: Where the search ends; infinity is returned if even this is refuted.
    """
    if not unlikely((family, 0.0, delta), NO_LINES, counts, tau):
        return 0.0
    low, high = 0.0, 1.0
    while unlikely((family, high, delta), NO_LINES, counts, tau):
        low = high
        high *= 2.0
        if low >= most:
            return math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        if unlikely((family, middle, delta), NO_LINES, counts, tau):
            low = middle
        else:
            high = middle
        if high - low <= 1e-13 * high:
            break
    return low


def gaussian_limit(canaries: int, guesses: int, correct: int, alternatives: int, tau: float) -> float:
    r"""Return what the Gaussian parameter of an audit never exceeds, from the first step of the recursion.

    $$\mu_A = \Phi^{-1}(\tau c / m) - \Phi^{-1}(\tau (c' - c) / ((k - 1) m))$$

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses.
        correct: Number c of correct ones.
        alternatives: Number k of choices for every canary.
        tau: Significance level in (0, 1).

    Returns:
        Upper bound, also the limit for many guesses at the same rates; infinite without an error.

    Example:
        >>> round(gaussian_limit(100_000, 1500, 1429, 2, 0.05), 4)
        0.7842
    """
    errors = tau * (guesses - correct) / ((alternatives - 1) * canaries)
    return math.inf if errors == 0.0 else quantile(tau * correct / canaries) - quantile(errors)
