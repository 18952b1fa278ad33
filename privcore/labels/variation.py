"""Universal bound: twice the variance of a label times the distance between the releases for 0 and 1."""

from dataclasses import dataclass
from typing import get_args

import numpy as np

from privcore.answer import Answer
from privcore.labels.bag_problems import Advantage, BagAdvantage
from privcore.labels.poisson_binomial import Array
from privcore.labels.problems import LabelProblem
from privcore.labels.tails import (
    AGGREGATED,
    PRIVATE,
    at_most,
    closed_form,
    largest_probability,
    noise_variation,
    own_variance,
    uncovered,
)
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.papers import BUSA_FEKETE


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


@dataclass(frozen=True, kw_only=True)
class LabelsVariation(Method[Advantage]):
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
    one, at least $(N \mu - 1/4) / (N - 1)$.
    """

    name = "labels.variation"
    problems = get_args(Advantage)
    direction = Direction.UPPER
    reference = f"{BUSA_FEKETE}, Theorems 3.3 and 3.4 and Remark A.15, made explicit"

    def applies(self, problem: Advantage) -> str | None:
        return uncovered(problem, (*AGGREGATED, *PRIVATE))

    def cost(self, problem: Advantage) -> Cost:
        return closed_form(problem)

    def answer(self, problem: Advantage, seed: int) -> Answer:
        noise = noise_variation(problem.mechanism, problem.label_epsilon)
        if isinstance(problem, BagAdvantage):
            return at_most(
                problem, bag_variation(problem.etas, noise), "variance of the other labels, for every member"
            )
        others = (problem.bag_size - 1) * _least_variance(problem)
        mode = float(largest_probability(others))
        detail = "variance of the others" if mode < noise else "noise alone"
        return at_most(problem, 2.0 * own_variance(problem) * min(noise, mode), detail)


def _least_variance(problem: LabelProblem) -> float:
    """Return the mean variance of the label of another member, rounded down."""
    law = problem.distribution
    least = law.label_variance * (1.0 - law.error)
    if not problem.is_partition or law.counts is None:
        return least
    rows = float(law.counts.sum())
    return max(0.0, (rows * least - 0.25) / (rows - 1.0)) * (1.0 - FEW_FUNCTIONS) if rows > 1.0 else 0.0
