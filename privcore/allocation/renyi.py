r"""Renyi divergences of random allocation with Gaussian noise, of any order and in both directions.

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
from privcore.allocation.dong import log_overlap
from privcore.allocation.moments import allocation_moments
from privcore.allocation.problems import AllocationRenyi
from privcore.allocation.reduction import blocks, exact, one_of
from privcore.answer import Answer
from privcore.likelihood_ratio.divergence import Moment, divergence_ends
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.questions import powering
from privcore.likelihood_ratio.steps import GaussianStep
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import EXPRESSION, FEW_FUNCTIONS, SUMMED
from privcore.papers import DONG, FELDMAN_SHENFELD

Ends = tuple[float, float]
FURTHER = 64
"""Orders above the one in question whose moments bound the part of a moment beyond the grid."""
FEW_OVERLAPS = 64
"""Largest min(k, t - k) for which the rounding of the sum over overlaps is below `SUMMED`."""


@dataclass(frozen=True, kw_only=True)
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
