r"""Joint test of two binomial rates: which pairs of true rates the counts of two samples refute.

A pair $(p, q)$ has two p-values, $\Pr[\mathrm{Bin}(n, p) \ge x]$ and $\Pr[\mathrm{Bin}(m, q) \le y]$. The
counts are independent, so the sum of their normal quantiles, with weights that depend on the pair alone and
whose squares add up to 1, is a test of the pair. It needs about 1.64 standard errors of a combination of both
rates at confidence 0.95, where two separate bounds need 2.77.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.method import Cost
from privcore.numerics.binomial import (
    LARGEST_SUMMED,
    Array,
    normal_quantile,
    quantile_of_few,
    quantile_of_many,
)
from privcore.numerics.clopper_pearson import rate_at_least, rate_at_most
from privcore.numerics.pairs_of_rates import Ends, PairsBelow
from privcore.numerics.rounding import NORMAL_QUANTILES

_OUTSIDE = 1e-3
"""Share of the error for separate bounds of both rates, beyond which no pair is tested."""
_MARGINS = (0.01, 0.04, 0.2)
"""Distances from the critical value, tried one after the other until a proof ends."""
_MOST_CELLS = 20_000
"""Number of rectangles of pairs after which a proof is given up."""
_PRECISION = 1e-6
"""Relative precision of a number that is approximated before it is proved."""
_RARE = 0.05
"""Expected number of misses, or of events of the second sample, below which the other one alone decides."""


@dataclass(frozen=True, kw_only=True)
class TwoSamples:
    """Counts of two independent samples: x of n trials, expected to be many; y of m, expected to be few."""

    many: int
    trials: int
    few: int
    others: int


Family = Callable[[float], PairsBelow]
"""Sets of pairs that grow with a number."""


def refuted(counts: TwoSamples, family: Family, most: float, error: float) -> float:
    """Return the largest number for which the counts refute every pair of rates in its set.

    Args:
        counts: The counts.
        family: The sets, by a number from 0 on; they grow with it.
        most: Largest number that is tried.
        error: Probability that the number of the true pair is smaller than the result, in (0, 1/2].

    Returns:
        The number, rounded down; 0 if the pairs of 0 are not refuted.

    Source:
        Stouffer's combination of independent tests, and the bounds of Berger and Boos (1994), JASA 89,
        1012-1016, for the rates.

    Example:
        >>> from privcore.numerics.pairs_of_rates import RatesBelow
        >>> counts = TwoSamples(many=900, trials=1000, few=50, others=1000)
        >>> advantages = lambda gain: RatesBelow(slope=1.0, height=gain, weighed=1.0)
        >>> round(refuted(counts, advantages, 1.0, 0.05), 3)
        0.828
    """
    if counts.many == 0 or counts.few == counts.others:
        return 0.0
    region = Region.of(counts, error)
    for margin in _MARGINS:
        number = region.estimate(family, most, margin)
        if number <= 0.0:
            return 0.0
        if region.refutes(family(number)):
            return number
    return 0.0


def joint_cost(trials: int, others: int) -> Cost:
    """Return a conservative estimate of the cost of `refuted`: thousands of tails of two distributions."""
    size = sum(min(4e3 + 76.0 * each**0.5, 40.0 * LARGEST_SUMMED**0.5 + 4e3) for each in (trials, others))
    return Cost(seconds=0.25 + 6e-5 * size, bytes=1e6 + 50.0 * size)


@dataclass(frozen=True)
class Region:
    """Pairs within separate bounds of both rates, and the critical value of the test.

    Attributes:
        counts: The counts.
        p: Bounds of the rate of the first sample.
        q: Bounds of the rate of the second sample.
        critical: Normal quantile of the error that remains.
    """

    counts: TwoSamples
    p: tuple[float, float]
    q: tuple[float, float]
    critical: float

    @classmethod
    def of(cls, counts: TwoSamples, error: float) -> "Region":
        part = 0.25 * _OUTSIDE * error
        p, q = (
            (rate_at_least(trials, successes, part), rate_at_most(trials, successes, part))
            for trials, successes in ((counts.trials, counts.many), (counts.others, counts.few))
        )
        critical = -float(scipy.special.ndtri((1.0 - _OUTSIDE) * error))
        return cls(counts, p, q, critical * (1.0 + NORMAL_QUANTILES))

    def estimate(self, family: Family, most: float, margin: float) -> float:
        """Return about the largest number whose pairs are refuted with a margin."""
        q = family(0.0).rates(*self.q, self._rare()[1])
        y, m = self.counts.few, self.counts.others
        tails = scipy.special.betainc(m - y, y + 1, 1.0 - q), scipy.special.betainc(y + 1, m - y, q)
        two = normal_quantile(*tails)

        def refutes(number: float) -> bool:
            line = family(number)
            p = np.minimum(line.most(q), self.p[1])
            inside = p >= self.p[0]
            value = _combined(self._about(p), two, self._angles(line, p, p, q, q)[0])
            return bool((value >= self.critical + margin)[inside].all())

        if not refutes(0.0):
            return 0.0
        low, high = 0.0, most
        while high - low > _PRECISION * (1.0 + low):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if refutes(middle) else (low, middle)
        return low

    def _rare(self) -> tuple[float, float]:
        """Return the first rate above which, and the second below which, one sample alone decides."""
        return 1.0 - _RARE / self.counts.trials, _RARE / self.counts.others

    def _about(self, p: Array) -> Array:
        """Return about the quantiles of the first sample."""
        x, n = self.counts.many, self.counts.trials
        return normal_quantile(
            scipy.special.betainc(x, n - x + 1, p), scipy.special.betainc(n - x + 1, x, 1.0 - p)
        )

    def _angles(self, line: PairsBelow, p0: Array, p1: Array, q0: Array, q1: Array) -> Ends:
        """Return the least and the largest angle of the weights of the pairs in rectangles.

        Each rectangle lies on one side of each rare rate.
        """
        surely, rarely = self._rare()
        trials = self.counts.trials, self.counts.others
        low, high = line.angles(trials, self.critical, (p0, p1), (q0, q1))
        alone = np.where(q1 <= rarely, 0.0, 0.5 * math.pi)
        decided = (q1 <= rarely) | (p0 >= surely)
        return np.where(decided, alone, low), np.where(decided, alone, high)

    def refutes(self, line: PairsBelow) -> bool:
        """Return whether all pairs of the set are refuted, by rectangles of pairs that are halved."""
        surely, rarely = self._rare()
        parts = _parts(self.p, surely), _parts(self.q, rarely)
        p0, p1, q0, q1 = np.array([(*p, *q) for p in parts[0] for q in parts[1]]).T
        tested = 0
        while p0.size and tested < _MOST_CELLS:
            tested += p0.size
            inside = p0 <= line.most(q1)
            p0, p1, q0, q1 = p0[inside], np.minimum(p1, line.most(q1))[inside], q0[inside], q1[inside]
            # A rectangle lies on one side of each rare rate. Between two angles with positive values, the
            # value is at least the smaller one.
            low, high = self._angles(line, p0, p1, q0, q1)
            one, two = self._above(p1), self._below(q0)
            least = np.minimum(_combined(one, two, low), _combined(one, two, high))
            left = ~(least >= self.critical + NORMAL_QUANTILES)
            p0, p1, q0, q1 = p0[left], p1[left], q0[left], q1[left]
            gains = _combined(self._above(p0) - one[left], 0.0, low[left])
            p_first = gains > _combined(0.0, self._below(q1) - two[left], high[left])
            p_middle, q_middle = 0.5 * (p0 + p1), 0.5 * (q0 + q1)
            p0, p1, q0, q1 = (
                np.concatenate(halves)
                for halves in (
                    (p0, np.where(p_first, p_middle, p0)),
                    (np.where(p_first, p_middle, p1), p1),
                    (q0, np.where(p_first, q0, q_middle)),
                    (np.where(p_first, q1, q_middle), q1),
                )
            )
        return not p0.size

    def _above(self, rates: Array) -> Array:
        """Return lower bounds of the quantiles of the first sample."""
        return np.array([quantile_of_many(self.counts.trials, self.counts.many, p) for p in rates.tolist()])

    def _below(self, rates: Array) -> Array:
        """Return lower bounds of the quantiles of the second sample."""
        return np.array([quantile_of_few(self.counts.others, self.counts.few, q) for q in rates.tolist()])


def _combined(one: Array | float, two: Array | float, angle: Array) -> Array:
    """Return the sum of two quantiles with the weights of an angle; without weight, it may be infinite."""
    with np.errstate(invalid="ignore"):
        first = np.where(angle < 0.5 * math.pi, np.cos(angle) * one, 0.0)
        return first + np.where(angle > 0.0, np.sin(angle) * two, 0.0)


def _parts(ends: tuple[float, float], at: float) -> list[tuple[float, float]]:
    """Return an interval, in two parts if a rate lies in it."""
    low, high = ends
    return [(low, at), (at, high)] if low < at < high else [ends]
