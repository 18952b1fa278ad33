"""Private steps with Gaussian noise and a random batch, by sampler and neighbouring relation."""

import math
from collections import defaultdict
from dataclasses import dataclass

from privcore.accountant.relation import Relation
from privcore.accountant.steps import SMALLEST_LOSS, PrivateStep, amplified, unamplified
from privcore.likelihood_ratio.batches import (
    Aligned,
    Copies,
    Opposed,
    Repeated,
    Replaced,
    SignedSample,
    Zeroed,
)
from privcore.likelihood_ratio.blend import Blend
from privcore.likelihood_ratio.distribution import RatioBracket, Resolution
from privcore.likelihood_ratio.mixture import Mixture, sampled
from privcore.likelihood_ratio.pairs import Part, bracket_of
from privcore.likelihood_ratio.ratios import Gaussian, Ratio, Sampled
from privcore.numerics.rounding import FEW_OPERATIONS
from privcore.training.counts import truncation

UNSEEN = 1e-280
"""Upper bound of the probability of counts that underflow."""


def poisson(noise: float, rate: float, relation: Relation) -> PrivateStep:
    """Return a step whose batch includes each example independently with a probability.

    Args:
        noise: Noise multiplier, > 0.
        rate: Sampling probability, in (0, 1].
        relation: Neighbouring relation; a replaced example may have the opposite gradient.

    Source:
        arXiv:2106.08567, Theorem 11; with replacement of an example, docs/accountant.md.
    """
    distance = 2.0 if relation is Relation.REPLACE_ONE else 1.0
    if rate == 1.0:
        return unamplified(noise, distance)
    ratio = _poisson(noise, rate, relation)
    return amplified(noise, distance, ratio, ratio)


def _poisson(noise: float, rate: float, relation: Relation) -> Ratio:
    if relation is Relation.REPLACE_ONE:
        return SignedSample(rate, 1.0 / noise)
    return Sampled(Gaussian(1.0 / noise), rate)


def without_replacement(noise: float, rate: float, relation: Relation) -> PrivateStep:
    """Return a step whose batch is a uniform subset of a fixed size.

    Args:
        noise: Noise multiplier, > 0.
        rate: Batch size over number of examples, in (0, 1); 1 is allowed if no example is added or removed.
        relation: Neighbouring relation.
    """
    s = 1.0 / noise
    distance = 1.0 if relation is Relation.REPLACE_SPECIAL else 2.0
    if rate == 1.0:
        return unamplified(noise, distance)
    ratio = _without_replacement(noise, rate, relation)
    if relation is Relation.REPLACE_SPECIAL:
        alone = Sampled(Gaussian(s), rate)
        return amplified(noise, distance, ratio, Opposed(rate, s), Aligned(rate, s), alone)
    return amplified(noise, distance, ratio, Sampled(Gaussian(2.0 * s), rate))


def _without_replacement(noise: float, rate: float, relation: Relation) -> Ratio:
    """Return a dominating distribution."""
    s = 1.0 / noise
    if relation is Relation.REPLACE_ONE:
        return Replaced(rate, s)
    if relation is Relation.REPLACE_SPECIAL:
        return Zeroed(rate, s)
    return Sampled(Gaussian(2.0 * s), rate)


def with_replacement(noise: float, examples: int, batch: int, relation: Relation) -> PrivateStep:
    """Return a step whose batch consists of independent uniform draws.

    An example that is replaced may get the gradient 0, so its dominating distribution holds for zero-out.

    Args:
        noise: Noise multiplier, > 0.
        examples: Number of examples, including the removed example; at least 2.
        batch: Number of draws, at least 1.
        relation: Neighbouring relation.
    """
    s, rate = 1.0 / noise, 1.0 / examples
    far = Copies(batch, rate, 2.0 * s)
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return amplified(noise, 2.0 * batch, far, far)
    if relation is Relation.REPLACE_ONE:
        return amplified(noise, 2.0 * batch, Repeated(batch, rate, s), far)
    return amplified(noise, float(batch), Repeated(batch, rate, s), Copies(batch, rate, s))


@dataclass(frozen=True)
class Shifts(Ratio):
    """Ratio of a mixture of Gaussians with non-negative means against N(0, 1).

    Attributes:
        weights: Weights of the mixture, positive; divided by their sum.
        means: Means in standard deviations, ascending.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]

    def build(self, res: Resolution) -> RatioBracket:
        total = math.fsum(self.weights)
        p = Mixture(tuple(weight / total for weight in self.weights), self.means)
        return bracket_of((Part(p, sampled(1.0, 0.0), error=FEW_OPERATIONS),), 0.0, res)

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


def truncated(noise: float, rate: float, examples: int, largest: int, relation: Relation) -> PrivateStep:
    """Return a step with Poisson sampling whose batch, if it is too large, is cut to a uniform subset.

    If the other examples do not fill the batch, the step is a Poisson sample; otherwise it is a subset of
    fixed size, which contains the example with a rate q'. The upper distribution reveals which case holds.
    The lower distribution is a Poisson sample at the marginal rate, which holds if all other gradients are 0.

    Args:
        noise: Noise multiplier, > 0.
        rate: Sampling probability before the cut, in (0, 1].
        examples: Number of examples, at least 1.
        largest: Largest batch size, at least 1.
        relation: Neighbouring relation.
    """
    if largest >= examples:
        return poisson(noise, rate, relation)
    cut = truncation(examples, rate, largest)
    parts = poisson(noise, rate, relation), without_replacement(noise, cut.rate, relation)
    ratios = tuple(part.dominating or Gaussian(math.sqrt(part.square)) for part in parts)
    upper = Blend((cut.room, cut.full + UNSEEN), ratios)
    distance = 1.0 if relation is Relation.REPLACE_SPECIAL else 2.0
    return amplified(noise, distance, upper, _poisson(noise, cut.mean, relation))
