"""Random releases of labels, debiased: their means are the proportions of labels 1 in the bags."""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from privcore.labels import params as label_params
from privcore.labels.bounds.response import outputs
from privcore.labels.problems import LabelProblem
from privcore.labels.sums import noisy_sums
from privcore.labels.sums.poisson_binomial import Array, pmf
from privcore.labels.sums.rows import exact_at

_POSITIVE = replace(label_params.LABEL_EPSILON, lower_open=True)
Labels = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Release:
    """Bags of examples, each with an unbiased estimate of its proportion of labels 1.

    Attributes:
        members: Positions of the examples of every bag, shape (bags, k).
        targets: Estimated proportions, shape (bags,); noise can put them outside [0, 1].
    """

    members: Labels
    targets: Floats


def release(
    mechanism: str, labels: Labels, bag_size: int, label_epsilon: float, rng: np.random.Generator
) -> Release:
    """Return one run of the mechanism on these labels, debiased.

    Args:
        mechanism: `rr`, `llp`, `llp-laplace` or `llp-geometric`.
        labels: Labels 0 or 1, shape (n,), n >= bag_size.
        bag_size: Number k >= 1 of examples in a bag; the n mod k remaining examples are dropped.
        label_epsilon: Label differential privacy in nats, in (0, 700]; ignored for `llp`.
        rng: Source of the bags and of the noise.

    Returns:
        The bags with their debiased proportions.

    Raises:
        DomainError: A parameter is outside its domain.
        ValueError: The mechanism releases neither labels nor sums.

    Reference:
        arXiv:2406.02797v1, Section 2 and Appendix C; for Laplace noise, A Unified Analysis of Label Inference
        Attacks (RegML 2023), Section 6.

    Example:
        >>> drawn = release("llp", np.array([0, 1, 1, 0, 1]), 2, math.inf, np.random.default_rng(0))
        >>> drawn.members.tolist(), drawn.targets.tolist()
        ([[2, 4], [3, 0]], [1.0, 0.0])
    """
    members = form_bags(len(labels), bag_size, rng)
    sums = labels[members].sum(axis=1)
    match mechanism:
        case "rr":
            targets = debiased_proportion(randomized_response(sums, label_epsilon, rng), 1, label_epsilon)
        case "llp":
            targets = sums / bag_size
        case "llp-laplace":
            targets = laplace_sums(sums, label_epsilon, rng) / bag_size
        case "llp-geometric":
            noisy = geometric_sums(sums, bag_size, label_epsilon, rng)
            targets = debiased_proportion(noisy, bag_size, label_epsilon)
        case _:
            raise ValueError(
                f"Expected a mechanism that releases labels or sums, got mechanism={mechanism!r}."
            )
    return Release(members=members, targets=targets)


def form_bags(examples: int, bag_size: int, rng: np.random.Generator) -> Labels:
    """Return a random partition into full bags, shape (examples // bag_size, bag_size).

    Example:
        >>> form_bags(7, 3, np.random.default_rng(0)).shape
        (2, 3)
    """
    k = label_params.BAG_SIZE.check(bag_size)
    bags = examples // k
    return rng.permutation(examples)[: bags * k].reshape(bags, k)


def randomized_response(labels: Labels, epsilon: float, rng: np.random.Generator) -> Labels:
    r"""Return labels 0 or 1, each flipped with probability $1 / (1 + e^\varepsilon)$.

    Example:
        >>> randomized_response(np.array([0, 1, 1]), 700.0, np.random.default_rng(0)).tolist()
        [0, 1, 1]
    """
    flipped = rng.random(labels.shape) < scipy.special.expit(-label_params.LABEL_EPSILON.check(epsilon))
    return np.where(flipped, 1 - labels, labels)


def laplace_sums(sums: Labels, epsilon: float, rng: np.random.Generator) -> Floats:
    r"""Return the sums with Laplace noise of scale $1 / \varepsilon$, without clipping.

    Example:
        >>> laplace_sums(np.array([0, 3]), 700.0, np.random.default_rng(0)).round(1).tolist()
        [0.0, 3.0]
    """
    return sums + rng.laplace(scale=1.0 / _POSITIVE.check(epsilon), size=sums.shape)


def geometric_sums(sums: Labels, bag_size: int, epsilon: float, rng: np.random.Generator) -> Labels:
    r"""Return the sums with two-sided geometric noise, clipped to {0, ..., k}.

    The noise d has probability $\tanh(\varepsilon / 2) e^{-\varepsilon |d|}$; it is the difference of two
    independent geometric variables with success probability $1 - e^{-\varepsilon}$.

    Example:
        >>> geometric_sums(np.array([0, 3]), 4, 700.0, np.random.default_rng(0)).tolist()
        [0, 3]
    """
    success = -math.expm1(-_POSITIVE.check(epsilon))
    noise = rng.geometric(success, sums.shape) - rng.geometric(success, sums.shape)
    # Clipping the noise to [-k, k] first does not change the result, and prevents an overflow of the sum.
    noisy: Labels = np.clip(sums + np.clip(noise, -bag_size, bag_size), 0, bag_size)
    return noisy


def debiased_proportion(sums: ArrayLike, bag_size: int, epsilon: float) -> Floats:
    r"""Return unbiased proportions from sums with clipped geometric noise, or labels by randomized response.

    $$\frac{u}{k} + \frac{[u = k] - [u = 0]}{k (e^\varepsilon - 1)}$$

    is the conditional mean of the proportion before clipping given the clipped sum u, since the part of the
    noise beyond a clipping limit is again geometric. For k = 1 it is debiased randomized response, with
    values $-1 / (e^\varepsilon - 1)$ and $e^\varepsilon / (e^\varepsilon - 1)$. The paper prints the
    correction without its factor 1/k, which is correct for k = 1 only.

    Args:
        sums: Released sums u in {0, ..., k}.
        bag_size: k >= 1.
        epsilon: Label differential privacy in nats, in (0, 700] or inf.

    Returns:
        Real numbers with mean s / k given the true sum s, for every s.

    Raises:
        DomainError: epsilon is outside its domain.

    Reference:
        arXiv:2406.02797v1, Appendix C, corrected.

    Example:
        >>> debiased_proportion([0, 1], 1, 1.0).round(4).tolist()
        [-0.582, 1.582]
    """
    u = np.asarray(sums)
    ends = (u == bag_size).astype(np.float64) - (u == 0)
    proportions: Floats = (u + ends * _odds(epsilon)) / bag_size
    return proportions


def debiased_variance(sums: ArrayLike, bag_size: int, epsilon: float) -> Floats:
    r"""Return the variance of the debiased proportion given the true sum s, for clipped geometric noise.

    $$\frac{r}{(1 - r)^2 k^2} \left(2 - \frac{r^s + r^{k - s}}{1 + r}\right), \quad r = e^{-\varepsilon}$$

    For k = 1 it is $r / (1 - r)^2$ for both labels, the variance of debiased randomized response.

    Args:
        sums: True sums s in {0, ..., k}.
        bag_size: k >= 1.
        epsilon: Label differential privacy in nats, in (0, 700] or inf.

    Returns:
        Variances, >= 0; exact up to rounding.

    Raises:
        DomainError: epsilon is outside its domain.

    Reference:
        Derived here; the clipped noise is defined in arXiv:2406.02797v1, Section 2.

    Example:
        >>> debiased_variance([0, 1], 1, 1.0).round(4).tolist()
        [0.9207, 0.9207]
    """
    s = np.asarray(sums)
    r = math.exp(-_POSITIVE.check(epsilon))
    at_ends = (np.exp(-epsilon * s) + np.exp(-epsilon * (bag_size - s))) / (1.0 + r)
    variances: Floats = 0.5 * geometric_variance(bag_size, epsilon) * (2.0 - at_ends)
    return variances


def geometric_variance(bag_size: int, epsilon: float) -> float:
    r"""Return the variance of a proportion with two-sided geometric noise, without clipping.

    It is $2 r / ((1 - r)^2 k^2)$ with $r = e^{-\varepsilon}$.

    Example:
        >>> round(geometric_variance(2, 1.0), 4)
        0.4603
    """
    odds = _odds(epsilon)
    return 2.0 * (odds / bag_size) * ((1.0 + odds) / bag_size)


def laplace_variance(bag_size: int, epsilon: float) -> float:
    r"""Return the variance of a proportion with Laplace noise on its sum, $2 / (k \varepsilon)^2$.

    Example:
        >>> laplace_variance(8, 0.25)
        0.5
    """
    scale = 1.0 / (bag_size * _POSITIVE.check(epsilon))
    return 2.0 * scale * scale


def _odds(epsilon: float) -> float:
    """Return 1 / (e^epsilon - 1), the mean of the geometric noise beyond a clipping limit."""
    return 1.0 / math.expm1(_POSITIVE.check(epsilon))


_CHUNK = 2**20
"""Number of probabilities that are held in memory at a time."""


@dataclass(frozen=True, kw_only=True)
class Releases:
    r"""Releases about one member of each of `number` random bags; arrays have the shape (number,).

    Attributes:
        etas: Probability of label 1 given the features, which is the prior of the attacker.
        ratios: Multiplicative advantage $\ln g_1(z) - \ln g_0(z)$ of the released value z, in nats; infinite
            if z reveals the label.
        posteriors: Probability of label 1 given the features and the release.
        advantages: Additive advantage given the features of the bag, as a mean over the releases.
    """

    etas: Array
    ratios: Array
    posteriors: Array
    advantages: Array


def releases(problem: LabelProblem, number: int, seed: int) -> Releases:
    r"""Return posteriors and advantages for simulated releases about one member of each of `number` bags.

    Features, labels and noise are drawn; the posterior $\eta g_1 / (\eta g_1 + (1 - \eta) g_0)$ and the
    advantage $\sum_z (\eta g_1 - (1 - \eta) g_0)_+$ (or its mirror image) are exact given the features.

    Args:
        problem: Mechanism and prior; the quantity in question does not matter.
        number: Number of bags, >= 1.
        seed: Seed of all random numbers.

    Returns:
        Independent samples, exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Lemma A.1 and Figures 1 and 2.

    Example:
        >>> from privcore.labels.problems import LabelAdvantage
        >>> drawn = releases(LabelAdvantage(mechanism="llp", prior="point(0.5)", bag_size=1), 3, seed=1)
        >>> drawn.posteriors.tolist(), drawn.advantages.tolist()
        ([0.0, 1.0, 1.0], [0.5, 0.5, 0.5])
    """
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK // problem.bag_size)
    sizes = [min(rows, number - start) for start in range(0, number, rows)]
    parts = [_some(problem, size, rng) for size in sizes]
    etas, one, zero, advantages = (np.concatenate(column) for column in zip(*parts, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(one) - np.log(zero)
        posteriors = etas * one / (etas * one + (1.0 - etas) * zero)
    silent = one + zero == 0.0  # both likelihoods underflow, a negligible event
    return Releases(
        etas=etas,
        ratios=np.clip(np.where(silent, 0.0, ratios), -problem.label_epsilon, problem.label_epsilon),
        posteriors=np.where(silent, etas, posteriors),
        advantages=advantages,
    )


def _some(problem: LabelProblem, bags: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Return etas of the first members, likelihoods of the releases for both labels, and advantages."""
    bag = problem.distribution.draw(rng, (bags, problem.bag_size))
    labels = (rng.random(bag.shape) < bag).astype(np.int64)
    etas, sums, epsilon = bag[:, 0], labels.sum(axis=1), problem.label_epsilon
    match problem.mechanism:
        case "none":
            return etas, np.ones(bags), np.ones(bags), np.zeros(bags)
        case "rr":
            one, zero = (np.broadcast_to(g[::-1], (bags, 2)) for g in outputs(epsilon))
            return etas, *_at(one, zero, randomized_response(sums, epsilon, rng)), exact_at(etas, one, zero)
        case "llp-laplace":
            laws = pmf(bag[:, 1:])
            noisy = laplace_sums(sums, epsilon, rng)
            pairs = [
                noisy_sums.density_at(law, epsilon, float(z)) for law, z in zip(laws, noisy, strict=True)
            ]
            densities = np.array(pairs)
            return etas, densities[:, 0], densities[:, 1], noisy_sums.advantages(laws, epsilon, etas)
        case mechanism:
            noisy_counts = sums if mechanism == "llp" else geometric_sums(sums, bag.shape[1], epsilon, rng)
            one, zero = noisy_sums.released(pmf(bag[:, 1:]), epsilon)
            return etas, *_at(one, zero, noisy_counts), exact_at(etas, one, zero)


def _at(one: Array, zero: Array, released: Labels) -> tuple[Array, Array]:
    """Return the likelihoods of the released outputs, one for each row."""
    place = (np.arange(released.size), released)
    return one[place], zero[place]
