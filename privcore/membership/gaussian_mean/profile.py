"""Privacy profiles of the Gaussian mechanism at many thresholds, in logarithms."""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_ROOT = math.sqrt(0.5)


def log_profile(a: Array, shift: Array) -> Array:
    r"""Return $\ln(\Phi(-a) - e^{s (a + s / 2)} \Phi(-a - s))$.

    It is $\varphi(a) (m(a) - m(a + s))$ with the Mills ratio m. For short distances the difference is an
    integral of $-m'(x) = 1 - x m(x)$; a negative threshold $s (a + s / 2)$ is reflected.

    Args:
        a: Any real numbers.
        shift: Distances s of the two normal distributions in standard deviations, > 0, of the same shape.

    Returns:
        Logarithms in (-inf, 0] of the same shape; their error is about 1e-15 max(1, |log|).

    Reference:
        Balle and Wang (2018), arXiv:1805.06530v2, Theorem 8.

    Example:
        >>> np.exp(log_profile(np.array([0.5]), np.array([1.0]))).round(6).tolist()
        [0.126937]
    """
    threshold = shift * (a + 0.5 * shift)
    negative = threshold < 0.0
    log_delta = _log_positive(np.where(negative, -a - shift, a), shift)
    below = np.minimum(threshold, 0.0)
    with np.errstate(divide="ignore"):
        reflected = np.log(-np.expm1(below) + np.exp(below + log_delta))
    return np.where(negative, np.minimum(reflected, 0.0), log_delta)


def _log_positive(a: Array, shift: Array) -> Array:
    """Return the logarithms at non-negative thresholds."""
    wide = shift > 1.0
    result = np.empty_like(a)
    x, s = a[wide], shift[wide]
    # erfcx overflows for large negative arguments, which correctly makes the quotient 0.
    result[wide] = scipy.special.log_ndtr(-x) + np.log1p(
        -scipy.special.erfcx((x + s) * _ROOT) / scipy.special.erfcx(x * _ROOT)
    )
    x, s = a[~wide], shift[~wide]
    inner = x[:, None] + 0.5 * s[:, None] * (1.0 + _NODES)
    mills = math.sqrt(0.5 * math.pi) * inner * scipy.special.erfcx(inner * _ROOT)
    # For large x the difference cancels; 1 / (x^2 + 3) is then more accurate than the logarithm needs.
    slope = np.where(inner < 500.0, 1.0 - mills, 1.0 / (inner * inner + 3.0))
    result[~wide] = np.log(0.5 * s * (slope * _WEIGHTS).sum(axis=1)) - 0.5 * x * x
    result[~wide] -= 0.5 * math.log(2.0 * math.pi)
    return result
