"""Ratios of one step with a random batch: batches of fixed size, and several copies of an example.

The noise has standard deviation 1, and clipped gradients have norm at most s, the inverse noise multiplier.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from privcore.likelihood_ratio.blend import Blend
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.mixture import Mixture, sampled
from privcore.likelihood_ratio.pairs import Part, bracket_of
from privcore.likelihood_ratio.ratios import Ratio
from privcore.numerics.binomial import window
from privcore.numerics.rounding import BINOMIAL_WINDOW, UNIT

MOST_COPIES = 1000
"""Largest number of counts; a batch with more copies of an example is not enclosed."""
SMALLEST_EXPONENT = -100.0
"""Least logarithm of the probability of 0 from which the others are computed."""
TINY = 1e-290
"""Smaller probabilities of counts are left out, which changes no bound at an epsilon below 300."""


@dataclass(frozen=True)
class SignedSample(Ratio):
    """Ratio of a Poisson-sampled step in which the neighbour has the opposite gradient.

    P = (1 - q) N(0) + q N(s), Q = (1 - q) N(0) + q N(-s).
    """

    probability: float
    s: float

    def build(self, res: Resolution) -> RatioBracket:
        part = Part(sampled(self.probability, self.s), sampled(self.probability, -self.s))
        return bracket_of((part,), 0.0, res)

    @property
    def width(self) -> float:
        return 2.0 * self.s


@dataclass(frozen=True)
class Replaced(Ratio):
    r"""Ratio with the largest profile of a step with a batch of fixed size, if one example is replaced.

    With W = (1 - q) + q Y, Y lognormal of 2 s, its profile is $E(W - \kappa)_+$ for $\kappa \ge 1$, and
    $1 - \kappa + \kappa f(1/\kappa)$ below: the ratio of (1 - q) N(0) + q N(2 s) against N(0) above 1, its
    mirror image below 1, and the mass (1 - q)(2 Phi(s) - 1) at 1.

    Source: arXiv:2106.08567, Theorem 11; arXiv:1807.01647, Theorem 9.
    """

    probability: float
    s: float

    def build(self, res: Resolution) -> RatioBracket:
        q, s = self.probability, self.s
        above = Part(sampled(q, 2.0 * s), sampled(1.0, 0.0), low=s)
        below = Part(sampled(1.0, 0.0), sampled(q, -2.0 * s), high=-s)
        atom = (1.0 - q) * float(scipy.special.erf(s / math.sqrt(2.0)))
        return bracket_of((below, above), atom, res)

    @property
    def width(self) -> float:
        return 2.0 * self.s


@dataclass(frozen=True)
class Zeroed(Ratio):
    r"""Ratio with the largest profile of a step with a batch of fixed size, if one gradient becomes 0.

    Above 1, it is the ratio of (1 - q) N(0) + q N(2 s) against (1 - q) N(0) + q N(s), where all other
    gradients are opposed; below 1, that of N(0) against (1 - q) N(0) + q N(-s), where all others are equal.
    The rest of the mass is at 1.
    """

    probability: float
    s: float

    def build(self, res: Resolution) -> RatioBracket:
        q, s = self.probability, self.s
        above = Part(sampled(q, 2.0 * s), sampled(q, s), low=1.5 * s)
        below = Part(sampled(1.0, 0.0), sampled(q, -s), high=-0.5 * s)
        atom = (1.0 - q) * float(scipy.special.ndtr(1.5 * s) - scipy.special.ndtr(-0.5 * s))
        return bracket_of((below, above), atom, res)

    @property
    def width(self) -> float:
        return 2.0 * self.s


@dataclass(frozen=True)
class Opposed(Ratio):
    """Ratio of a step with a batch of fixed size, if a gradient becomes 0 and all others are opposed to it.

    P = (1 - q) N(0) + q N(2 s), Q = (1 - q) N(0) + q N(s). The ratio does not increase with the output, so
    only the lower distribution is valid.
    """

    probability: float
    s: float

    def build(self, res: Resolution) -> RatioBracket:
        q, s = self.probability, self.s
        if q == 1.0:
            return bracket_of((Part(sampled(1.0, 2.0 * s), sampled(1.0, s)),), 0.0, res)
        part = Part(sampled(q, 2.0 * s), sampled(q, s), increasing=False)
        return bracket_of((part,), 0.0, res)

    @property
    def width(self) -> float:
        return 2.0 * self.s


@dataclass(frozen=True)
class Aligned(Ratio):
    """Ratio of a step with a batch of fixed size, if a gradient becomes 0 and all others are equal to it.

    P = N(0), Q = (1 - q) N(0) + q N(-s).
    """

    probability: float
    s: float

    def build(self, res: Resolution) -> RatioBracket:
        return bracket_of((Part(sampled(1.0, 0.0), sampled(self.probability, -self.s)),), 0.0, res)

    @property
    def width(self) -> float:
        return self.s


def copies(count: int, probability: float) -> tuple[list[int], list[float], float]:
    """Return the counts of a binomial distribution that matter, their probabilities, and the error of these.

    If 0 is not negligible, the probabilities follow from that of 0 by ratios of neighbours, with at most five
    roundings each. The exponent of (1 - q)^m has a relative error of two roundings.

    Args:
        count: Number of draws.
        probability: Probability of a success, in (0, 1].

    Raises:
        LikelihoodRangeError: More than `MOST_COPIES` counts matter.
    """
    exponent = count * math.log1p(-probability) if probability < 1.0 else -math.inf
    if exponent > SMALLEST_EXPONENT:
        weights = [math.exp(exponent)]
        odds = probability / (1.0 - probability)
        for k in range(count):
            following = weights[-1] * ((count - k) / (k + 1.0) * odds)
            if following < TINY and k > count * probability:
                break
            weights.append(following)
        return list(range(len(weights))), weights, (10.0 * len(weights) - 4.0 * exponent + 16.0) * UNIT
    found = window(count, probability)
    kept = found.law > TINY
    if np.count_nonzero(kept) > MOST_COPIES:
        raise LikelihoodRangeError
    return found.counts[kept].astype(int).tolist(), found.law[kept].tolist(), 2.0 * BINOMIAL_WINDOW


@dataclass(frozen=True)
class Copies(Ratio):
    r"""Ratio of a step that uses an example K times, K binomial: P is the mixture of N(K s), Q is N(0).

    Attributes:
        count: Number of independent draws.
        probability: Probability of a draw, in (0, 1].
        s: Distance of the means for one use.
    """

    count: int
    probability: float
    s: float

    def build(self, res: Resolution) -> RatioBracket:
        counts, weights, error = copies(self.count, self.probability)
        p = Mixture(tuple(weights), tuple(self.s * k for k in counts))
        return bracket_of((Part(p, sampled(1.0, 0.0), error=error),), 0.0, res)

    @property
    def width(self) -> float:
        mean = self.count * self.probability
        return self.s * min(self.count, mean + 3.0 * math.sqrt(mean) + 1.0)


@dataclass(frozen=True)
class Repeated(Ratio):
    r"""Ratio that dominates a step that draws an example K times with replacement, if it is replaced.

    $\delta(\kappa') \le \sum_{k \ge 1} \Pr(K = k) \, \delta_k(\kappa)$ with
    $\kappa' = 1 + \Pr(K \ge 1)(\kappa - 1)$, $\kappa \ge 1$, and $\delta_k$ the profile of N(2 k s) against
    N(0): a mixture of the ratios `Replaced` of rate Pr(K >= 1) and inverse noise multiplier k s.

    Source: arXiv:1807.01647, Theorem 10.
    """

    count: int
    probability: float
    s: float

    def build(self, res: Resolution) -> RatioBracket:
        counts, weights, error = copies(self.count, self.probability)
        some = {k: p for k, p in zip(counts, weights, strict=True) if k > 0}
        rate = min(1.0, sum(some.values()) * (1.0 + 2.0 * error + len(some) * UNIT))
        kept: dict[int, float] = {}
        beyond = 0.0
        rests = np.cumsum(list(some.values())[::-1])[::-1].tolist()
        for (k, p), rest in zip(some.items(), rests, strict=True):
            if kept and rest <= rate * res.tail:
                beyond = rest
                break
            kept[k] = p
        outwards = 1.0 + 4.0 * error + 2.0 * len(some) * UNIT
        shares = tuple(p / rate * outwards for p in kept.values())
        bracket = Blend(shares, tuple(Replaced(rate, k * self.s) for k in kept)).bracket(res)
        return RatioBracket(lower=bracket.lower, upper=_revealed(bracket.upper, beyond / rate * outwards))

    @property
    def width(self) -> float:
        return 4.0 * self.s


def _revealed(distribution: RatioDistribution, probability: float) -> RatioDistribution:
    """Return the distribution with further outputs of this probability that reveal the example."""
    return replace(
        distribution,
        x=np.append(0.0, distribution.x),
        p=np.append(probability, distribution.p),
        infinite=distribution.infinite + probability,
    )
