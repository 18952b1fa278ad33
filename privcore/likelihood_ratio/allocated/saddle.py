r"""Sums of losses near a threshold: the best rate of the losses, and the sum at the threshold.

The ratio of k out of t is $e^A \Pr[N = k] / \binom tk z^k (1 - z)^{t - k}$ with the sum A of the losses at
the rate z and the number N of participations under Poisson sampling, given the outputs. It is nearly a
function of A if k participations are expected at the sums near the threshold, which determines the rate. All
results here are approximations, and decide only how tight a bound is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.allocated.losses import LARGEST_SLOPE, LEAST_SLOPE, Participation
from privcore.likelihood_ratio.distribution import RatioDistribution

LARGEST_LOGIT = 12.0
"""Largest logarithm of the odds of this rate."""
SMALLEST_RATE = 1e-9
"""Smallest rate of the losses relative to k / t."""


@dataclass(frozen=True, kw_only=True)
class Saddle:
    """Sums near a threshold.

    Attributes:
        rate: Sampling rate of the losses.
        epsilon: Logarithm of the threshold.
        sum: Sum of the losses at the threshold.
        deviation: Standard deviation of the sums, tilted to the threshold.
        slope: Slope of the logarithm of the tail of P for thresholds above 1, of Q below, positive.
        variance: Variance of the number of participations in an epoch, given the outputs.
        spread: Standard deviation of its mean in all epochs, given the sum.
        log_delta: Logarithm of the hockey-stick divergence.
    """

    rate: float
    epsilon: float
    sum: float
    deviation: float
    slope: float
    variance: float
    spread: float
    log_delta: float


def saddle(
    base: RatioDistribution,
    choice: Participation,
    direction: str,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
) -> Saddle:
    """Return the sums near the threshold of a delta or of an epsilon.

    Args:
        base: A distribution of the ratio of one step.
        choice: Steps of an epoch and epochs; 1 < k < t.
        direction: "remove" for the tail of large ratios, "add" for that of small ones.
        delta: The delta whose threshold is wanted; or
        epsilon: the logarithm of the threshold.
    """
    view = View(base, choice)
    # In the direction add, Q has the tilt -slope, and P one less.
    side, start = (1.0, 0.0) if direction == "remove" else (-1.0, -1.0)

    def at(slope: float) -> Saddle:
        return view.at(start + side * slope)

    def excess(slope: float) -> float:
        if epsilon is not None:
            return side * (at(slope).epsilon - epsilon)
        assert delta is not None
        return math.log(delta) - at(slope).log_delta

    return at(_root(excess))


def _root(f: Callable[[float], float]) -> float:
    """Return the root of a rising function of a positive number, or the end of the range that is nearer."""
    low = high = LEAST_SLOPE
    while f(high) < 0.0:
        if high >= LARGEST_SLOPE:
            return high
        low, high = high, 1.6 * high
    if low == high:
        return low
    return math.exp(
        float(scipy.optimize.brentq(lambda x: f(math.exp(x)), math.log(low), math.log(high), xtol=1e-4))
    )


class View:
    """Sums of losses by the tilt of P: positive for the tail of large ratios, below -1 for small ratios."""

    def __init__(self, base: RatioDistribution, choice: Participation) -> None:
        kept = (base.p > 0.0) & (base.x > 0.0)
        self.x, self.p = base.x[kept], base.p[kept]
        self.log = np.log(np.stack((self.p, self.p * self.x)))
        self.k, self.t, self.epochs = choice.participations, choice.steps, choice.epochs
        self.found: dict[float, Saddle] = {}

    def at(self, tilt: float) -> Saddle:
        """Return the sums to which the tilt moves the centre, at the rate of the losses that suits them."""
        if tilt not in self.found:
            share = self.k / self.t
            ends = math.log(SMALLEST_RATE * share), LARGEST_LOGIT

            def excess(logit: float) -> float:
                return self._tilted(_logistic(logit), tilt)[2] - self.k

            logit = math.log(share / (1.0 - share))
            if excess(ends[0]) < 0.0 < excess(ends[1]):
                logit = float(scipy.optimize.brentq(excess, *ends, xtol=1e-4))
            self.found[tilt] = self._saddle(_logistic(logit), tilt)
        return self.found[tilt]

    def _tilted(self, rate: float, tilt: float) -> tuple[float, ...]:
        """Return means and variances of the sum and of the expected number of participations, under P."""
        loss = np.log1p(rate * (self.x - 1.0))
        chance = rate * self.x / (1.0 + rate * (self.x - 1.0))
        exponents = self.log + tilt * loss
        largest = exponents.max(axis=1)
        weights = np.exp(exponents - largest[:, None])
        totals = weights.sum(axis=1)
        weights /= totals[:, None]
        counts = np.array([self.t - self.k, self.k])
        means = [weights @ values for values in (loss, chance)]
        return (
            float(counts @ (np.log(totals) + largest)),
            float(counts @ means[0]),
            float(counts @ means[1]),
            float(counts @ (weights @ loss**2 - means[0] ** 2)),
            float(counts @ (weights @ chance**2 - means[1] ** 2)),
            float(counts @ (weights @ (loss * chance) - means[0] * means[1])),
            float(counts @ (weights @ (chance * (1.0 - chance)))),
        )

    def _saddle(self, rate: float, tilt: float) -> Saddle:
        _, _, mean, _, _, _, inner = self._tilted(rate, tilt)
        total, sum_, _, variance, spread, joint, _ = (
            self.epochs * value for value in self._tilted(rate, tilt)
        )
        inner, variance = max(inner, 1e-9), max(variance, 1e-18)
        share = self.k / self.t
        exactly = log_binomial(self.k, self.t, share) - (self.k - mean) ** 2 / (2.0 * inner)
        exactly += 0.5 * math.log((self.k * (1.0 - share) + 1.0 / 6.0) / (inner + 1.0 / 6.0))
        epsilon = sum_ + self.epochs * (exactly - log_binomial(self.k, self.t, rate))
        slope = max(LEAST_SLOPE, tilt, -1.0 - tilt)
        tail = total - tilt * sum_ - math.log(slope * (slope + 1.0) * math.sqrt(2.0 * math.pi * variance))
        if tilt < -0.5:  # the total is that of P; that of Q at the threshold is less by epsilon
            tail -= epsilon
        return Saddle(
            rate=rate,
            epsilon=epsilon,
            sum=sum_,
            deviation=math.sqrt(variance),
            slope=slope,
            variance=inner,
            spread=math.sqrt(max(spread - joint**2 / variance, 0.0)),
            log_delta=min(tail, 0.0),
        )


def log_binomial(count: int, trials: int, rate: float) -> float:
    """Return the logarithm of a binomial probability."""
    log = scipy.special.gammaln
    ways = float(log(trials + 1.0) - log(count + 1.0) - log(trials - count + 1.0))
    return ways + count * math.log(rate) + (trials - count) * math.log1p(-rate)


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))
