"""Bags of different rows of a file compared with bags of independent draws of its rows."""

import math
from collections.abc import Callable

from privcore.numerics.rounding import SUMMED

_MOST_RATIO = 4.0
"""Largest logarithm of the ratio of probabilities of a partition and of independent draws."""
_RARE = 1e-10
"""Probability of bags with many repeated rows, whose advantage is not bounded further."""


def in_partition(
    rows: int, k: int, lower: Callable[[int], float], upper: Callable[[int], float]
) -> tuple[float, float]:
    r"""Return bounds for k different rows from bounds for independent draws of a number of others.

    The different rows among n draws, except the attacked one, are a bag of the partition, which reveals at
    least as much. Fewer than k - 1 of them remain if more than s = n - k + 1 draws meet earlier rows. So the
    advantage of n draws is at most that of the bag, plus the probability of this times the advantage in a
    bag with m rows less, plus the probability that more than s + m draws do, times 1/2. In order, different
    rows have at most $N^k (N - k)! / N!$ times the probability of independent draws.

    Args:
        rows: Number N of rows of the file.
        k: Number of examples in a bag, at most N.
        lower: Returns a lower bound of the advantage in bags with a number of independent others, >= 1.
        upper: Returns an upper bound of it.

    Example:
        >>> low, high = in_partition(10**6, 3, lambda others: 0.1 / others, lambda others: 0.1 / others)
        >>> round(low, 6), round(high, 6)
        (0.05, 0.05)
    """

    def of_rows(others: int) -> float:
        log = -math.fsum(math.log1p(-i / rows) for i in range(others + 1))
        return upper(others) * math.exp(log) * (1.0 + SUMMED) if log < _MOST_RATIO else 0.5

    others = k - 1
    spare = min(range(others + 8), key=lambda s: s / (others + s) + 1.2 * _met(rows, others + s, s))
    draws = others + spare
    less = next((m for m in range(others) if _met(rows, draws, spare + m) <= _RARE), others)
    seldom = _met(rows, draws, spare)
    lost = _met(rows, draws, spare + less) * 0.5
    if less:
        lost += seldom * (of_rows(others - less) if less < others else 0.5)
    return lower(draws) - lost, min(0.5, of_rows(others))


def _met(rows: int, draws: int, most: int) -> float:
    """Return a bound of the probability that more than `most` draws meet the attacked row or an earlier one.

    Given all earlier draws, the i-th does with probability at most (i + 1) / N, so their number is dominated
    by a sum of independent indicators. The bounds are those of Chernoff and of the binomial moments.
    """
    mean = draws * (draws + 1.0) / (2.0 * rows)
    number = most + 1.0
    moments = number * math.log(mean) - math.lgamma(number + 1.0)
    chernoff = number - mean - number * math.log(number / mean) if number > mean else 0.0
    return min(1.0, math.exp(min(moments, chernoff)) * (1.0 + SUMMED))
