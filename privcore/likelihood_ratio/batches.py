"""Ratios of one step with a random batch or several copies of an example: pairs of Gaussian mixtures.

The noise has standard deviation 1, and clipped gradients have norm at most s, the inverse noise multiplier.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.likelihood_ratio.distribution import (
    SMALLEST_MASS,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.parts import Part, bracket_of
from privcore.likelihood_ratio.ratios import OfOutputs, Ratio
from privcore.likelihood_ratio.steps import Mixture, between, sampled
from privcore.numerics.binomial import window
from privcore.numerics.rounding import BINOMIAL_WINDOW, UNIT

MOST_COPIES = 1000
"""Largest number of counts; a batch with more copies of an example is not enclosed."""
SMALLEST_EXPONENT = -100.0
"""Least logarithm of the probability of 0 from which the others are computed."""
TINY = 1e-290
"""Smaller probabilities of counts are left out, which changes no bound at an epsilon below 300."""


@dataclass(frozen=True)
class SignedSample(OfOutputs):
    """Ratio of a Poisson-sampled step in which the neighbour has the opposite gradient.

    P = (1 - q) N(0) + q N(s), Q = (1 - q) N(0) + q N(-s).
    """

    probability: float
    s: float

    def parts(self) -> tuple[tuple[Part, ...], float]:
        part = Part(sampled(self.probability, self.s), sampled(self.probability, -self.s))
        return (part,), 0.0

    @property
    def width(self) -> float:
        return 2.0 * self.s


@dataclass(frozen=True)
class Replaced(OfOutputs):
    r"""Ratio with the largest profile of a step with a batch of fixed size, if one example is replaced.

    With W = (1 - q) + q Y, Y lognormal of 2 s, its profile is $E(W - \kappa)_+$ for $\kappa \ge 1$, and
    $1 - \kappa + \kappa f(1/\kappa)$ below: the ratio of (1 - q) N(0) + q N(2 s) against N(0) above 1, its
    mirror image below 1, and the mass (1 - q)(2 Phi(s) - 1) at 1.

    Source: arXiv:2106.08567, Theorem 11; arXiv:1807.01647, Theorem 9.
    """

    probability: float
    s: float

    def parts(self) -> tuple[tuple[Part, ...], float]:
        q, s = self.probability, self.s
        above = Part(sampled(q, 2.0 * s), sampled(1.0, 0.0), low=s)
        below = Part(sampled(1.0, 0.0), sampled(q, -2.0 * s), high=-s)
        atom = (1.0 - q) * float(scipy.special.erf(s / math.sqrt(2.0)))
        return (below, above), atom

    @property
    def width(self) -> float:
        return 2.0 * self.s


@dataclass(frozen=True)
class Zeroed(OfOutputs):
    r"""Ratio with the largest profile of a step with a batch of fixed size, if one gradient becomes 0.

    Above 1, it is the ratio of (1 - q) N(0) + q N(2 s) against (1 - q) N(0) + q N(s), where all other
    gradients are opposed; below 1, that of N(0) against (1 - q) N(0) + q N(-s), where all others are equal.
    The rest of the mass is at 1.
    """

    probability: float
    s: float

    def parts(self) -> tuple[tuple[Part, ...], float]:
        q, s = self.probability, self.s
        above = Part(sampled(q, 2.0 * s), sampled(q, s), low=1.5 * s)
        below = Part(sampled(1.0, 0.0), sampled(q, -s), high=-0.5 * s)
        atom = (1.0 - q) * float(scipy.special.ndtr(1.5 * s) - scipy.special.ndtr(-0.5 * s))
        return (below, above), atom

    @property
    def width(self) -> float:
        return 2.0 * self.s


@dataclass(frozen=True)
class Opposed(OfOutputs):
    """Ratio of a step with a batch of fixed size, if a gradient becomes 0 and all others are opposed to it.

    P = (1 - q) N(0) + q N(2 s), Q = (1 - q) N(0) + q N(s). The ratio does not increase with the output, so
    only the lower distribution is valid.
    """

    probability: float
    s: float

    def parts(self) -> tuple[tuple[Part, ...], float]:
        q, s = self.probability, self.s
        if q == 1.0:
            return (Part(sampled(1.0, 2.0 * s), sampled(1.0, s)),), 0.0
        part = Part(sampled(q, 2.0 * s), sampled(q, s), increasing=False)
        return (part,), 0.0

    @property
    def width(self) -> float:
        return 2.0 * self.s


@dataclass(frozen=True)
class Aligned(OfOutputs):
    """Ratio of a step with a batch of fixed size, if a gradient becomes 0 and all others are equal to it.

    P = N(0), Q = (1 - q) N(0) + q N(-s).
    """

    probability: float
    s: float

    def parts(self) -> tuple[tuple[Part, ...], float]:
        return (Part(sampled(1.0, 0.0), sampled(self.probability, -self.s)),), 0.0

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
class Copies(OfOutputs):
    r"""Ratio of a step that uses an example K times, K binomial: P is the mixture of N(K s), Q is N(0).

    With another gradient in the place of the example, Q is the mixture of N(K other). If both means move, the
    ratio may not increase with the output, and only the lower distribution is valid.

    Attributes:
        count: Number of independent draws.
        probability: Probability of a draw, in (0, 1].
        s: Distance of the means for one use.
        other: This distance for the other data set.
    """

    count: int
    probability: float
    s: float
    other: float = 0.0

    def parts(self) -> tuple[tuple[Part, ...], float]:
        counts, weights, error = copies(self.count, self.probability)
        p, q = (_used(counts, weights, mean) for mean in (self.s, self.other))
        cut, increasing = len(counts) <= self.count, not (self.s and self.other)
        return (Part(p, q, increasing=increasing, error=error, cut=cut),), 0.0

    @property
    def width(self) -> float:
        mean = self.count * self.probability
        return max(self.s, -self.other) * min(self.count, mean + 3.0 * math.sqrt(mean) + 1.0)


def _used(counts: list[int], weights: list[float], mean: float) -> Mixture:
    """Return the outputs with a random number of uses of an example, at this distance for one use."""
    if mean == 0.0:
        return sampled(1.0, 0.0)
    found = sorted((mean * k, weight) for k, weight in zip(counts, weights, strict=True))
    return Mixture(tuple(weight for _, weight in found), tuple(at for at, _ in found))


@dataclass(frozen=True)
class CountedDraws(Part):
    r"""Profile of a step that uses an example K times, on one side of 1: docs/training-runs.md.

    The k-th components of P and Q are those of K = k, ascending in size, and have the same weight; component
    0 is the same in both. At an output z, some counts join component 0, and the threshold is the ratio of all
    of these, so chosen that it is as far from 1 as possible. The others begin where their own ratio is the
    threshold.
    """

    def log_ratio(self, z: Array) -> Array:
        return self._joined(z)[0]

    @property
    def least(self) -> float:
        return 0.0

    def _joined(self, z: Array) -> tuple[Array, Array]:
        """Return the logarithm of the threshold, and where the components begin, shape (counts, outputs)."""
        weights, p, q = (np.array(v)[:, None] for v in (self.p.weights, self.p.means, self.q.means))
        sign = 1.0 if math.isfinite(self.low) else -1.0
        at_p, at_q = (np.log(weights) + mean * (z - 0.5 * mean) for mean in (p, q))
        alone = sign * (at_p - at_q)
        alone[0] = np.inf
        joined = alone >= 0.0
        while True:  # each time, the ratio of those that are left is larger
            found = sign * (_log_sum(at_p, joined) - _log_sum(at_q, joined))
            fewer = joined & (alone >= found)
            if np.array_equal(fewer, joined):
                break
            joined = fewer
        gap = p - q
        gap[0] = 1.0
        return sign * found, np.where(joined, z, 0.5 * (p + q) + sign * found / gap)

    def masses(self, low: Array, high: Array) -> tuple[Array, Array, float]:
        """Return the masses of cells under Q and P, and the part of their ends in the relative error.

        With Z the largest distance of an end from a mean, the end of a component that has not joined has the
        error of a logarithm, 8 u (1 + Z^2), divided by the distance of its means, and a few roundings more.
        """
        begin, end = self._ends(low), self._ends(high)
        gap = np.abs(np.subtract(self.p.means, self.q.means))[:, None]
        gap[0] = 1.0
        found, more = [], 0.0
        for mixture in (self.q, self.p):
            weights, means = (np.array(v)[:, None] for v in (mixture.weights, mixture.means))
            mass: Array = (weights * between(begin - means, end - means)).sum(axis=0)
            for z, at in ((low, begin), (high, end)):
                far = np.where((at != z) & np.isfinite(at), np.abs(at - means), np.inf)
                largest = float(np.max(far, initial=0.0, where=np.isfinite(far)))
                error = weights * np.exp(-0.5 * far * far) * (1.0 + 1.0 / gap)
                seen = mass > SMALLEST_MASS
                share = error.sum(axis=0)[seen] / mass[seen]
                more += 32.0 * UNIT * (1.0 + largest * largest) * float(np.max(share, initial=0.0))
            found.append(mass)
        return found[0], found[1], more

    def _ends(self, z: Array) -> Array:
        ends = np.tile(z, (len(self.p.weights), 1))
        finite = np.isfinite(z)
        ends[:, finite] = self._joined(z[finite])[1]
        return ends


def _log_sum(terms: Array, kept: NDArray[np.bool_]) -> Array:
    """Return the logarithm of the sum of the exponentials of the terms that are kept."""
    found: Array = np.logaddexp.reduce(np.where(kept, terms, -np.inf), axis=0)
    return found


@dataclass(frozen=True)
class Displaced(Ratio):
    r"""Ratio that dominates a step in which an example takes the place of K others, K binomial.

    Above 1, it is that of mixtures of N(2 K s) against mixtures of N(K s) for `zero-out`, where all other
    gradients are opposed, or against N(0) for `replace-one`; below 1, that of N(0) against mixtures of
    N(-K s), where all others are equal, or of N(-2 K s). The rest of the mass is at 1.

    Source: docs/training-runs.md.

    Attributes:
        count: Number of draws, at least 1.
        probability: Probability of a draw, in (0, 1).
        s: Inverse noise multiplier.
        relation: `zero-out` or `replace-one`.
    """

    count: int
    probability: float
    s: float
    relation: str

    def build(self, res: Resolution) -> RatioBracket:
        counts, weights, error = copies(self.count, self.probability)
        rests = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        # A profile grows with each weight apart from the first one, with which it falls.
        weights = [weights[0] * (1.0 - 2.0 * error), *(w * (1.0 + 2.0 * error) for w in weights[1:])]
        size = max(2, int(np.argmax(rests <= res.tail)))
        while True:  # as many counts as doubles hold
            try:
                return self._some(counts[:size], weights[:size], 4.0 * error, float(rests[size]), res)
            except LikelihoodRangeError:
                if size == 2:
                    raise
                size -= 1

    def _some(
        self, counts: list[int], weights: list[float], more: float, rest: float, res: Resolution
    ) -> RatioBracket:
        """Return the bracket for some counts, more mass at 1, and the rest revealed."""
        s, near = self.s, 0.0 if self.relation == "replace-one" else 1.0

        def mixture(mean: float) -> Mixture:
            return Mixture(tuple(weights), tuple(mean * k for k in counts))

        above = CountedDraws(mixture(2.0 * s), mixture(near * s), low=(1.0 + 0.5 * near) * s)
        below = CountedDraws(mixture(0.0), mixture((near - 2.0) * s), high=(0.5 * near - 1.0) * s)
        atom = weights[0] * float(scipy.special.ndtr(above.low) - scipy.special.ndtr(below.high))
        bracket = bracket_of((below, above), atom + more, res)
        return RatioBracket(lower=bracket.lower, upper=_revealed(bracket.upper, rest * (1.0 + more)))

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
