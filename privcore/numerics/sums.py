"""Sums of products whose bits do not depend on the number of threads of a machine."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def dot(a: Array, b: Array) -> Array:
    """Return the sums of products along the last axis, pairwise.

    The linear algebra library splits long sums among its threads, so the last bits of its products depend on
    the number of threads. The same point must have the same bits on all machines of a kind.

    Args:
        a: Shape (..., n).
        b: Shape (n,) or (..., n).

    Example:
        >>> float(dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
        11.0
    """
    return np.asarray(np.sum(a * b, axis=-1))


def of_groups(terms: Array, starts: NDArray[np.int64]) -> Array:
    """Return the sums of consecutive groups of terms, pairwise, so that they err by at most 64 roundings.

    `np.add.reduceat` adds one term after the other, so its error grows with the size of a group.

    Args:
        terms: Shape (n,), of one sign.
        starts: Place of the first term of each group, rising from 0.

    Example:
        >>> of_groups(np.array([1.0, 2.0, 4.0]), np.array([0, 2])).tolist()
        [3.0, 4.0]
    """
    return np.array([terms[start:end].sum() for start, end in pairwise([*starts.tolist(), terms.size])])
