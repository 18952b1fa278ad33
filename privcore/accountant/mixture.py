"""Private steps with Gaussian noise around a random multiple of the clipping norm."""

import math
from collections import defaultdict
from dataclasses import dataclass

from privcore.accountant.steps import SMALLEST_LOSS, PrivateStep, amplified
from privcore.likelihood_ratio.parts import Part
from privcore.likelihood_ratio.ratios import Gaussian, OfOutputs
from privcore.likelihood_ratio.steps import Mixture, sampled
from privcore.numerics.rounding import FEW_OPERATIONS


@dataclass(frozen=True)
class Shifts(OfOutputs):
    """Ratio of a mixture of Gaussians with non-negative means against N(0, 1).

    Attributes:
        weights: Weights of the mixture, positive; divided by their sum.
        means: Means in standard deviations, ascending.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]

    def parts(self) -> tuple[tuple[Part, ...], float]:
        total = math.fsum(self.weights)
        p = Mixture(tuple(weight / total for weight in self.weights), self.means)
        return (Part(p, sampled(1.0, 0.0), error=FEW_OPERATIONS),), 0.0

    @property
    def width(self) -> float:
        return max(self.means)


def mixture(noise: float, means: list[float], weights: list[float]) -> PrivateStep:
    """Return a step that shifts the noise by a random multiple, at least 0, of the clipping norm.

    Args:
        noise: Standard deviation of the noise, > 0.
        means: Shifts, at least 0.
        weights: Their probabilities.
    """
    shares = defaultdict[float, float](float)
    for mean, weight in zip(means, weights, strict=True):
        if weight > 0.0:
            shares[mean / noise] += weight
    kept = sorted(shares.items())
    if kept[-1][0] < SMALLEST_LOSS:  # the likelihood ratios would be rounded to 1
        return amplified(1.0, SMALLEST_LOSS, Gaussian(SMALLEST_LOSS))
    ratio = Shifts(tuple(weight for _, weight in kept), tuple(mean for mean, _ in kept))
    return amplified(1.0, kept[-1][0], ratio, ratio)
