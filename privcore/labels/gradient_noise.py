"""Variance of the gradients of a logistic regression due to noise in the released proportions."""

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def proportion_gradient(weights: ArrayLike, features: ArrayLike, proportions: ArrayLike) -> Floats:
    r"""Return the gradient of the cross-entropy between a bag's proportion and its mean prediction.

    $$\frac{q - \alpha}{q (1 - q)} \cdot \frac1k \sum_j h_j (1 - h_j) x_j$$

    with predictions $h_j$, the logistic function of $w \cdot x_j$, and their mean q.

    Args:
        weights: w, shape (d,); an intercept is the weight of a constant feature.
        features: Features of the members of every bag, shape (..., k, d).
        proportions: alpha, shape (...); may lie outside [0, 1].

    Returns:
        Gradients, shape (..., d).

    Reference:
        arXiv:2406.02797v1, Section 2 and Theorem D.2.

    Example:
        >>> proportion_gradient([0.0], [[1.0], [3.0]], 0.75).tolist()
        [-0.5]
    """
    q, slope = _logit_slope(weights, features)
    gradients: Floats = (q - np.asarray(proportions))[..., None] * slope
    return gradients


def noise_gradient_square(weights: ArrayLike, features: ArrayLike, variances: ArrayLike) -> float:
    r"""Return the increase of the mean squared norm of the gradients of bags by unbiased noise.

    $$E \left[ \operatorname{Var}(Z \mid \alpha) \, \lVert \nabla \ln (q / (1 - q)) \rVert^2 \right]$$

    The gradient is affine in the proportion, so unbiased noise Z does not change its mean, and the value is
    the exact difference of the mean squared norms with and without noise. The paper bounds it by the largest
    variance.

    Args:
        weights: w, shape (d,).
        features: Features of the members of every bag, shape (bags, k, d).
        variances: Var(Z | alpha) of every bag, shape (bags,) or one number, such as `laplace_variance`,
            `geometric_variance` and, depending on the sum, `debiased_variance`.

    Returns:
        The mean over the bags, >= 0.

    Reference:
        arXiv:2406.02797v1, Theorem D.2; for Laplace noise, A Unified Analysis of Label Inference Attacks
        (RegML 2023), Theorem 6.2.

    Example:
        >>> noise_gradient_square([0.0], [[[1.0], [3.0]]], 0.5)
        2.0
    """
    _, slope = _logit_slope(weights, features)
    return float(np.mean(np.asarray(variances) * (slope * slope).sum(axis=-1)))


def _logit_slope(weights: ArrayLike, features: ArrayLike) -> tuple[Floats, Floats]:
    """Return the mean prediction q of every bag and the gradient of ln(q / (1 - q))."""
    x = np.asarray(features, dtype=np.float64)
    h = scipy.special.expit(x @ np.asarray(weights, dtype=np.float64))
    q = h.mean(axis=-1)
    slope = ((h * (1.0 - h))[..., None] * x).mean(axis=-2)
    return q, slope / (q * (1.0 - q))[..., None]
