"""Poisson-binomial distribution: sums of independent labels, of all members or of all except one.

Every probability is computed as a sum of products of non-negative numbers, so it has a small relative error,
in both tails, down to the smallest doubles. Transforms and deconvolution do not have this property:
docs/adr/0013.
"""

import math

import numpy as np
from numpy.typing import NDArray

from privcore.numerics.compiled import compiled

Array = NDArray[np.float64]

SMALLEST = 1e-290
"""Smaller probabilities are set to 0 on the way: denormal numbers are slow, and lack relative accuracy."""
LOSS = 1e-275
"""Largest sum of the probabilities that are set to 0: far below 10^15 of them for any bag."""
FLOOR = 1e-260
"""Probabilities from here on have a small relative error: the losses by `SMALLEST` are far below this."""


def relative_error(members: int) -> float:
    """Return a bound for the relative error of the probabilities of a sum of this many labels.

    Every factor has at most 4 roundings, and a tree adds at most one for every term of a sum. The sum of
    these errors is doubled for safety.
    """
    return (8.0 * members + 64.0) * 2.0**-53


def pmf(etas: Array) -> Array:
    r"""Return the distribution of the sum $y_1 + \dots + y_k$ of independent labels.

    Args:
        etas: Probabilities of label 1 in [0, 1], shape (..., k).

    Returns:
        Probabilities of 0, ..., k, shape (..., k + 1), to the relative error of `relative_error(k)`.

    Example:
        >>> pmf(np.array([0.5, 0.5])).tolist()
        [0.25, 0.5, 0.25]
    """
    etas = np.ascontiguousarray(etas, dtype=np.float64)
    rows = etas.reshape(math.prod(etas.shape[:-1]), etas.shape[-1])
    out = np.zeros((rows.shape[0], rows.shape[1] + 1))
    _pmf_rows(rows, out)
    return out.reshape(*etas.shape[:-1], etas.shape[-1] + 1)


def leave_one_out(etas: Array, outside: Array | None = None) -> Array:
    r"""Return, for some members of a bag, the distribution of the sum of all other labels.

    Products are computed over the nodes of a binary tree, and the product over all members outside a node is
    passed down to its children: $O(k^2 \log k)$.

    Args:
        etas: Probabilities of label 1 in [0, 1], shape (m,).
        outside: Distribution of the sum of the labels of the k - m other members; by default, of none.

    Returns:
        Row j has the probabilities of 0, ..., k - 1 of the sum without label j, shape (m, k), to the relative
        error of `relative_error(k)`.

    Example:
        >>> leave_one_out(np.array([0.1, 0.4])).tolist()
        [[0.6, 0.4], [0.9, 0.1]]
    """
    etas = np.ascontiguousarray(etas, dtype=np.float64)
    outside = np.ones(1) if outside is None else outside
    out = np.zeros((etas.size, etas.size + outside.size - 1))
    _leave_one_out(etas, outside, 0, etas.size, out)
    return out


def binomial(trials: int, p: float, other: float | None = None) -> Array:
    """Return the binomial distribution, from the mode outwards by ratios of neighbouring probabilities.

    Args:
        trials: Number of trials, >= 0.
        p: Probability of success in [0, 1].
        other: Probability of failure, if it is known more accurately than as 1 - p.

    Returns:
        Probabilities of 0, ..., trials successes, shape (trials + 1,), to the relative error of
        `relative_error(trials)`.

    Example:
        >>> binomial(2, 0.5).tolist()
        [0.25, 0.5, 0.25]
    """
    law = np.zeros(trials + 1)
    other = 1.0 - p if other is None else other
    if p == 0.0 or other == 0.0:
        law[trials if p else 0] = 1.0
        return law
    mode = min(trials, math.floor((trials + 1) * p))
    s = np.arange(trials)
    up = (trials - s) / (s + 1.0) * (p / other)
    with np.errstate(under="ignore", over="ignore"):
        law[mode] = 1.0
        law[mode + 1 :] = np.cumprod(up[mode:])
        law[:mode] = np.cumprod(1.0 / up[:mode][::-1])[::-1]
    return np.asarray(law / law.sum())


@compiled()
def _pmf_rows(etas: Array, out: Array) -> None:
    for row in range(etas.shape[0]):
        _pmf_into(etas[row], out[row])


@compiled()
def _pmf_into(etas: Array, law: Array) -> None:
    law[0] = 1.0
    low, high = 0, 0  # outside, probabilities are below SMALLEST and stay 0: denormal numbers are slow
    for j in range(etas.size):
        eta = etas[j]
        other = 1.0 - eta
        below = law[low]  # upwards with the old neighbour in a register: up to 1.5 times as fast as downwards
        for s in range(low + 1, high + 1):
            here = law[s]
            law[s] = here * other + below * eta
            below = here
        law[high + 1] = below * eta
        law[low] *= other
        high += 1
        while high > low and law[high] < SMALLEST:
            law[high] = 0.0
            high -= 1
        while low < high and law[low] < SMALLEST:
            law[low] = 0.0
            low += 1


@compiled()
def _product(a: Array, b: Array, size: int) -> Array:
    """Return the first entries of the convolution of two distributions."""
    out = np.zeros(size)
    if a.size > b.size:
        a, b = b, a
    for i in range(a.size):
        x = a[i]
        if x > 0.0:
            for j in range(min(b.size, size - i)):
                out[i + j] += x * b[j]
    for i in range(size):
        if out[i] < SMALLEST:
            out[i] = 0.0
    return out


@compiled()
def _leave_one_out(etas: Array, outside: Array, start: int, stop: int, out: Array) -> None:
    """Fill the rows of the members from `start` to `stop`; `outside` is the distribution of all others."""
    size = stop - start
    if size == 1:
        out[start, : outside.size] = outside
        return
    if size <= 8:  # a product per member is cheaper than the tree's allocations
        for j in range(start, stop):
            row = out[j]
            row[: outside.size] = outside
            high = outside.size - 1
            for l in range(start, stop):
                if l != j:
                    eta = etas[l]
                    row[high + 1] = row[high] * eta
                    for s in range(high, 0, -1):
                        row[s] = row[s] * (1.0 - eta) + row[s - 1] * eta
                    row[0] *= 1.0 - eta
                    high += 1
        return
    middle = start + size // 2
    left, right = np.zeros(middle - start + 1), np.zeros(stop - middle + 1)
    _pmf_into(etas[start:middle], left)
    _pmf_into(etas[middle:stop], right)
    _leave_one_out(etas, _product(outside, right, outside.size + stop - middle), start, middle, out)
    _leave_one_out(etas, _product(outside, left, outside.size + middle - start), middle, stop, out)
