"""Sums of products that have the same bits on every machine of a kind, whatever its number of threads."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def dot(a: Array, b: Array) -> Array:
    """Return the sums of products along the last axis, pairwise.

    A product of the linear algebra library splits long sums among its threads, so its last bits depend on how
    many there are, and the same point has to have the same bits everywhere.

    Args:
        a: Shape (..., n).
        b: Shape (n,) or (..., n).

    Example:
        >>> float(dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
        11.0
    """
    return np.asarray(np.sum(a * b, axis=-1))
