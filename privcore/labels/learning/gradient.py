"""Variance of released proportions, and of the gradients of a logistic regression that is trained on them."""

import math
import sys
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from privcore.distributions.prior_notation import class_rows, probabilities
from privcore.labels.learning.release import debiased_variance, geometric_variance, laplace_variance
from privcore.labels.learning.utility_problems import GradientSquare, NoiseVariance
from privcore.labels.sums.poisson_binomial import pmf, relative_error
from privcore.method import Cost, Direction
from privcore.numerics.rounding import LABEL_BOUND, UNIT
from privcore.papers import BUSA_FEKETE
from privcore.parameter import SMALLEST_NORMAL
from privcore.published import published

_MOST_LOGIT, _MOST_FEATURE = 700.0, 1e100
_LEAST_EPSILON = 1e-150
"""Below this, the square of 1 / epsilon exceeds the largest double."""
_WORKSHOP = "A Unified Analysis of Label Inference Attacks (RegML 2023)"

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


def largest_variance(mechanism: str, bag_size: int, epsilon: float) -> float:
    r"""Return the largest variance, over all labels of a bag, of the debiased released proportion.

    It is 0 for exact sums, $2 / (k \varepsilon)^2$ for Laplace noise, and that of `debiased_variance` at half
    of the labels for clipped geometric noise; randomized response is its case k = 1.

    Args:
        mechanism: `rr`, `llp`, `llp-laplace` or `llp-geometric`.
        bag_size: Number k of examples in a bag.
        epsilon: Label differential privacy in nats; infinite for `llp`, and infinitely noisy at 0.

    Example:
        >>> [round(largest_variance(m, 1, 1.0), 4) for m in ("rr", "llp-geometric", "llp-laplace")]
        [0.9207, 0.9207, 2.0]
    """
    if mechanism == "llp":
        return 0.0
    if epsilon < _LEAST_EPSILON:
        return math.inf
    if mechanism == "llp-laplace":
        return laplace_variance(bag_size, epsilon)
    return float(debiased_variance([bag_size // 2], bag_size, epsilon)[0])


def _finite(low: float, high: float) -> tuple[float, float]:
    """Return both ends; a lower end that overflows is the largest double."""
    return min(low, sys.float_info.max), high


def _variance_ends(problem: NoiseVariance) -> tuple[float, float]:
    """Return both ends of the variance; for a tiny epsilon, only that it exceeds the largest square."""
    value = largest_variance(problem.mechanism, problem.bag_size, problem.label_epsilon)
    if problem.label_epsilon == 0.0:
        return math.inf, math.inf
    if math.isinf(value):
        return 1.0 / _LEAST_EPSILON, math.inf
    lost = SMALLEST_NORMAL if value > 0.0 else 0.0  # a subnormal value lacks digits
    return max(0.0, value - lost), value + lost


LabelsVariance = published(
    "labels.variance",
    NoiseVariance,
    Direction.ENCLOSURE,
    r"""Closed forms of the variance of the debiased proportion, at the labels with the largest one.

    $2 / (k \varepsilon)^2$ for Laplace noise; for clipped geometric noise, with $r = e^{-\varepsilon}$,
    $r (2 - (r^s + r^{k - s}) / (1 + r)) / ((1 - r)^2 k^2)$ at the sum s = floor(k / 2), by convexity.""",
    _variance_ends,
    reference=f"{BUSA_FEKETE}, Appendix D, with the closed form of debiased_variance",
    slack=LABEL_BOUND,
)

LabelsUnclipped = published(
    "labels.unclipped",
    NoiseVariance,
    Direction.UPPER,
    r"""Clipping and debiasing reduce the variance $2 r / ((1 - r)^2 k^2)$ of geometric noise.""",
    lambda problem: (
        geometric_variance(problem.bag_size, problem.label_epsilon)
        if problem.label_epsilon > _LEAST_EPSILON
        else math.inf
    ),
    reference=f"{BUSA_FEKETE}, Appendix D, below Theorem D.2",
    unless=lambda problem: (
        None
        if problem.mechanism in ("rr", "llp-geometric")
        else "The bound is for geometric noise, and for randomized response as the case of one label."
    ),
    slack=LABEL_BOUND,
    offset=SMALLEST_NORMAL,
)


def gradient_square(problem: GradientSquare, variance: tuple[float, float]) -> tuple[float, float]:
    r"""Return bounds of the mean squared norm of the gradient of one bag.

    $$\left((q - \bar\eta)^2 + \frac1{k^2} \sum_j \eta_j (1 - \eta_j) + \operatorname{Var} Z\right)
      \lVert \nabla \ln (q / (1 - q)) \rVert^2$$

    The gradient is affine in the released proportion, and the noise is unbiased given the labels. So the mean
    gradient is that without noise, and the variance of the noise is added to that of the proportion.

    Args:
        problem: Bag, model and mechanism.
        variance: Bounds of the mean variance of the noise given the labels.
    """
    x, w = np.array(class_rows(problem.features)), np.array(probabilities(problem.weights))
    logits, k = (x * w).sum(axis=1), problem.bag_size
    # Relative error of a prediction, of its complement, and of means of k of them.
    error = (x.shape[1] + 8.0) * UNIT * _largest_logit(problem) + (k + 32.0) * UNIT
    h, g = scipy.special.expit(logits), scipy.special.expit(-logits)
    q, p = float(h.mean()), float(g.mean())
    terms = (h / (k * q) * (g / p))[:, None] * x  # h * g x may underflow
    slope, size = np.abs(terms.sum(axis=0)), np.abs(terms).sum(axis=0) * 6.0 * error
    etas = problem.etas
    away = q - float(etas.mean())
    doubt = 2.0 * error * (q + float(etas.mean()))
    spread = float((etas * (1.0 - etas)).sum()) / k**2
    low = max(0.0, abs(away) - doubt) ** 2 + spread * (1.0 - 4.0 * error) + variance[0]
    high = (abs(away) + doubt) ** 2 + spread * (1.0 + 4.0 * error) + variance[1]
    ends = np.maximum(0.0, slope - size) * math.sqrt(low), (slope + size) * math.sqrt(high)
    with np.errstate(over="ignore"):  # an upper end may be infinite
        return float(np.square(ends[0]).sum()), float(np.square(ends[1]).sum())


def _largest_logit(problem: GradientSquare) -> float:
    """Return the largest sum of absolute products of features and weights."""
    weights = probabilities(problem.weights)
    return max(
        math.fsum(abs(w * x) for w, x in zip(weights, row, strict=True))
        for row in class_rows(problem.features)
    )


def _mean_variance(problem: GradientSquare) -> tuple[float, float]:
    """Return bounds of the mean over the labels of the variance of the noise."""
    epsilon, k = problem.label_epsilon, problem.bag_size
    error = LABEL_BOUND
    if problem.mechanism == "llp-geometric" and epsilon >= _LEAST_EPSILON:
        value = float(pmf(problem.etas) @ debiased_variance(np.arange(k + 1), k, epsilon))
        error += relative_error(k)
    else:
        value = largest_variance(problem.mechanism, k, epsilon)
    return value * (1.0 - error), value * (1.0 + error)


def _most_variance(problem: GradientSquare) -> tuple[float, float]:
    """Return the trivial lower bound, and the largest variance over the labels."""
    most = largest_variance(problem.mechanism, problem.bag_size, problem.label_epsilon)
    return 0.0, most * (1.0 + LABEL_BOUND)


def _of_gradient(
    variance: Callable[[GradientSquare], tuple[float, float]],
) -> Callable[[GradientSquare], tuple[float, float]]:
    """Return the formula of the mean square with bounds of the variance of the noise."""
    return lambda problem: _finite(*gradient_square(problem, variance(problem)))


def _too_large(problem: GradientSquare) -> str | None:
    """Return the reason if predictions underflow, or the noise is infinite."""
    if _largest_logit(problem) > _MOST_LOGIT:
        return f"The method needs features and weights with products of at most {_MOST_LOGIT:g}."
    if max(abs(x) for row in class_rows(problem.features) for x in row) > _MOST_FEATURE:
        return f"The method needs features of at most {_MOST_FEATURE:g}."
    if problem.label_epsilon < _LEAST_EPSILON:
        return f"The method needs label_epsilon >= {_LEAST_EPSILON:g}."
    return None


def _cost(problem: GradientSquare) -> Cost:
    k = float(problem.bag_size)
    return Cost(seconds=1e-3 + 1e-4 * k + 3e-8 * k * k, bytes=1e6 + 1000.0 * k)


LabelsGradient = published(
    "labels.gradient",
    GradientSquare,
    Direction.ENCLOSURE,
    r"""Unbiased noise adds its variance times $\lVert \nabla \ln (q / (1 - q)) \rVert^2$ to the mean square.

    The mean gradient stays the same (Theorems 6.1 and D.1). For clipped geometric noise the variance is the
    mean over the sums of the labels.""",
    _of_gradient(_mean_variance),
    reference=f"{BUSA_FEKETE}, Theorem D.2, (17); for Laplace noise, {_WORKSHOP}, Theorem 6.2",
    unless=_too_large,
    slack=LABEL_BOUND,
    offset=SMALLEST_NORMAL,
    cost=_cost,
)

LabelsNoisiest = published(
    "labels.noisiest",
    GradientSquare,
    Direction.UPPER,
    r"""The published bound has the largest variance over all labels instead of its mean.""",
    _of_gradient(_most_variance),
    reference=f"{BUSA_FEKETE}, Theorem D.2, (18)",
    unless=_too_large,
    slack=LABEL_BOUND,
    offset=SMALLEST_NORMAL,
    cost=_cost,
)
