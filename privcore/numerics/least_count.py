"""Least number at which a falling quantity is at most a target, by doubling and bisection."""

import math
from collections.abc import Callable
from functools import cache


def least_count(ends: Callable[[int], tuple[float, float]], target: float, most: int) -> tuple[float, float]:
    """Return bounds of the least number, >= 1, at which a falling quantity is at most the target.

    Args:
        ends: Lower and upper end of the quantity at a number.
        target: Largest tolerated value.
        most: Largest number to try.

    Returns:
        Lower end: at one less, the lower end of the quantity exceeds the target. Upper end: there, the upper
        end of the quantity is at most the target; infinite if that is not so at `most`.

    Example:
        >>> least_count(lambda n: (1.0 / n, 1.0 / n), 0.3, 100)
        (4.0, 4.0)
    """
    ends = cache(ends)
    few, enough = 0, 1
    while ends(enough)[1] > target and enough < most:
        few, enough = enough, min(2 * enough, most)
    if ends(enough)[1] > target:
        return _too_few(ends, enough, target) + 1.0, math.inf
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (middle, enough) if ends(middle)[1] > target else (few, middle)
    return _too_few(ends, enough - 1, target) + 1.0, float(enough)


def _too_few(ends: Callable[[int], tuple[float, float]], high: int, target: float) -> int:
    """Return a number, at most `high`, that is proved to be too small."""
    if high == 0 or ends(high)[0] > target:
        return high
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ends(middle)[0] > target else (low, middle)
    return low
