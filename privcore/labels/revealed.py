"""Labels that the sums of a random partition reveal for certain: elementary symmetric polynomials."""

import math

import numpy as np

from privcore.distributions.prior import Prior
from privcore.labels.poisson_binomial import SMALLEST, Array, binomial, relative_error
from privcore.numerics.sums import of_groups

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
