"""Bounds from total variation: of the sum of the others, of the noise, and of randomized response."""

import math
from typing import Annotated, get_args

import numpy as np

from privcore.answer import Answer
from privcore.distributions.prior import Prior
from privcore.distributions.prior_finite import FinitePrior
from privcore.labels import params as label_params
from privcore.labels.bag_problems import Advantage, BagAdvantage
from privcore.labels.bounds.response import response_advantage
from privcore.labels.bounds.tails import (
    AGGREGATED,
    PRIVATE,
    at_most,
    closed_form,
    largest_probability,
    noise_variation,
    own_variance,
    uncovered,
)
from privcore.labels.problems import LabelProblem
from privcore.labels.sums.poisson_binomial import Array
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.papers import BUSA_FEKETE, WU
from privcore.published import published


def bag_variation(etas: Array, noise: float) -> float:
    r"""Return the bound on the mean advantage in one bag, given all features.

    $$\frac 1k \sum_i 2 \mu_i \min(T, e^{-V_i} I_0(V_i)), \qquad V_i = \sum_{l \ne i} \mu_l, \quad
      \mu_l = \eta_l (1 - \eta_l)$$

    Args:
        etas: Probabilities of label 1 in [0, 1], shape (k,).
        noise: Largest total variation distance T between the noisy releases for two labels, in [0, 1].

    Returns:
        Upper bound in [0, 1/2], exact up to rounding.

    Reference:
        arXiv:2406.02797v1, Remark A.15, with a constant; `largest_probability` has the inequality.

    Example:
        >>> round(bag_variation(np.full(8, 0.5), noise=1.0), 4)  # the truth is 0.1367
        0.1673
    """
    variances = etas * (1.0 - etas)
    before = np.concatenate([[0.0], np.cumsum(variances)[:-1]])
    after = np.concatenate([np.cumsum(variances[::-1])[-2::-1], [0.0]])
    others = (before + after) * (1.0 - etas.size * 2.0**-52)
    return float(np.mean(2.0 * variances * np.minimum(noise, largest_probability(others))))


def _by_variation(problem: Advantage) -> Answer:
    """Return the bound from the noise, or from the variance of the labels of the other members."""
    noise = noise_variation(problem.mechanism, problem.label_epsilon)
    if isinstance(problem, BagAdvantage):
        return at_most(
            problem, bag_variation(problem.etas, noise), "variance of the other labels, for every member"
        )
    others = (problem.bag_size - 1) * _least_variance(problem)
    mode = float(largest_probability(others))
    detail = "variance of the others" if mode < noise else "noise alone"
    return at_most(problem, 2.0 * own_variance(problem) * min(noise, mode), detail)


LabelsVariation = published(
    "labels.variation",
    get_args(Advantage),
    Direction.UPPER,
    r"""The advantage at one example is at most $2 \eta (1 - \eta)$ times a total variation distance.

    The error of the best guess changes by at most the distance of the posterior from the prior, and
    $\sum_z P(z) |P(y = 1 | z) - \eta| = \eta (1 - \eta) \sum_z |g_1(z) - g_0(z)|$. The distribution q of the
    sum of the other labels is unimodal, so its total variation distance from its shift by one is
    $\max_s q(s)$. This is at most $e^{-V} I_0(V)$, where V is the variance of the sum, or its mean over the
    prior; see `largest_probability`. Noise can only reduce the distance, and by itself limits it to T, so the
    distance is at most $\min(T, e^{-V} I_0(V))$. This is an explicit form of the rates $\sqrt{\mu / k}$ of
    the paper, without logarithms: at most $0.93765 \sqrt{\mu / (k - 1)}$.

    In a partition of N rows, the mean of a product over different rows is at most the power of the mean by
    Maclaurin's inequality, so the same bound holds with the mean variance of the rows other than the attacked
    one, at least $(N \mu - 1/4) / (N - 1)$.""",
    _by_variation,
    reference=f"{BUSA_FEKETE}, Theorems 3.3 and 3.4 and Remark A.15, made explicit",
    unless=lambda problem: uncovered(problem, (*AGGREGATED, *PRIVATE)),
    cost=closed_form,
)


def _least_variance(problem: LabelProblem) -> float:
    """Return the mean variance of the label of another member, rounded down."""
    law = problem.distribution
    least = law.label_variance * (1.0 - law.error)
    if not problem.is_partition or law.counts is None:
        return least
    rows = float(law.counts.sum())
    return max(0.0, (rows * least - 0.25) / (rows - 1.0)) * (1.0 - FEW_FUNCTIONS) if rows > 1.0 else 0.0


def published_bound(variance: float, epsilon: float) -> float:
    r"""Return $2 (1 - e^{-\varepsilon}) \mu$, the published bound for Laplace noise.

    Args:
        variance: Mean $\mu$ of $\eta (1 - \eta)$ in [0, 1/4].
        epsilon: Label differential privacy in nats, > 0.

    Returns:
        Upper bound of the additive advantage in [0, 1/2], exact up to rounding.

    Reference:
        R. Busa-Fekete et al., A Unified Analysis of Label Inference Attacks (2023), Theorem 6.4, first term.

    Example:
        >>> round(published_bound(variance=1 / 6, epsilon=1.0), 4)
        0.2107
    """
    return -2.0 * math.expm1(-epsilon) * variance


class LabelsSmoothing(Method[Advantage]):
    r"""The advantage is at most $2 \mu T$ with the total variation distance T between the noisy releases.

    The proof is that of `labels.variation` without the contribution of the other members:
    $T = 1 - e^{-\varepsilon/2}$ for Laplace noise, and $T = \tanh(\varepsilon / 2)$ for geometric noise and
    randomized response. The published form, for Laplace noise only, bounds the larger of two densities by
    their sum, which loses a factor of up to 2. Its proof holds for every eta and every bag.
    """

    name = "labels.smoothing"
    problems = get_args(Advantage)
    direction = Direction.UPPER
    reference = (
        "Busa-Fekete et al., A Unified Analysis of Label Inference Attacks (2023), Theorem 6.4, first term"
    )

    form: Annotated[str, label_params.FORM] = "tight"

    def applies(self, problem: Advantage) -> str | None:
        if self.form == "published" and problem.mechanism in ("rr", "llp-geometric"):
            return "The published form is for Laplace noise; form=tight is for every kind of noise."
        return uncovered(problem, PRIVATE)

    def cost(self, problem: Advantage) -> Cost:
        return closed_form(problem)

    def answer(self, problem: Advantage, seed: int) -> Answer:
        variance, epsilon = own_variance(problem), problem.label_epsilon
        if self.form == "published":
            return at_most(problem, published_bound(variance, epsilon), "2 (1 - e^-epsilon) mu")
        return at_most(problem, 2.0 * noise_variation(problem.mechanism, epsilon) * variance, "2 mu T")


def _by_domination(problem: Advantage) -> Answer:
    """Return the mean advantage of randomized response over the attacked examples."""
    laws: list[Prior]
    if isinstance(problem, BagAdvantage):
        laws = [FinitePrior.point(float(eta)) for eta in problem.etas]
    else:
        laws = [problem.attacked]
    bounds = [response_advantage(law, problem.label_epsilon)[1] for law in laws]
    return at_most(problem, math.fsum(bounds) / len(bounds), "randomized response with the same epsilon")


def _cost_of_members(problem: Advantage) -> Cost:
    """Return the cost of a closed form for each member."""
    cost = closed_form(problem)
    members = problem.etas.size if isinstance(problem, BagAdvantage) else 1
    return Cost(seconds=cost.seconds + 1e-4 * members, bytes=cost.bytes)


LabelsDominated = published(
    "labels.dominated",
    get_args(Advantage),
    Direction.UPPER,
    r"""The advantage is at most that of randomized response, $E(\min(\eta, 1 - \eta) - \pi)_+$.

    Given the features, the releases for the two labels of an example are a pair of distributions whose ratio
    lies within $e^{\pm \varepsilon}$. This pair is a post-processing of the two distributions of randomized
    response with $\pi = 1 / (1 + e^\varepsilon)$, so randomized response gives an attacker at least the same
    advantage. The bound depends only on the distribution of eta of the attacked example, is attained at bag
    size 1 by geometric noise, and is at most $\tanh(\varepsilon / 2) / 2$.""",
    _by_domination,
    reference=(
        f"{BUSA_FEKETE}, Theorem 3.5, with the domination in the proof of Theorem 3.3 of Kairouz, Oh and "
        "Viswanath, The Composition Theorem for Differential Privacy, ICML 2015"
    ),
    unless=lambda problem: uncovered(problem, PRIVATE),
    cost=_cost_of_members,
)


def wu_bound(epsilon: float) -> float:
    r"""Return the bound of Wu et al. on the additive advantage, for every prior.

    $$1 - \frac{2}{1 + e^\varepsilon} = \tanh(\varepsilon / 2)$$

    Args:
        epsilon: Label differential privacy in nats, > 0.

    Returns:
        Upper bound in (0, 1], exact up to rounding.

    Reference:
        R. Wu, J. P. Zhou, K. Q. Weinberger and C. Guo (2022), arXiv:2202.12968, as quoted in
        arXiv:2406.02797v1, Section 3.1, where it has $1 + \varepsilon$ for $1 + e^\varepsilon$ in one place.

    Example:
        >>> round(wu_bound(1.0), 4)
        0.4621
    """
    return math.tanh(0.5 * epsilon)


LabelsWu = published(
    "labels.wu",
    get_args(Advantage),
    Direction.UPPER,
    r"""The advantage is at most $\tanh(\varepsilon / 2)$, for every prior.

    The bound is at least twice the advantage of any mechanism, since an advantage is at most half a total
    variation distance; see `labels.dominated`.""",
    lambda problem: at_most(problem, wu_bound(problem.label_epsilon), "1 - 2 / (1 + e^epsilon)"),
    reference=f"{WU}, as quoted in {BUSA_FEKETE}, Section 3.1",
    unless=lambda problem: uncovered(problem, PRIVATE),
    cost=closed_form,
)
