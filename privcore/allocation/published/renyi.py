r"""Bounds of random allocation by Renyi divergences of the ratio: of its epsilon and delta, and themselves.

For the direction remove and whole orders, the power of a series gives them to about 1e-11. Otherwise the
likelihood ratio is bracketed in convex order, and for orders that are not whole, the convexity of
$(\alpha - 1) R_\alpha$ gives chords between whole orders, above, and their extensions, below.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated

import numpy as np

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.moments import FRACTIONS, allocation_moments, averaged_moments
from privcore.allocation.params import curve_points
from privcore.allocation.problems import (
    ALLOCATION,
    RENYI_ALLOCATION,
    Allocation,
    AllocationRenyi,
    RenyiAllocation,
)
from privcore.allocation.published.dong import log_overlap
from privcore.allocation.reduction import Blocks, blocks, exact, one_of
from privcore.answer import Answer
from privcore.likelihood_ratio.divergence import Moment, divergence_ends
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.questions import powering
from privcore.likelihood_ratio.steps import GaussianStep
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds, last_true
from privcore.numerics.renyi import (
    Floats,
    delta_from_moments,
    epsilon_from_moments,
    from_moments,
    reflected_delta,
)
from privcore.numerics.rounding import EXPRESSION, FEW_FUNCTIONS, SUMMED
from privcore.papers import DONG, FELDMAN_SHENFELD


def remove_moments(sigma: float, parts: Blocks, highest: int) -> tuple[Floats, Floats]:
    """Return orders alpha, some between 1 and 2 and then 2, ..., highest, and upper bounds of (alpha - 1) R.

    Args:
        sigma: Noise multiplier, > 0.
        parts: The composition.
        highest: Highest order, >= 2.

    Returns:
        Orders and log-moments of the composition in the direction remove, each of shape (n,). Those of
        integer order are exact for the composition, up to rounding up.
    """
    orders = np.concatenate([FRACTIONS, np.arange(2.0, highest + 1.0)])
    total = np.zeros_like(orders)
    for steps, copies in parts:
        whole = allocation_moments(sigma, steps, highest)[2:]
        part = np.concatenate([fraction_moments(sigma, steps, float(whole[0])), whole])
        total += float(copies) * part * (1.0 + EXPRESSION)
    return orders, total


def fraction_moments(sigma: float, steps: int, second: float) -> Floats:
    r"""Return upper bounds of the log-moments of 1-of-t allocation at the orders `FRACTIONS`.

    $x^b$ is subadditive for b = alpha - 1 < 1, and $E_Q[S^{1+b}] = E_P[S^b]$, where one of the t ratios is
    drawn under P; so with $v = b / (2 \sigma^2)$

    $$E_Q[S^{1+b}] \le t^{-b} \bigl(e^{(1+b) v} + (t - 1) e^{-(1-b) v}\bigr)$$

    This is exact for t = 1. If it exceeds the chord from order 1 to order 2, the chord is returned.

    Args:
        sigma: Noise multiplier, > 0.
        steps: Number of steps t, >= 1.
        second: Log-moment of order 2.

    Returns:
        Upper bounds, shape of `FRACTIONS`.
    """
    b = FRACTIONS - 1.0
    v = 0.5 * b / sigma / sigma
    others = math.log(steps - 1) if steps > 1 else -math.inf
    grown = np.logaddexp((1.0 + b) * v, others - (1.0 - b) * v)
    shrunk = b * math.log(steps)
    bound = grown - shrunk + EXPRESSION * (2.0 * v + 2.0 * shrunk + np.abs(grown) + 50.0)
    return np.minimum(np.maximum(bound, 0.0), b * second * (1.0 + EXPRESSION))


@dataclass(frozen=True, kw_only=True)
class Jensen:
    r"""The Gaussian bound of direction add: by convexity $-\ln S \le -\frac1t \sum_i \ln X_i$.

    The right side is $N(m, v)$ under Q: the privacy loss $N(v/2, v)$ of a Gaussian mechanism, shifted. Under
    composition, means and variances add up, so the shift is multiplied by the number of copies.

    Attributes:
        sigma: Noise multiplier $1 / \sqrt v$ of that mechanism, up to four roundings.
        shift: The shift m - v/2 >= 0, rounded up.
    """

    sigma: float
    shift: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at any real epsilon."""
        below = epsilon - self.shift
        return gaussian_delta_bounds(self.sigma, below - EXPRESSION * (abs(epsilon) + self.shift))[1]

    def epsilon(self, delta: float) -> float:
        """Return an upper bound of the smallest epsilon >= 0 at a delta in (0, 1)."""
        high = self.shift + gaussian_epsilon_bounds(self.sigma, delta)[1]
        high *= 1.0 + 8.0 * EXPRESSION
        return last_true(lambda epsilon: self.delta(epsilon) > delta, 0.0, high)[1]


def jensen(sigma: float, parts: Blocks) -> Jensen:
    r"""Return the Gaussian bound of direction add of a composition of allocations.

    One copy of 1-of-t has the loss $N(\frac1{2\sigma^2}, \frac1{t\sigma^2})$.

    Args:
        sigma: Noise multiplier of one step, > 0.
        parts: The composition.

    Reference:
        arXiv:2502.08202v3, Theorem 4.9 and Corollary 4.10, for one copy.

    Example:
        >>> jensen(sigma=0.5, parts=[(10, 10)])
        Jensen(sigma=0.5, shift=18.00000000000...)
    """
    spread = sum(copies / steps for steps, copies in parts)
    shift = sum(copies * ((steps - 1) / steps) for steps, copies in parts) * 0.5 / sigma / sigma
    return Jensen(sigma=sigma / math.sqrt(spread), shift=shift * (1.0 + EXPRESSION))


class AllocationDirect(Method[Allocation]):
    """Bound allocation by Renyi divergences of integer order for remove, by a shifted Gaussian for add."""

    name = "allocation.direct"
    problems = ALLOCATION
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Theorems 4.8 and 4.9, Corollary 4.10, Lemma 3.2"
    shares = ("sigma", "steps")

    orders: Annotated[int, allocation_params.ORDERS] = 256

    def cost(self, problem: Allocation) -> Cost:
        n, seconds = self.orders, 2e-3
        for steps, _ in blocks(problem.steps, problem.participations, problem.epochs):
            rounds = 1 if steps >= n else steps.bit_length() + steps.bit_count()
            seconds += rounds * (n * 3e-5 + n * n * 3e-8)
        return Cost(seconds=seconds, bytes=1e6)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        parts = blocks(problem.steps, problem.participations, problem.epochs)
        read = self._epsilon if problem.asks == "epsilon" else self._delta
        directions = DIRECTIONS[problem.adjacency]
        found = [read(problem.sigma, parts, problem.at, direction) for direction in directions]
        upper, detail = max(found)
        return Answer.at_most(upper, detail=detail)

    def _epsilon(self, sigma: float, parts: Blocks, delta: float, direction: str) -> tuple[float, str]:
        """Return the bound of epsilon in one direction, and its derivation in words."""
        if direction == "add":
            return jensen(sigma, parts).epsilon(delta), "Jensen's inequality"
        epsilon, order = epsilon_from_moments(*remove_moments(sigma, parts, self.orders), delta)
        return epsilon, f"Renyi order {order:.6g}"

    def _delta(self, sigma: float, parts: Blocks, epsilon: float, direction: str) -> tuple[float, str]:
        """Return the bound of delta in one direction, and its derivation in words."""
        if direction == "add":
            found = jensen(sigma, parts).delta(epsilon), "Jensen's inequality"
        else:
            delta, order = delta_from_moments(*remove_moments(sigma, parts, self.orders), epsilon)
            found = delta, f"Renyi order {order:.6g}"
        if epsilon < 0.0:
            other, detail = self._delta(sigma, parts, -epsilon, "remove" if direction == "add" else "add")
            found = min(found, (reflected_delta(epsilon, other), f"{detail}, from the other direction"))
        return found


class AllocationCurve(Method[RenyiAllocation]):
    r"""Bound allocation of any steps by their Renyi divergences: Theorem 4.8 with the divergences as input.

    $(\alpha - 1) R_\alpha$ is convex and 0 at order 1, so between the given orders it is at most its chords.
    The moments of the mean of t ratios grow with those of one ratio, and those of whole orders up to the
    largest one give epsilon and delta. The bound is for the direction remove, like the divergences.
    """

    name = "allocation.curve"
    problems = RENYI_ALLOCATION
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Theorem 4.8, Lemma 3.2; the chords: convexity"
    shares = ("renyi_curve", "steps")

    def cost(self, problem: RenyiAllocation) -> Cost:
        n = len(step_moments(problem.renyi_curve))
        rounds = 1 + 2 * problem.steps.bit_length()
        return Cost(seconds=4e-3 + 2 * rounds * (n * 6e-5 + n * n * 6e-8), bytes=1e6)

    def answer(self, problem: RenyiAllocation, seed: int) -> Answer:
        one = step_moments(problem.renyi_curve)
        orders = np.arange(2.0, len(one))
        total = np.zeros_like(orders)
        for steps, copies in blocks(problem.steps, problem.participations, problem.epochs):
            total += float(copies) * averaged_moments(one, steps)[2:] * (1.0 + EXPRESSION)
        upper, order = from_moments(problem.asks, orders, total, problem.at)
        return Answer.at_most(upper, detail=f"Renyi order {order:.6g}, direction remove")


def step_moments(curve: str) -> Floats:
    """Return upper bounds of the log-moments of a step for the whole orders 0, 1, ..., from its Renyi curve.

    Example:
        >>> step_moments("2:1.0,4:2.0").round(9).tolist()  # 0, then 2 - 1 and 3 * 2, and the chord at 3
        [0.0, 0.0, 1.0, 3.5, 6.0]
    """
    orders, divergences = np.array(curve_points(curve)).T
    divergences = np.minimum.accumulate(divergences[::-1])[::-1]  # they grow with the order
    whole = np.arange(2.0, math.floor(orders[-1]) + 1.0)
    moments = np.append(0.0, (orders - 1.0) * divergences)
    found = np.interp(whole, np.append(1.0, orders), moments) * (1.0 + 2.0 * EXPRESSION)
    return np.concatenate(([0.0, 0.0], found))


Ends = tuple[float, float]
FURTHER = 64
"""Orders above the one in question whose moments bound the part of a moment beyond the grid."""
FEW_OVERLAPS = 64
"""Largest min(k, t - k) for which the rounding of the sum over overlaps is below `SUMMED`."""


class AllocationRenyiMethod(Method[AllocationRenyi]):
    r"""Enclose the Renyi divergence of k-of-t random allocation over E epochs, from Theorem 4.8 and beyond.

    The divergences of epochs add up, since the noise of epochs is independent, and the bound is attained: all
    other gradients may be 0. One participation is enclosed to the tolerance, or to about 1e-11 for whole
    orders in the direction remove. For more participations, the upper end is that of the composition of
    1-of-f, or for remove that of the overlaps of two draws, which is exact for order 2. The lower end is the
    largest of one participation, the test on the sum of all outputs, and order 2.
    """

    name = "allocation.renyi"
    problems = (AllocationRenyi,)
    direction = Direction.ENCLOSURE
    reference = (
        f"{FELDMAN_SHENFELD}, Theorem 4.8, Corollary 4.10, Lemma 3.2 (reduction to k = 1), Lemma D.1 "
        f"(nesting); {DONG}, Theorem 3.1 (overlaps); convex order: docs/certified.md"
    )
    version = 3
    shares = ("sigma", "steps", "renyi_order")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: AllocationRenyi) -> Cost:
        n = problem.renyi_order + (FURTHER if _by_brackets(problem) else 0)
        rounds = 1 if problem.steps >= n else problem.steps.bit_length() + problem.steps.bit_count()
        seconds = 4e-3 + rounds * (n * 6e-5 + n * n * 6e-8)
        if _by_brackets(problem):
            seconds += 0.8 * (powering(problem.steps) + 2.0)
        return Cost(seconds=2.0 * seconds, bytes=1e8)

    def answer(self, problem: AllocationRenyi, seed: int) -> Answer:
        directions = DIRECTIONS[problem.adjacency]
        ends = [self._epoch(problem, direction) for direction in directions]
        lower, upper = (problem.epochs * max(end) for end in zip(*ends, strict=True))
        return Answer.enclosure(
            lower * (1.0 - FEW_FUNCTIONS),
            upper * (1.0 + FEW_FUNCTIONS),
            detail=f"direction {' and '.join(directions)}",
        )

    def _epoch(self, problem: AllocationRenyi, direction: str) -> Ends:
        """Return both ends for one epoch, in one direction."""
        sigma, t, k, order = problem.sigma, problem.steps, problem.participations, problem.order
        one = partial(one_participation, sigma, order=order, direction=direction, tolerance=self.tolerance)
        if k == 1:
            return one(t)
        upper = math.fsum(copies * one(steps)[1] for steps, copies in blocks(t, k, 1))
        lower = order * k * (k / t) * (0.5 / sigma / sigma) * (1.0 - FEW_FUNCTIONS)
        if exact(t, k):
            return lower, upper
        if direction == "remove":
            upper = min(upper, on_chord(order, partial(overlapping, sigma, t, k)) / (order - 1.0 or 1.0))
            if order >= 2.0 and min(k, t - k) <= FEW_OVERLAPS:
                lower = max(lower, overlapping(sigma, t, k, 2) * (1.0 - 4.0 * SUMMED))
        return max(lower, one(t)[0]), upper


def on_chord(order: float, moments: Callable[[int], float]) -> float:
    """Return the chord at an order between the log-moments of the whole orders around it; 0 at order 1.

    Of order 1, the log-moment of order 2 is returned, which is the divergence of order 2.
    """
    if order == 1.0:
        return moments(2)
    whole = math.floor(order)
    below = 0.0 if whole == 1 else moments(whole)
    above = moments(whole + 1) if order > whole else below
    return (below + (order - whole) * (above - below)) * (1.0 + EXPRESSION)


def overlapping(sigma: float, steps: int, participations: int, order: int) -> float:
    """Return an upper bound of the log-moment of a whole order by the overlaps of two draws of k of t."""
    x = np.array([0.5 * order / sigma / sigma * (1.0 + EXPRESSION)])
    return (order - 1.0) * float(log_overlap(steps, participations, x)[0]) * (1.0 + EXPRESSION)


@lru_cache(maxsize=256)
def one_participation(sigma: float, steps: int, *, order: float, direction: str, tolerance: float) -> Ends:
    r"""Return both ends of the divergence of 1-of-t allocation.

    In the direction add, $E[S^{-c}] \le E[X^{-c/t}]^t$ by the inequality of the means, for every c > 0.

    Args:
        sigma: Noise multiplier, > 0.
        steps: Number of steps t, >= 1.
        order: Order, >= 1.
        direction: `remove` or `add`.
        tolerance: Relative width of the bracket at which it is refined no more.

    Example:
        >>> low, high = one_participation(1.0, 2, order=3.0, direction="remove", tolerance=0.01)
        >>> round(low, 9), round(high, 9)
        (0.977229296, 0.977229296)
        >>> low, high = one_participation(1.0, 2, order=2.5, direction="add", tolerance=0.01)
        >>> low < 0.705323 < high < 1.01 * low
        True
    """
    v = 0.5 / sigma / sigma
    whole = math.floor(order)
    if steps == 1:
        return order * v * (1.0 - FEW_FUNCTIONS), order * v * (1.0 + FEW_FUNCTIONS)
    if direction == "add":
        outer = order / steps * v, min(order, (order - 1.0) / steps + 1.0) * v
    else:
        highest = whole + FURTHER
        low, high = (allocation_moments(sigma, steps, highest, side) for side in (-1.0, 1.0))
        if order == whole >= 2:
            return float(low[whole]) / (order - 1.0), float(high[whole]) / (order - 1.0)
        between = _between(order, low, high)
        outer = max(between[0], order * v - math.log(steps), order / steps * v), between[1]
    outer = outer[0] * (1.0 - FEW_FUNCTIONS), outer[1] * (1.0 + FEW_FUNCTIONS)
    power = order if direction == "remove" else order - 1.0
    power = power if order > 1.0 else power + 1.0

    def beyond(c: Array) -> Array:
        if direction == "add":
            q = np.maximum(0.0, -0.5 * steps * (np.log(c) / v + 1.0) - power)
            return np.asarray(np.exp((power + q) * ((power + q) / steps + 1.0) * v + q * np.log(c)))
        n = np.arange(math.ceil(power), highest + 1.0)
        return np.asarray(np.exp(np.min(high[math.ceil(power) :] - np.outer(np.log(c), n - power), axis=1)))

    return divergence_ends(
        partial(one_of, GaussianStep(sigma), steps),
        Moment(order=order, direction=direction),
        beyond,
        tolerance,
        math.sqrt(4.0 * tolerance / (powering(steps) + 2.0)),
        outer,
    )


def _between(order: float, low: Array, high: Array) -> Ends:
    """Return both ends of the divergence of an order from log-moments of whole orders, which are convex."""
    n = math.floor(order)
    part = order - n
    upper = on_chord(order, lambda whole: float(high[whole]))
    lower = max(
        low[n] + part * (low[n] - high[n - 1]), low[n + 1] - (1.0 - part) * (high[n + 2] - low[n + 1])
    )
    size = EXPRESSION * (high[n] + high[n + 2])
    return (float(lower) - size) / (order - 1.0 or math.inf), (upper + size) / (order - 1.0 or 1.0)


def _by_brackets(problem: AllocationRenyi) -> bool:
    """Return whether a direction or an order needs the bracket of the likelihood ratio."""
    return problem.adjacency != "remove" or problem.order_fraction > 0.0 or problem.renyi_order == 1
