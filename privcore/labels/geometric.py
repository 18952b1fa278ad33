"""Likelihoods of a sum of labels with clipped two-sided geometric noise."""

import math

import numpy as np

from privcore.labels.poisson_binomial import Array
from privcore.numerics.compiled import compiled


def released(others: Array, epsilon: float) -> tuple[Array, Array]:
    r"""Return the likelihoods of a noisy clipped count given the label of one member.

    $g_y(u) = \sum_s q(s) K(u | s + y)$ with $K(u | s) = \frac{1 - r}{1 + r} r^{|u - s|}$ inside and
    $r^{|u - s|} / (1 + r)$ at $u = 0, k$, where $r = e^{-\varepsilon}$; two one-sided recursions take O(k).

    Args:
        others: Distributions q of the sum of the other labels, shape (..., k).
        epsilon: Label differential privacy, > 0; infinity for no noise.

    Returns:
        Likelihoods of u = 0, ..., k for label 1 and for label 0, each of shape (..., k + 1).

    Example:
        >>> one, zero = released(np.array([1.0]), 1.0)  # a bag of one: randomized response
        >>> one.round(6).tolist()
        [0.268941, 0.731059]
    """
    shape = (*others.shape[:-1], others.shape[-1] + 1)
    one, zero = np.zeros(shape), np.zeros(shape)
    one[..., 1:], zero[..., :-1] = others, others
    if math.isfinite(epsilon):
        for law in (one, zero):
            _blur(law.reshape(-1, shape[-1]), math.exp(-epsilon), -math.expm1(-epsilon))
    return one, zero


@compiled()
def _blur(rows: Array, r: float, rest: float) -> None:
    """Replace the distribution in every row by that of the noisy clipped sum; `rest` is 1 - r."""
    k = rows.shape[1] - 1
    above = np.empty(k + 1)
    for i in range(rows.shape[0]):
        row = rows[i]
        b = 0.0
        for u in range(k, -1, -1):
            above[u] = b
            b = r * (b + row[u])
        a = 0.0
        for u in range(k + 1):
            a = r * a + row[u]
            row[u] = (a + above[u]) / (1.0 + r)
            if 0 < u < k:
                row[u] *= rest
