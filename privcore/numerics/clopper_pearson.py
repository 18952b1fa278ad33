"""Exact confidence bounds of binomial rates, rounded to the safe side."""

from collections.abc import Callable

import scipy

from privcore.numerics.binomial import window
from privcore.numerics.rounding import BINOMIAL_WINDOW

_STEP = 1e-9
"""First relative move of a rate away from its data; larger moves follow while its tail is too large."""


def rate_at_least(trials: int, successes: int, error: float) -> float:
    r"""Return the lower confidence bound of a rate: the p whose $\Pr[\mathrm{Bin}(n, p) \ge x]$ is the error.

    Args:
        trials: Number n of independent trials, >= 0.
        successes: Number x of successes among them.
        error: Probability that the bound exceeds the true rate, in (0, 1/2).

    Returns:
        Bound, rounded down; a second computation of the tail checks that it is below the error.

    Reference:
        Clopper and Pearson (1934), Biometrika 26, 404-413.

    Example:
        >>> round(rate_at_least(10, 10, 0.05), 6), rate_at_least(10, 0, 0.05)
        (0.741134, 0.0)
    """
    if successes == 0:
        return 0.0
    start = float(scipy.special.betaincinv(successes, trials - successes + 1.0, error))
    return _outward(start, -_STEP, lambda p: window(trials, p).at_least(successes), error)


def rate_at_most(trials: int, successes: int, error: float) -> float:
    r"""Return the upper confidence bound of a rate: the p whose $\Pr[\mathrm{Bin}(n, p) \le x]$ is the error.

    Arguments and reference are those of `rate_at_least`.

    Returns:
        Bound, rounded up; a second computation of the tail checks that it is below the error.

    Example:
        >>> round(rate_at_most(10, 0, 0.05), 6), rate_at_most(10, 10, 0.05)
        (0.258866, 1.0)
    """
    if successes == trials:
        return 1.0
    start = float(scipy.special.betainccinv(successes + 1.0, float(trials - successes), error))

    def at_most(p: float) -> float:
        law = window(trials, p)
        return float(law.law[: max(0, successes - law.first + 1)].sum())

    return _outward(start, _STEP, at_most, error)


def _outward(start: float, step: float, tail: Callable[[float], float], error: float) -> float:
    """Return a rate near the start, in the direction of the step, at which the tail is below the error."""

    def small(rate: float) -> bool:
        return tail(rate) * (1.0 + 10.0 * BINOMIAL_WINDOW) + 1e-290 <= error

    for power in range(15):
        # A rate near 1 is also moved in proportion to its distance from 1.
        rate = start * (1.0 + step * 4.0**power * min(1.0, 1.0 - start + 1e-6))
        if not 0.0 < rate < 1.0:
            break
        if small(rate):
            return rate
    # For large numbers of trials library functions are inaccurate, so the rate is found by bisection.
    safe, other = (0.0, min(start, 1.0)) if step < 0.0 else (1.0, max(start, 0.0))
    if small(other):
        return other
    for _ in range(60):
        middle = 0.5 * (safe + other)
        safe, other = (middle, other) if small(middle) else (safe, middle)
    return safe
