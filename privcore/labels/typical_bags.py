"""High-probability cap on the advantage over random bags."""

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
"""Probability of the bags without the cap."""
_LARGEST_BAG = 10_000
"""Largest bag size for which rounding of the probabilities is negligible in their variances."""
_MOVE = 1e-6
"""Error allowed for a computed variance, relative and absolute."""


@dataclass(frozen=True, kw_only=True)
class Cap:
    r"""Cap on the advantage in bags whose other labels have at least a certain variance.

    Given the features of the others, whose sum has the variance V, the advantage is at most
    $2 \mu \min(T, e^{-V} I_0(V))$ by `labels.variation`. V is a sum of independent variables in [0, 1/4], so
    $P(V \le E V - t) \le \exp(-t^2 / (2 \sum E \mu_l^2))$; Hoeffding's inequality is used instead if it is
    better.

    Attributes:
        variance: Least variance of the other labels for which the cap holds.
        rare: Upper bound of the probability of all other bags.
        advantage: Cap on the advantage in bags with at least this variance.
    """

    variance: float
    rare: float
    advantage: float

    def counts(self, laws: Array) -> Array:
        """Return a mask of the rows, distributions of the sum of the others, with at least this variance."""
        s = np.arange(float(laws.shape[1]))
        away = s - (dot(laws, s) / laws.sum(axis=1))[:, None]  # about the mean, which avoids cancellation
        variance = dot(laws, away * away)
        return np.asarray(variance >= self.variance)


def cap(own: Prior, others: Prior, bag_size: int, mechanism: str, epsilon: float, largest: float) -> Cap:
    """Return the cap for attacked examples and other members of two priors; it never exceeds `largest`.

    Args:
        own: Distribution of eta of the attacked example.
        others: Distribution of eta of the other members.
        bag_size: Number of examples in a bag.
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise.
        largest: Upper bound of the advantage in every bag.

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
