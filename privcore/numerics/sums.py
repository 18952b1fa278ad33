"""Sums of products whose bits do not depend on the number of threads of a machine."""

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
