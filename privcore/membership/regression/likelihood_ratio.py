r"""Least squares on Gaussian features: draws of a record with its release, and their likelihood ratio.

The noise has standard deviation 1, and b is the error of the coefficients. The likelihood ratio depends on a
record (x, e) by $|x|^2$, by the prediction error $s = b^T x$ and by the residual $r = e - s$, and on b by
$|b|^2$. It is that of arXiv:2310.13786v6, equation 7, integrated over the rest of the design, which enters by
a chi-squared number.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.membership.gaussian_mean.gamma_ratio import log_half_ratio, stirling

Array = NDArray[np.float64]

UNIFORMS = 6
"""Uniform numbers needed for a draw."""
_DEBYE = 40.0
"""Order from which the uniform expansion of Bessel functions is used; its error there is 2e-10."""


@dataclass(frozen=True)
class RegressionDraws:
    """Independent draws, arrays of one shape.

    Attributes:
        squared_features: The squared norm of the features.
        prediction_error: The number s.
        residual: The number r.
        squared_error: The squared norm of b.
    """

    squared_features: Array
    prediction_error: Array
    residual: Array
    squared_error: Array


def draw(uniforms: Array, records: int, coordinates: int, *, member: bool) -> RegressionDraws:
    """Return draws of a release with a training record, or with a fresh record.

    In coordinates whose first axis has the direction of x, the first entry of the inverse Gram matrix is the
    reciprocal of a chi-squared number, to which $|x|^2$ is added for a training record. The other coordinates
    of b are multivariate t.

    Args:
        uniforms: Uniform numbers in (0, 1), shape (6, ...).
        records: Number n of records.
        coordinates: Number d of features, < n.
        member: Whether the record is one of the training set.
    """
    n, d = records, coordinates
    features = _chi_squared(d, uniforms[0])
    one, other = scipy.special.ndtri(uniforms[1]), scipy.special.ndtri(uniforms[2])
    if member:
        rest = _chi_squared(n - d, uniforms[3])
        first = one / np.sqrt(rest + features)
        residual = other * np.sqrt(rest / (rest + features))
        freedom = n - d + 1
    else:
        first = one / np.sqrt(_chi_squared(n - d + 1, uniforms[3]))
        residual = other - first * np.sqrt(features)
        freedom = n - d + 2
    squared_error = first**2
    if d > 1:
        turned = _chi_squared(d - 1, uniforms[4]) / _chi_squared(freedom, uniforms[5])
        squared_error = squared_error + (1.0 + first**2) * turned
    return RegressionDraws(features, first * np.sqrt(features), residual, squared_error)


def log_ratio(drawn: RegressionDraws, records: int, coordinates: int) -> Array:
    r"""Return the logarithm of the likelihood ratio of a training record against a fresh record.

    $$L = C \sqrt{1 + |b|^2} \, e^{r s} \left(T_{a + 1}(B) + \frac{Q}{2a} T_a(B)\right), \quad
      Q = |x|^2 + s^2, \; B = r^2 Q, \; a = \frac{n - d - 1}2$$
    with $T_a(B) = 2 (\sqrt B / 2)^a K_a(\sqrt B) / \Gamma(a)$ and
    $C = \Gamma(\frac n2) \Gamma(a + 1) / (\Gamma(\frac{n + 1}2) \Gamma(a + \frac12))$.

    Args:
        drawn: Draws, or any numbers in their place.
        records: Number n of records.
        coordinates: Number d of features, < n.

    Returns:
        Array of the draws' shape; its error is about 1e-10.

    Reference:
        arXiv:2310.13786v6, equation 7.
    """
    a = 0.5 * (records - coordinates - 1)
    q = drawn.squared_features + drawn.prediction_error**2
    b = drawn.residual**2 * q
    constant = log_half_ratio(0.5 * (records - coordinates)) - log_half_ratio(0.5 * records)
    # T_a / (2 a) has the limit K_0 at a = 0.
    lower = np.log(q) + (_log_bessel(a, b) - math.log(2.0 * a) if a > 0.0 else _log_bessel_zero(b))
    rest = drawn.residual * drawn.prediction_error + 0.5 * np.log1p(drawn.squared_error)
    return np.asarray(constant + rest + np.logaddexp(_log_bessel(a + 1.0, b), lower))


def _chi_squared(degrees: int, uniforms: Array) -> Array:
    """Return quantiles of a chi-squared distribution."""
    return np.asarray(2.0 * scipy.special.gammaincinv(0.5 * degrees, uniforms))


def _log_bessel_zero(b: Array) -> Array:
    """Return the logarithm of K_0 at the square root of b; b is kept away from 0."""
    root = np.sqrt(np.maximum(b, 1e-300))
    return np.asarray(np.log(scipy.special.kve(0.0, root)) - root)


def _log_bessel(order: float, b: Array) -> Array:
    """Return the logarithm of T at an order > 0; it is 0 at b = 0."""
    root = np.sqrt(b)
    if order >= _DEBYE:
        return _log_debye(order, root)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = (
            math.log(2.0)
            + order * np.log(0.5 * root)
            - math.lgamma(order)
            + np.log(scipy.special.kve(order, root))
            - root
        )
    # If K overflows, T is 1 to all digits.
    return np.where(np.isfinite(log), np.minimum(log, 0.0), 0.0)


def _log_debye(order: float, root: Array) -> Array:
    """Return the logarithm of T by the uniform expansion, without the terms that cancel the gamma function.

    Reference:
        NIST Digital Library of Mathematical Functions, 10.41.4 and 10.41.10.
    """
    z = root / order
    w = np.sqrt(1.0 + z * z)
    surplus = z * z / (1.0 + w)
    p = 1.0 / w
    t = p * p
    terms = (
        p * (3.0 - 5.0 * t) / 24.0,
        t * (81.0 + t * (-462.0 + 385.0 * t)) / 1152.0,
        p * t * (30375.0 + t * (-369603.0 + t * (765765.0 - 425425.0 * t))) / 414720.0,
        t**2
        * (4465125.0 + t * (-94121676.0 + t * (349922430.0 + t * (-446185740.0 + 185910725.0 * t))))
        / 39813120.0,
    )
    series = sum((-1.0 / order) ** (k + 1) * term for k, term in enumerate(terms))
    log = order * (np.log1p(0.5 * surplus) - surplus) - 0.5 * np.log(w) - stirling(order) + np.log1p(series)
    return np.asarray(log)
