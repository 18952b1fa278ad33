"""Bags as they usually are: a cap on the advantage that all but a negligible part of them respects."""

import math
from dataclasses import dataclass

import numpy as np

from privcore.distributions.prior import Prior
from privcore.labels.poisson_binomial import Array
from privcore.labels.tails import largest_probability, noise_variation
from privcore.numerics.bounded_mean import least_mean
from privcore.numerics.rounding import LABEL_BOUND
from privcore.numerics.sums import dot

RARE = 1e-13
"""Probability of the bags that are left out."""
_LARGEST_BAG = 10_000
"""Bags above which rounding of the laws might show in their variances."""
_MOVE = 1e-6
"""Error allowed for the variance of a law, relative and absolute."""


@dataclass(frozen=True, kw_only=True)
class Cap:
    r"""The advantage in bags whose labels have at least a certain variance.

    Given the features of the others, whose sum has the variance V, the advantage is at most
    $2 \mu \min(T, e^{-V} I_0(V))$ by `labels.variation`. V is a sum of independent variables in [0, 1/4], so
    that $P(V \le E V - t) \le \exp(-t^2 / (2 \sum E \mu_l^2))$; or by Hoeffding's inequality.

    Attributes:
        variance: Least variance of the bags that count.
        rare: Probability of the others, at most.
        advantage: Cap of the advantage in the bags that count.
    """

    variance: float
    rare: float
    advantage: float

    def counts(self, laws: Array) -> Array:
        """Return which laws of the sum of the other labels, shape (rows, k), have that variance."""
        s = np.arange(float(laws.shape[1]))
        away = s - (dot(laws, s) / laws.sum(axis=1))[:, None]  # about the mean, so that nothing cancels
        variance = dot(laws, away * away)
        return np.asarray(variance >= self.variance)


def cap(own: Prior, others: Prior, bag_size: int, mechanism: str, epsilon: float, largest: float) -> Cap:
    """Return the cap for examples of one law among others of another; it never exceeds `largest`.

    Args:
        own: Law of eta of the attacked example.
        others: Law of eta of the others.
        bag_size: Examples in a bag.
        mechanism: One with bags.
        epsilon: Of its noise.
        largest: What the advantage never exceeds.

    Reference:
        A. Maurer (2003), A bound on the deviation probability for sums of non-negative random variables,
        Theorem 2.1.
    """
    n = bag_size - 1
    mean = others.label_variance * (1.0 - others.error)
    squares = others.label_variance_square * (1.0 + others.error)
    deviation = math.sqrt(-2.0 * n * squares * math.log(RARE))
    bounded = 0.25 * n * least_mean(4.0 * mean, n, RARE) if n > 0 else 0.0
    variance = (max(n * mean - deviation, bounded) - _MOVE) / (1.0 + _MOVE)
    if variance <= 0.0 or bag_size > _LARGEST_BAG:
        return Cap(variance=-math.inf, rare=0.0, advantage=largest)
    least = (variance - _MOVE) / (1.0 + _MOVE)
    mode = min(noise_variation(mechanism, epsilon), float(largest_probability(max(0.0, least))))
    advantage = 2.0 * own.label_variance * (1.0 + own.error) * mode * (1.0 + LABEL_BOUND)
    return Cap(variance=variance, rare=RARE, advantage=min(largest, advantage))
