"""The Hurwitz zeta function with a bound for its error, by the summation formula of Euler and Maclaurin."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ERROR = 2e-15
"""Bound for the relative error, while the value is a normal number."""
_BERNOULLI = tuple(
    b / math.factorial(2 * i)
    for i, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6), start=1)
)


def hurwitz(s: float, a: Array) -> Array:
    r"""Return $\zeta(s, a) = \sum_{k \ge 0} (a + k)^{-s}$.

    After some terms the rest from A on is $A^{1-s} / (s - 1) + A^{-s} / 2$ and corrections with the Bernoulli
    numbers. The terms are completely monotone functions of k, so the error is below the first correction that
    is left out. With $A \ge 2 s + 10$ the one after the last is below 1e-16 of the whole.

    Args:
        s: Exponent, > 0; for s <= 1 the sum is infinite.
        a: First base, > 0.

    Returns:
        Values to the relative error `ERROR`; infinity for s <= 1.

    Example:
        >>> hurwitz(2.0, np.array([1.0])).round(12).tolist(), round(math.pi**2 / 6.0, 12)
        ([1.644934066848], 1.644934066848)
    """
    a = np.asarray(a, dtype=np.float64)
    if s <= 1.0:
        return np.full_like(a, math.inf)
    with np.errstate(under="ignore"):
        first = max(0, math.ceil(2.0 * s + 10.0 - float(a.min())))
        total = np.zeros_like(a)
        for k in range(first):
            total += (a + k) ** -s
        base = a + first
        power = base**-s
        total += power * (base / (s - 1.0) + 0.5)
        factor = s / base
        for i, b in enumerate(_BERNOULLI):
            total += power * (b * factor)
            factor = factor * ((s + 2 * i + 1) * (s + 2 * i + 2) / base**2)
    return np.asarray(total)
