"""Direct bounds of random allocation: exact Renyi divergences for remove, Jensen's inequality for add."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np

from privcore.allocation import params as allocation_params
from privcore.allocation.moments import FRACTIONS, allocation_moments, averaged_moments
from privcore.allocation.params import curve_points
from privcore.allocation.problems import (
    Allocation,
    AllocationEpsilon,
    CurveAllocation,
    RenyiAllocationEpsilon,
)
from privcore.allocation.reduction import Blocks, blocks
from privcore.answer import Answer
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds, last_true
from privcore.numerics.renyi import Floats, delta_from_moments, epsilon_from_moments, reflected_delta
from privcore.numerics.rounding import EXPRESSION
from privcore.papers import FELDMAN_SHENFELD


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


@dataclass(frozen=True, kw_only=True)
class AllocationDirect(Method[Allocation]):
    """Bound allocation by Renyi divergences of integer order for remove, by a shifted Gaussian for add."""

    name = "allocation.direct"
    problems = get_args(Allocation)
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
        read = self._epsilon if isinstance(problem, AllocationEpsilon) else self._delta
        at = problem.delta if isinstance(problem, AllocationEpsilon) else problem.epsilon
        directions = DIRECTIONS[problem.adjacency]
        found = [read(problem.sigma, parts, at, direction) for direction in directions]
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


@dataclass(frozen=True, kw_only=True)
class AllocationCurve(Method[CurveAllocation]):
    r"""Bound allocation of any steps by their Renyi divergences: Theorem 4.8 with the divergences as input.

    $(\alpha - 1) R_\alpha$ is convex and 0 at order 1, so between the given orders it is at most its chords.
    The moments of the mean of t ratios grow with those of one ratio, and those of whole orders up to the
    largest one give epsilon and delta. The bound is for the direction remove, like the divergences.
    """

    name = "allocation.curve"
    problems = get_args(CurveAllocation)
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Theorem 4.8, Lemma 3.2; the chords: convexity"
    shares = ("renyi_curve", "steps")

    def cost(self, problem: CurveAllocation) -> Cost:
        n = len(step_moments(problem.renyi_curve))
        rounds = 1 + 2 * problem.steps.bit_length()
        return Cost(seconds=4e-3 + 2 * rounds * (n * 6e-5 + n * n * 6e-8), bytes=1e6)

    def answer(self, problem: CurveAllocation, seed: int) -> Answer:
        one = step_moments(problem.renyi_curve)
        orders = np.arange(2.0, len(one))
        total = np.zeros_like(orders)
        for steps, copies in blocks(problem.steps, problem.participations, problem.epochs):
            total += float(copies) * averaged_moments(one, steps)[2:] * (1.0 + EXPRESSION)
        if isinstance(problem, RenyiAllocationEpsilon):
            upper, order = epsilon_from_moments(orders, total, problem.delta)
        else:
            upper, order = delta_from_moments(orders, total, problem.epsilon)
        return Answer.at_most(upper, detail=f"Renyi order {order:.6g}, direction remove")


def step_moments(curve: str) -> Floats:
    """Return upper bounds of the log-moments of a step for the whole orders 0, 1, ..., from its Renyi curve.

    Example:
        >>> step_moments("2:1.0,4:2.0").round(9).tolist()  # 0, then 2 - 1 and 3 * 2, and the chord at 3
        [0.0, 0.0, 1.0, 3.5, 6.0]
    """
    orders, divergences = np.array(curve_points(curve)).T
    whole = np.arange(2.0, math.floor(orders[-1]) + 1.0)
    moments = np.append(0.0, (orders - 1.0) * divergences)
    found = np.interp(whole, np.append(1.0, orders), moments) * (1.0 + 2.0 * EXPRESSION)
    return np.concatenate(([0.0, 0.0], found))
