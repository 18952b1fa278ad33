r"""Renyi divergences, of any order and both directions, from brackets of a likelihood ratio.

With S = dP/dQ under Q, of mean 1, the divergence of order $\alpha$ is $\ln(1 + E f(S)) / (\alpha - 1)$ with
$f(x) = x^b - 1 - b (x - 1)$; the exponent b is $\alpha$ for P from Q, and $1 - \alpha$ for Q from P.
For order 1 it is E f(S) with the limits $x \ln x - x + 1$ and $x - 1 - \ln x$. All of these f are convex, and
0 at 1 together with their slopes. So E f(S) is an integral of $E(S - \kappa)_+$ over $\kappa > 1$ and of
$E(\kappa - S)_+$ over $\kappa < 1$ with positive weights, and a bracket in convex order encloses it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.questions import SCOUT, SMALLEST_DELTA
from privcore.numerics.rounding import SUMMED

NEAR = 0.02
"""Distance from 1, over 1 plus the size of b, below which a series replaces differences that cancel."""
TERMS = 12
"""Terms of this series; each is below 0.04 of the one before."""
ENDS = np.concatenate(([0.0], np.exp2(np.linspace(-8.0, 9.0, 69))))
"""Distances, in nats, from the largest or the smallest value to the point from which f is linear."""
ATTEMPTS = 24
FIRST_TAIL, NEXT_TAIL = 1e-15, 1e-15
FINEST = 1.0 / 400.0


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The function f of an order and a direction.

    Attributes:
        order: Order of the divergence, >= 1.
        direction: `remove` for P from Q, `add` for Q from P.
    """

    order: float
    direction: str

    @property
    def power(self) -> float:
        """The exponent b: at least 1, or at most 0."""
        return self.order if self.direction == "remove" else 1.0 - self.order

    @property
    def limit(self) -> float:
        """Value at 0 for direction remove, slope at infinity for direction add."""
        return 1.0 if self.order == 1.0 else self.order - 1.0

    def __call__(self, x: Array) -> Array:
        """Return f at positive x; relative error below 1e-10.

        Example:
            >>> Moment(order=2.0, direction="remove")(np.array([1.0, 3.0])).round(9).tolist()  # (x - 1)^2
            [0.0, 4.0]
        """
        b, y = self.power, x - 1.0
        with np.errstate(over="ignore"):
            if b == 0.0:
                far = y - np.log(x)
            elif b == 1.0:
                far = x * np.log(x) - y
            elif b > 1.0:  # the same as below, without a difference of large terms near b = 1
                far = x * np.expm1((b - 1.0) * np.log(x)) - (b - 1.0) * y
            else:
                far = np.expm1(b * np.log(x)) - b * y
        near, term = np.zeros_like(y), np.ones_like(y)
        close = np.where(np.abs(y) * (1.0 + abs(b)) < NEAR, y, 0.0)
        for n in range(TERMS):  # f'' is the scale times x^(b - 2)
            near += term / ((n + 1.0) * (n + 2.0))
            term = term * (close * ((b - 2.0 - n) / (n + 1.0)))
        scale = 1.0 if b in (0.0, 1.0) else abs(b * (b - 1.0))
        return np.asarray(np.where(close != 0.0, scale * y * y * near, np.where(y == 0.0, 0.0, far)))

    def slope(self, x: Array) -> Array:
        """Return the derivative of f at positive x."""
        b = self.power
        with np.errstate(over="ignore"):
            if b == 1.0:
                return np.asarray(np.log(x))
            return np.asarray((1.0 if b == 0.0 else -b) * -np.expm1((b - 1.0) * np.log(x)))

    def divergence(self, mean: float) -> float:
        """Return the divergence in nats from E f(S) >= 0."""
        return mean if self.order == 1.0 else math.log1p(mean) / (self.order - 1.0)


def divergence_ends(
    build: Callable[[Resolution], RatioBracket],
    moment: Moment,
    tail: Callable[[Array], Array],
    tolerance: float,
    fineness: float,
    outer: tuple[float, float],
) -> tuple[float, float]:
    """Return both ends of a divergence, from brackets that are refined up to a relative width.

    Args:
        build: Function that returns the bracket of the ratio at a resolution; it may raise
            `LikelihoodRangeError`.
        moment: Order and direction.
        tail: As for `moment_ends`.
        tolerance: Requested relative width.
        fineness: Width of the first cells, in local standard deviations.
        outer: A known bracket; the result lies within it.
    """
    (lower, upper), cut, scouting = outer, FIRST_TAIL, True
    last = math.inf
    for _ in range(ATTEMPTS):
        if upper <= lower * (1.0 + tolerance):
            break
        try:
            bracket = build(Resolution(fineness=max(SCOUT, fineness) if scouting else fineness, tail=cut))
        except LikelihoodRangeError:
            break
        low, high, rest = moment_ends(bracket, moment, tail)
        lower, upper = max(lower, moment.divergence(low)), min(upper, moment.divergence(high))
        if rest > 0.05 * tolerance * low and cut * NEXT_TAIL >= SMALLEST_DELTA:
            cut *= NEXT_TAIL
            continue
        if scouting:
            scouting = False
            continue
        gap = high / low - 1.0 if low > 0.0 else math.inf
        if not gap < 0.9 * last or fineness <= FINEST:
            break
        last = gap
        fineness = max(FINEST, fineness * max(0.3, min(0.8, math.sqrt(0.7 * tolerance / gap))))
    return lower, upper


def moment_ends(
    bracket: RatioBracket, moment: Moment, tail: Callable[[Array], Array]
) -> tuple[float, float, float]:
    r"""Return both ends of E f(S), and the part of the upper end that is due to the ends of the grid.

    Beyond some point c, f is replaced by its tangent. The rest is at most $E[S^a; S > c]$ for remove, with
    the exponent a = b, or 2 for order 1, and $E[S^a; S < c]$ for add, with a = b, or -1 for order 1.

    Args:
        bracket: Bracket of S.
        moment: Order and direction.
        tail: Function that returns upper bounds of this expectation at points c.
    """
    inner, (calls, puts), c = _mean(bracket.lower, moment, -1.0)
    low = inner - float((calls + puts)[0]) if math.isfinite(inner) else 0.0
    inner, (calls, puts), c = _mean(bracket.upper, moment, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        rest = float(np.nanmin(calls + puts + tail(c) * (1.0 + SUMMED)))
    return max(0.0, low), inner + rest, rest


def _mean(law: RatioDistribution, moment: Moment, side: float) -> tuple[float, tuple[Array, Array], Array]:
    """Return a bound of E f(S) inside the grid, the parts of its ends for several points c, and these points.

    Values are moved by their error, away from 1 for the upper bound and towards 1 for the lower bound.
    """
    inside = law.x > 0.0
    x, p = law.x[inside], law.p[inside]
    moved = x * np.exp(np.where(x > 1.0, side, -side) * law.value_error)
    moved = np.where((x > 1.0) == (moved > 1.0), moved, 1.0)
    factor = math.exp(side * (law.mass_error + SUMMED))
    total = float(p @ moment(moved)) * factor
    zero = float(law.p[~inside].sum())
    with np.errstate(over="ignore", invalid="ignore"):
        if moment.direction == "remove":
            c = float(max(x[-1], moved[-1], 1.0)) * np.exp(ENDS)
            slope = np.nan_to_num(moment.slope(c), nan=math.inf, posinf=math.inf)
            calls = slope * (max(0.0, side) * law.infinite * factor + law.drift_remove)
            puts = moment.limit * (max(0.0, side) * zero * factor + law.drift_add) + 0.0 * c
        else:
            c = float(min(x[0], moved[0], 1.0)) * np.exp(-ENDS)
            value = moment(c) - c * moment.slope(c)
            calls = moment.limit * (max(0.0, side) * law.infinite * factor + law.drift_remove) + 0.0 * c
            puts = value * (max(0.0, side) * zero * factor + law.drift_add)
    return total, (calls, puts), c
