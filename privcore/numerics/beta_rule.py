"""Gauss quadrature of smooth functions of a beta variable, to 1e-9 for up to 1e9 trials."""

from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

_TAIL = 1e-13
"""Probability that is left out at either end."""


@cache
def _legendre(number: int) -> tuple[Array, Array]:
    """Return nodes and weights on [-1, 1], which are computed once."""
    return np.polynomial.legendre.leggauss(number)


def beta_rule(a: float, b: float, number: int = 400) -> tuple[Array, Array]:
    r"""Return nodes and weights of the mean of a smooth function of $W \sim \mathrm{Beta}(a, b)$.

    The nodes are those of Gauss and Legendre between two extreme quantiles, weighted with the density, which
    is computed relative to that at the middle: quadrature in the quantile itself would be slow, since the
    quantile function has singularities at both ends.

    Args:
        a: First shape, >= 1.
        b: Second shape, >= 1.
        number: Number of nodes.

    Returns:
        Nodes in (0, 1), rising, and weights with sum 1.

    Example:
        >>> nodes, weights = beta_rule(3.0, 5.0)
        >>> float(round((nodes * weights).sum(), 10))
        0.375
    """
    left = float(scipy.special.betaincinv(a, b, _TAIL))
    right = 1.0 - float(scipy.special.betaincinv(b, a, _TAIL))
    if not left < right:
        return np.array([a / (a + b)]), np.ones(1)
    nodes, weights = _legendre(number)
    offsets = 0.5 * (right - left) * nodes
    middle = 0.5 * (left + right)
    exponents = (a - 1.0) * np.log1p(offsets / middle) + (b - 1.0) * np.log1p(-offsets / (1.0 - middle))
    density = weights * np.exp(exponents - exponents.max())
    return middle + offsets, density / density.sum()
