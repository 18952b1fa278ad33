"""Bags of different rows of a file: bounds from independent draws, and the labels that they reveal."""

import math
from collections.abc import Callable

import numpy as np

from privcore.distributions.prior import Prior
from privcore.labels.sums.poisson_binomial import SMALLEST, Array, binomial, relative_error
from privcore.numerics.rounding import SUMMED
from privcore.numerics.sums import of_groups

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


_MOST_BINS = 512
_PRODUCTS = 1e9
_SPARE = 1e-12
"""Relative error of the arithmetic means of bins, and of the logarithms of their geometric means."""


def revealed_in_partition(column: Prior, bag_size: int) -> tuple[float, float]:
    r"""Return bounds of the probability that a label is revealed in a random partition of a file.

    If every row is in the bag with probability $\pi = k / N$ independently, the bag has k rows with the
    probability $\binom Nk \pi^k (1 - \pi)^{N - k}$, and is then uniform. So the mean product of $\eta$ over k
    different rows is the coefficient of $t^k$ in $\prod_j (1 - \pi + \pi \eta_j t)$, divided by it. Sorted
    values are binned: the mean product over c different rows of a bin is at most the power of their
    arithmetic mean by Maclaurin's inequality, and at least that of their geometric mean.

    Args:
        column: The column, with numbers of rows.
        bag_size: Number k of rows in a bag, at most N.

    Returns:
        Lower and upper bound, rounded outwards.

    Reference:
        Maclaurin's inequality for elementary symmetric polynomials, and the inequality of the arithmetic and
        the geometric mean.

    Example:
        >>> from privcore.distributions.prior_finite import FinitePrior
        >>> halves = FinitePrior("", np.array([0.0, 0.5]), np.array([0.5, 0.5]), counts=np.array([2, 2]))
        >>> [round(end, 9) for end in revealed_in_partition(halves, 2)]
        [0.75, 0.75]
    """
    assert column.atoms is not None
    assert column.counts is not None
    values, counts, rows = column.atoms[0], column.counts.astype(float), int(column.counts.sum())
    inclusion = bag_size / rows
    whole = float(binomial(rows, inclusion, (rows - bag_size) / rows)[bag_size])
    ends = [0.0, 0.0]
    for etas, numbers in ((values, counts), (1.0 - values[::-1], counts[::-1])):
        low, high = (_mean_products(etas, numbers, bag_size, inclusion, geometric=g) for g in (True, False))
        ends[0] += low
        ends[1] += high
    least = min(float(np.min(etas[etas > 0.0], initial=1.0)) for etas in (values, 1.0 - values))
    means = _SPARE * (1.0 - math.log(least))
    error = 4.0 * relative_error(rows) + bag_size * (means + _MOST_BINS * 2.0**-50)
    return max(0.0, ends[0] / whole * (1.0 - error)), min(1.0, ends[1] / whole * (1.0 + error) + 1e-275)


def _mean_products(etas: Array, numbers: Array, bag_size: int, inclusion: float, *, geometric: bool) -> float:
    """Return the sum over the numbers j of rows with positive eta, weighted by j / k, of the coefficients."""
    positive = etas > 0.0
    etas, sizes, nothing = etas[positive], numbers[positive], int(numbers[~positive].sum())
    bins = int(min(_MOST_BINS, max(16.0, _PRODUCTS / (bag_size + 1.0) ** 2)))
    starts = np.arange(etas.size)
    if etas.size > bins:
        share = np.floor(np.cumsum(sizes) / sizes.sum() * math.nextafter(bins, 0.0))
        starts = np.flatnonzero(np.diff(share, prepend=-1.0))
    column = np.zeros(bag_size + 1)
    column[0] = 1.0
    if starts.size:
        number = of_groups(sizes, starts)
        mean = of_groups(sizes * (np.log(etas) if geometric else etas), starts) / number
        mean = np.exp(mean) if geometric else mean
        exact = np.diff(starts, append=etas.size) == 1
        mean = np.minimum(1.0, np.where(exact, etas[starts], mean))
        for size, eta in zip(number, mean, strict=True):
            chosen = binomial(int(size), inclusion, 1.0 - inclusion)[: bag_size + 1]
            with np.errstate(under="ignore"):
                column = np.convolve(column, chosen * eta ** np.arange(chosen.size))[: bag_size + 1]
            column[column < SMALLEST] = 0.0
    others = binomial(nothing, inclusion, 1.0 - inclusion)
    j = np.arange(bag_size + 1)
    rest = np.where(bag_size - j < others.size, others[np.minimum(bag_size - j, others.size - 1)], 0.0)
    return math.fsum(column * rest * j / bag_size)
