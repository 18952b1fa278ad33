"""Draws the largest of very many normal variables, and brackets the sum over all of them."""

from typing import Any

import numpy as np
import scipy

MOST_EXACT = 256
"""As many variables are all drawn; of more, the ranks of `kept_ranks`."""

_SINGLE = 64
_SPARSE = 128


def kept_ranks(count: int) -> Any:
    """Return the ranks that are drawn: all of few, the first 64 and a geometric sequence to the last of many.

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
    """Return how many variables a kept one stands for, if all others are rounded down, and up, to kept ones.

    Args:
        ranks: Of `kept_ranks`; shape (r,).

    Returns:
        Weights for a sum from below and from above, each of shape (r,) with the last rank as their sum.

    Example:
        >>> [weights.tolist() for weights in rank_weights(np.array([1, 2, 5]))]
        [[1, 1, 3], [1, 3, 1]]
    """
    return np.diff(ranks, prepend=0), np.diff(ranks, append=ranks[-1:] + 1)


def draw_exceedances(rng: np.random.Generator, count: int, ranks: Any, size: int) -> Any:
    r"""Return $-\ln U_{(k)}$ for the k-th largest of uniform variables, for all kept ranks k.

    $U_{(k)} / U_{(j)}$ is independent of the larger ones, and $\mathrm{Beta}(m - k + 1, k - j)$ for the next
    kept rank k after j (j = 0 and U = 1 at first): for k = j + 1 an exponential variable over m - k + 1.

    Args:
        rng: Source of randomness.
        count: Number m of uniform variables.
        ranks: Of `kept_ranks(count)`; shape (r,).
        size: Number of independent draws.

    Returns:
        Rising along a row; shape (size, r).
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
    r"""Return the z with $-\ln \Phi(z)$ as given, precise in both tails.

    Args:
        exceedance: Numbers > 0, any shape.

    Example:
        >>> normal_of_exceedance(np.array([np.log(2.0)])).round(12).tolist()
        [0.0]
    """
    upper = exceedance < 0.5
    p = np.where(upper, -np.expm1(-exceedance), np.exp(-exceedance))
    return np.where(upper, -1.0, 1.0) * scipy.special.ndtri(p)
