"""Bound by the noise alone: the distance between noisy sums that differ by one label."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

from privcore.answer import Answer
from privcore.labels import params as label_params
from privcore.labels.bag_problems import Advantage
from privcore.labels.tails import PRIVATE, at_most, closed_form, noise_variation, own_variance, uncovered
from privcore.method import Cost, Direction, Method


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


@dataclass(frozen=True, kw_only=True)
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
