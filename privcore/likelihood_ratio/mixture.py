"""Mixtures of Gaussian distributions of standard deviation 1 on a line."""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.kernel import Array


@dataclass(frozen=True)
class Mixture:
    """Mixture of N(mean, 1): weights, at least 0, and means, ascending."""

    weights: tuple[float, ...]
    means: tuple[float, ...]

    def mass(self, low: Array, high: Array) -> Array:
        """Return the probabilities of the intervals from `low` to `high`."""
        total = np.zeros_like(low)
        for weight, mean in zip(self.weights, self.means, strict=True):
            total += weight * _between(low - mean, high - mean)
        return total

    def extent(self, tail: float) -> tuple[float, float]:
        """Return the least mean, and the greatest one apart from means of total weight up to `tail`."""
        beyond = np.cumsum(self.weights[::-1])[::-1]
        return self.means[0], self.means[int(np.max(np.flatnonzero(beyond > tail), initial=0))]

    def log_density(self, z: Array) -> Array:
        """Return the logarithm of the density at z over that of N(0, 1)."""
        terms = np.stack(
            [
                math.log(weight) + mean * z - 0.5 * mean * mean
                for weight, mean in zip(self.weights, self.means, strict=True)
                if weight > 0.0
            ]
        )
        largest: Array = terms.max(axis=0)
        found: Array = largest + np.log(np.exp(terms - largest).sum(axis=0))
        return found


def _between(low: Array, high: Array) -> Array:
    """Return the probabilities of intervals under N(0, 1), as a difference of the smaller tails."""
    flip = low > 0.0
    first, last = np.where(flip, -high, low), np.where(flip, -low, high)
    between: Array = np.maximum(scipy.special.ndtr(last) - scipy.special.ndtr(first), 0.0)
    return between


def sampled(probability: float, mean: float) -> Mixture:
    """Return the mixture of N(0, 1) with N(mean, 1) at a probability in (0, 1]."""
    if probability == 1.0:
        return Mixture((1.0,), (mean,))
    pairs = sorted([(0.0, 1.0 - probability), (mean, probability)])
    return Mixture(tuple(weight for _, weight in pairs), tuple(at for at, _ in pairs))
