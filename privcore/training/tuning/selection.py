r"""Both ends of the privacy of the best of K runs, from likelihood-ratio distributions of one run.

Let P and Q be the distributions of the outputs of one run on neighbouring data sets, T their trade-off curve
(the largest P(E) with Q(E) at most x), and f the generating function of K. For every score,

$$H_\kappa \le E_Q \Psi_\kappa(X), \qquad \Psi_\kappa(r) = \sup_x (f'(T(x))\, r - \kappa f'(x))_+,$$

with the ratio X of one run: an output is released with the density f' of the probability that another run is
not better, and the two probabilities of this event are those of a test. A score for which, the worst first,
some of the larger ratios come before the largest ones, and these before all others, gives

$$H_\kappa \ge f(T(x)) - f(T(x) - T(a)) - \kappa (f(x) - f(x - a)), \qquad 0 \le a \le x \le 1.$$

Source: docs/tuning.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.profile import (
    DIRECTIONS,
    LARGEST_EPSILON,
    Direction,
    curve,
    delta_upper,
    outcomes,
    powers_lower,
    powers_upper,
    slack,
)
from privcore.likelihood_ratio.questions import BEST_OF, Question
from privcore.likelihood_ratio.ratios import gaussian_bracket
from privcore.numerics.compiled import compiled
from privcore.numerics.gaussian import gaussian_bounds
from privcore.numerics.rounding import FEW_FUNCTIONS, SUMMED, UNIT
from privcore.training.tuning.repeats import Repeats

Indices = NDArray[np.int64]
FINE, SMALL = 1e-4, 1e-3
"""Logarithm by which lines may exceed the points between intervals, in epsilons; the least epsilon for it."""
PARTS, MOST_RATES = 4, 300_000
"""Parts of a divided interval, and the largest number of rates."""
ROUNDS, ROUGH_ROUNDS = 12, 4
"""Number of divisions, and of those of all intervals."""
SMALLEST = 1e-290
"""Smaller slopes count as this for the upper end, and smaller differences for the lower end."""
PRECISION = 1e-6
"""Relative width at which the search for an epsilon ends."""
TESTS, NEAR, ZOOMS = 120, 24, 4
"""Number of rates among which the best test is searched, first among all and then near the best one."""
COARSE = np.geomspace(1e-9, 0.5, 30)
"""Rates, and complements of rates, that are among the first ones of every distribution."""


class Envelope:
    r"""Upper bound of $E_Q \Psi_\kappa(X)$, with lines $A r - \kappa B$.

    Each line belongs to an interval of rates: f'(T) is at most A, its value at the right end, and f' at
    least B, that at the left end. The intervals whose lines decide are divided.

    Args:
        distribution: A dominating distribution.
        direction: Order of the hypotheses.
        number: Distribution of the number of runs.
    """

    def __init__(self, distribution: RatioDistribution, direction: Direction, number: Repeats) -> None:
        self.distribution, self.direction, self.number = distribution, direction, number
        self.null, self.alternative, self.start, (self.drift, _) = outcomes(distribution, direction)
        self.shift, self.factor = slack(distribution, 0.0)
        self.enough = LARGEST_EPSILON
        with np.errstate(divide="ignore"):
            self.ratios = np.log(self.alternative) - np.log(self.null) + self.shift
        vertices = curve(distribution, direction).rates
        self._divide(np.unique(np.concatenate(([0.0], vertices[vertices < 1.0], [1.0]))))

    def _divide(self, rates: Array) -> None:
        """Set the rates between intervals, and the lines of the intervals that are on the envelope."""
        self.rates = rates
        power = np.minimum(1.0, np.maximum(powers_upper(self.distribution, rates, self.direction), rates))
        self.rising = np.maximum(np.maximum.accumulate(self.number.slope(power)), SMALLEST)
        self.slopes = np.maximum.accumulate(self.number.slope(rates))
        # Every point that a hull leaves out may err by the rounding of a comparison of two slopes, and a
        # line may be chosen by logarithms of at most 700, which err by half of their last place.
        error = self.number.error + 8.0 * (rates.size + 1024) * UNIT
        above, below = self.rising[1:] * (1.0 + error), self.slopes[:-1] * (1.0 - error)
        self.kept = _upper_hull(below, above)
        self.above, self.below = above[self.kept], below[self.kept]
        with np.errstate(divide="ignore"):
            turns = np.log(np.diff(self.below)) - np.log(np.diff(self.above))
        self.turns = np.maximum.accumulate(turns)

    def _coarse(self, width: float) -> Indices:
        """Return the intervals whose lines are above the hull of the points between them by a logarithm."""
        hull = _upper_hull(self.slopes, self.rising)
        points = np.interp(self.slopes[:-1], self.slopes[hull], self.rising[hull])
        steps = np.diff(np.log(self.rising)) + np.diff(np.log(np.maximum(self.slopes, SMALLEST)))
        return np.flatnonzero((self.rising[1:] > points * (1.0 + width)) & (steps > width))

    def _terms(self, epsilon: float) -> tuple[Indices, Array]:
        """Return the line of every outcome, and its term of the expectation."""
        line = np.searchsorted(self.turns, self.ratios - epsilon)
        high = math.exp(self.shift) * self.alternative * self.above[line]
        with np.errstate(over="ignore"):
            low = math.exp(epsilon) * self.null * self.below[line]
        return line, np.maximum(high - low, 0.0)

    def delta(self, epsilon: float) -> float:
        """Return the upper bound of the expectation."""
        if self.factor == math.inf:  # rounding errors exceed the masses
            return math.inf
        total = float(np.sum(self._terms(epsilon)[1])) * self.factor * (1.0 + SUMMED)
        return total + float(self.above[-1]) * (self.start * self.factor + self.drift) * (1.0 + SUMMED)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon >= 0 whose upper bound is at most delta; infinity if it is unknown."""
        high = self.enough if self.delta(self.enough) <= delta else LARGEST_EPSILON
        if not self.delta(high) <= delta:
            return math.inf
        low, step = high, 1e-3 * high
        while low > 0.0 and self.delta(low) <= delta:
            low, high, step = max(0.0, low - step), low, 2.0 * step
        if self.delta(low) <= delta:
            high = low
        while high - low > PRECISION * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        self.enough = high
        return high

    def refined(self, at: Callable[["Envelope"], float]) -> "Envelope":
        """Divide the intervals with lines far above the points between them, and return the envelope.

        Args:
            at: Function that returns the epsilon in question for the present lines.
        """
        for attempt in range(ROUNDS):
            epsilon = at(self)
            if not epsilon < math.inf or self.factor == math.inf:
                break
            wide = self._coarse(FINE * max(epsilon, SMALL))
            if attempt >= ROUGH_ROUNDS:  # only near the lines that decide
                line, terms = self._terms(epsilon)
                used = self.kept[line[terms > 0.0]]
                wide = wide[(wide >= used.min(initial=0)) & (wide <= used.max(initial=0))]
            if not wide.size or self.rates.size + PARTS * wide.size > MOST_RATES:
                break
            self._divide(_divided(self.rates, wide))
        return self


def _divided(rates: Array, intervals: Indices) -> Array:
    """Return rates with more of them inside some intervals, close to 0 or 1 in equal quotients."""
    left, right = rates[intervals], rates[intervals + 1]
    found = [rates]
    for k in range(1, PARTS):
        share = k / PARTS
        quotient = np.power(right / np.maximum(left, SMALLEST), share)
        low = np.where(left > 0.0, left * quotient, right * 10.0**-k)
        high = 1.0 - (1.0 - left) * np.power((1.0 - right) / (1.0 - left), share)
        middle = left + share * (right - left)
        found.append(np.where(right < 0.5, low, np.where(right < 1.0, high, middle)))
    return np.unique(np.concatenate(found))


@compiled()
def _upper_hull(x: Array, y: Array) -> Indices:
    """Return the indices of the points on the upper concave hull; both coordinates do not fall."""
    kept = np.empty(x.size, np.int64)
    size = 0
    for i in range(x.size):
        if size and y[i] <= y[kept[size - 1]]:
            continue
        while size and x[kept[size - 1]] >= x[i]:
            size -= 1
        while size > 1:
            a, b = kept[size - 2], kept[size - 1]
            if (y[b] - y[a]) * (x[i] - x[b]) > (y[i] - y[b]) * (x[b] - x[a]):
                break
            size -= 1
        kept[size] = i
        size += 1
    return kept[:size]


def best_test(
    distribution: RatioDistribution,
    direction: Direction,
    number: Repeats,
    worth: Callable[[Array, Array], Array],
) -> float:
    """Return the largest worth of a released set, by a lower bound of its probability under the alternative.

    Args:
        distribution: A distribution that belongs to a post-processing of the outputs of the run.
        direction: Order of the hypotheses.
        number: Distribution of the number of runs.
        worth: Function of lower bounds of probabilities under the alternative, and upper bounds of those
            under the null hypothesis.
    """
    vertices = curve(distribution, direction).rates
    inner = vertices[(vertices > 0.0) & (vertices < 1.0)]
    chosen = inner[np.unique(np.linspace(0, inner.size - 1, TESTS).astype(int))] if inner.size else inner
    sets = tests = np.unique(np.concatenate((chosen, COARSE, 1.0 - COARSE, [1.0])))
    best = -math.inf
    for _ in range(1 + ZOOMS):
        power, part = np.meshgrid(*(powers_lower(distribution, each, direction) for each in (tests, sets)))
        x, a = np.meshgrid(tests, sets)
        won = number.between(power, np.minimum(part, power)) * (1.0 - number.error)
        lost = number.between(x, np.minimum(a, x)) * (1.0 + number.error)
        found = np.where(a <= x, worth(won, lost + SMALLEST), -math.inf)
        j, i = np.unravel_index(int(np.argmax(found)), found.shape)
        best = max(best, float(found[j, i]))
        tests, sets = _near(tests, int(i)), _near(sets, int(j))
    return best


def _near(rates: Array, at: int) -> Array:
    """Return rates between the neighbours of one of them."""
    left, right = rates[max(0, at - 1)], rates[min(rates.size - 1, at + 1)]
    share = np.linspace(0.0, 1.0, NEAR)
    if right < 0.5:
        return np.asarray(np.minimum(right, left * np.power(right / left, share)))
    rest = np.maximum(1.0 - right, UNIT)
    return np.asarray(
        np.clip(1.0 - (1.0 - left) * np.power(rest / max(1.0 - left, UNIT), share), left, right)
    )


@dataclass(frozen=True, kw_only=True)
class BestOf(Question):
    """Epsilon or delta of the best of several runs; the names of the quantities are not those of one run.

    Attributes:
        repeats: Distribution of the number of runs.
        size: Order of magnitude of the delta in question.
    """

    alone = "cells of a Gaussian mechanism"

    repeats: Repeats
    size: float

    @property
    def scale(self) -> float:
        """The order of magnitude of the delta of one run."""
        return self.size / max(1.0, self.runs)

    @property
    def is_epsilon(self) -> bool:
        return self.asks == BEST_OF["epsilon"]

    @property
    def runs(self) -> float:
        return self.repeats.mean * (1.0 + self.repeats.error)

    @property
    def trivial(self) -> float:
        return 0.0 if self.is_epsilon else math.nextafter(-math.expm1(min(0.0, self.at)), 0.0)

    def gaussian(self, mu: float) -> tuple[float, float]:
        try:
            return self.ends(gaussian_bracket(mu, self.scale))
        except LikelihoodRangeError:
            one = gaussian_bounds("epsilon" if self.is_epsilon else "delta", 1.0 / mu, self.at)
            lower = one[0] if self.repeats.none == 0.0 else self.trivial  # if the score is constant
            return lower, math.inf if self.is_epsilon else 1.0

    def upper(self, distribution: RatioDistribution) -> float:
        moved = min(1.0, self.runs * delta_upper(distribution, 0.0, self.adjacency) * (1.0 + 4.0 * UNIT))
        if self.is_epsilon and moved <= self.at:
            return 0.0  # the total variation distance of the best runs suffices
        found = [
            Envelope(distribution, direction, self.repeats).refined(self._asked)
            for direction in DIRECTIONS[self.adjacency]
        ]
        if self.is_epsilon:
            return max(each.epsilon(self.at) for each in found)
        extra = self.repeats.none * -math.expm1(min(0.0, self.at))  # if nothing is run
        most = min(1.0, max(each.delta(self._asked(each)) for each in found) + extra)
        return most if self.at < 0.0 else min(most, moved)

    def _asked(self, envelope: Envelope) -> float:
        """Return the epsilon in question, or the largest one in the range of doubles."""
        return envelope.epsilon(self.at) if self.is_epsilon else min(self.at, LARGEST_EPSILON)

    def lower(self, distribution: RatioDistribution) -> float:
        if not self.is_epsilon and self.at > LARGEST_EPSILON:
            return self.trivial
        found = [
            best_test(distribution, direction, self.repeats, self._worth)
            for direction in DIRECTIONS[self.adjacency]
        ]
        return max(self.trivial, *found)

    def _worth(self, won: Array, lost: Array) -> Array:
        """Return a lower bound of the quantity from a set with these probabilities."""
        if self.is_epsilon:
            with np.errstate(divide="ignore"):
                found = np.log(np.maximum(won - self.at, 0.0) / lost)
            return np.asarray(found - FEW_FUNCTIONS * (1.0 + np.abs(found)))
        return np.asarray(won - math.exp(self.at) * lost * (1.0 + FEW_FUNCTIONS) - UNIT * won)
