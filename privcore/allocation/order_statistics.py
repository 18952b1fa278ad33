"""Sampling of the largest of many normal variables, and brackets of the sum over all of them."""

from typing import Any

import numpy as np
import scipy

MOST_EXACT = 256
"""Largest number of variables that are all drawn; of more, only the ranks of `kept_ranks` are."""

_SINGLE = 64
_SPARSE = 128


def kept_ranks(count: int) -> Any:
    """Return the drawn ranks: all ranks of few variables; of many, 1 to 64 and a geometric sequence.

    Args:
        count: Number of variables, >= 0.

    Returns:
        Rising ranks, 1 for the largest; the last is `count`. Shape (r,), r <= 256.

    Example:
        >>> len(kept_ranks(10**9)), kept_ranks(4).tolist()
        (192, [1, 2, 3, 4])
    """
    if count <= MOST_EXACT:
        return np.arange(1, count + 1)
    sparse = np.unique(np.rint(np.geomspace(_SINGLE + 1, count, _SPARSE)).astype(np.int64))
    return np.concatenate((np.arange(1, _SINGLE + 1), sparse))


def rank_weights(ranks: Any) -> tuple[Any, Any]:
    """Return the weights of the kept variables if all others are rounded down, or up, to kept ones.

    Args:
        ranks: Ranks from `kept_ranks`; shape (r,).

    Returns:
        Weights for a lower and an upper bound of a sum, each of shape (r,); each sums to the last rank.

    Example:
        >>> [weights.tolist() for weights in rank_weights(np.array([1, 2, 5]))]
        [[1, 1, 3], [1, 3, 1]]
    """
    return np.diff(ranks, prepend=0), np.diff(ranks, append=ranks[-1:] + 1)


def draw_exceedances(rng: np.random.Generator, count: int, ranks: Any, size: int) -> Any:
    r"""Return $-\ln U_{(k)}$ for the k-th largest of uniform variables, for all kept ranks k.

    $U_{(k)} / U_{(j)}$ is independent of the larger variables, and $\mathrm{Beta}(m - k + 1, k - j)$ for the
    next kept rank k after j (initially j = 0 and U = 1). For k = j + 1, its negative logarithm is an
    exponential variable divided by m - k + 1.

    Args:
        rng: Source of randomness.
        count: Number m of uniform variables.
        ranks: Ranks from `kept_ranks(count)`; shape (r,).
        size: Number of independent draws.

    Returns:
        Values that increase along each row; shape (size, r).
    """
    gaps, left = np.diff(ranks, prepend=0), count - ranks + 1.0
    steps = rng.standard_exponential((size, len(ranks)))
    steps /= left
    wide = gaps > 1
    if wide.any():
        ratio = rng.beta(gaps[wide], left[wide], (size, int(wide.sum())))
        steps[:, wide] = -np.log1p(-ratio)
    return np.cumsum(steps, axis=1, out=steps)


def normal_of_exceedance(exceedance: Any) -> Any:
    r"""Return the z with the given $-\ln \Phi(z)$, accurate in both tails.

    Args:
        exceedance: Numbers > 0, of any shape.

    Example:
        >>> normal_of_exceedance(np.array([np.log(2.0)])).round(12).tolist()
        [0.0]
    """
    upper = exceedance < 0.5
    p = np.where(upper, -np.expm1(-exceedance), np.exp(-exceedance))
    return np.where(upper, -1.0, 1.0) * scipy.special.ndtri(p)
