"""Renyi bound of Dong, Chen and Ozgur on random allocation of k steps out of t, for comparison."""

import math
from functools import lru_cache

import numpy as np

from privcore.allocation.moments import SPREAD_ORDERS, log_mean
from privcore.allocation.problems import ALLOCATION, Allocation
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.renyi import Floats, from_moments
from privcore.numerics.rounding import EXPRESSION
from privcore.papers import DONG

MOST_SUMMED = 2048
"""Largest min(k, t - k) for which the hypergeometric distribution is summed; beyond, a binomial is used."""


def log_overlap(t: int, k: int, exponents: Floats) -> Floats:
    r"""Return an upper bound of $\ln E[e^{x N}]$ for the number N of steps that two draws have in common.

    N is hypergeometric; for k > t/2 it is 2k - t plus the number of steps that both draws leave out. If the
    sum is long, N is replaced by a binomial variable that dominates it in convex order.

    Args:
        t: Number of steps.
        k: Steps of one draw, 1 <= k <= t.
        exponents: Values of x >= 0, shape (n,).

    Returns:
        Upper bounds, shape (n,); exact up to rounding up if min(k, t - k) <= `MOST_SUMMED`.

    Reference:
        Hoeffding (1963), J. Amer. Statist. Assoc. 58, Theorem 4, for the binomial distribution.

    Example:
        >>> round(float(log_overlap(t=4, k=2, exponents=np.array([1.0]))[0]), 9)
        1.166384296
        >>> round(math.log((1.0 + 4.0 * math.e + math.e**2) / 6.0), 9)
        1.166384296
    """
    small, always = min(k, t - k), max(0, 2 * k - t)
    if small == 0:
        return np.asarray(always * exponents * (1.0 + EXPRESSION))
    if small > MOST_SUMMED:
        tried = math.log(small / t)
        mixed = [log_mean(np.array([tried]), np.array([-tried]), np.array([x])) for x in exponents]
        return np.asarray((always * exponents + small * np.array(mixed)) * (1.0 + EXPRESSION))
    i = np.arange(float(small))
    ratios = 2.0 * np.log(small - i) - np.log(i + 1.0) - np.log(t - 2.0 * small + i + 1.0)
    log_weights = np.concatenate(([0.0], np.cumsum(ratios)))
    sizes = np.cumsum(np.abs(log_weights) + 4.0 * (math.log(t) + 1.0))  # errors of all partial sums
    largest = float(log_weights.max())
    # The normalising constant must not be too large: rounded down.
    log_total = largest + math.log(float(np.exp(log_weights - largest - EXPRESSION * sizes).sum()))
    sizes += abs(log_total) + len(sizes)
    overlaps = np.arange(small + 1.0)
    summed = [log_mean(log_weights - log_total, sizes, overlaps * x * (1.0 + EXPRESSION)) for x in exponents]
    return np.asarray((always * exponents + np.array(summed)) * (1.0 + EXPRESSION))


@lru_cache(maxsize=64)
def overlap_moments(sigma: float, steps: int, participations: int) -> Floats:
    r"""Return upper bounds of the log-moments of k-of-t allocation at `SPREAD_ORDERS`, direction remove.

    $$R_\alpha(P \Vert Q) \le \ln E\bigl[e^{\alpha N / (2 \sigma^2)}\bigr]$$

    with N the number of steps that two independent draws have in common. For an integer order the moment is
    that of alpha independent draws, $E[e^{s \sum_{j<l} N_{jl}}]$ with $s = 1 / \sigma^2$. The sum over the
    pairs is alpha/2 times the mean over c of the star $\sum_{j \ne c} N_{jc}$, so by convexity the moment is
    at most $E[e^{(s \alpha / 2) \sum_{j \ne c} N_{jc}}]$, and the alpha - 1 terms of a star are independent,
    since the distribution of the overlap with a draw is the same for every draw. The bound is exact for order
    2 and for k = t.

    Args:
        sigma: Noise multiplier, > 0.
        steps: Steps of an epoch, t.
        participations: Steps that use the example, k.

    Returns:
        Bounds of (alpha - 1) R of one epoch, shape of `SPREAD_ORDERS`; a cached, read-only array.

    Reference:
        Dong, Chen and Ozgur (2025), arXiv:2503.03043v1, Theorem 3.1, second bound; arXiv:2502.08202v3,
        Appendix F.2, compares with it.
    """
    exponents = 0.5 * SPREAD_ORDERS / sigma / sigma * (1.0 + EXPRESSION)
    result = (SPREAD_ORDERS - 1.0) * log_overlap(steps, participations, exponents) * (1.0 + EXPRESSION)
    result.flags.writeable = False
    return result


def overlap_bound(problem: Allocation) -> tuple[float, float]:
    """Return the upper bound of epsilon or delta in the direction remove, and the order that gives it.

    Args:
        problem: The question; its adjacency is ignored.

    Returns:
        Upper bound of the direction remove alone, rounded up, and the Renyi order.
    """
    one = overlap_moments(problem.sigma, problem.steps, problem.participations)
    moments = float(problem.epochs) * one * (1.0 + EXPRESSION)
    return from_moments(problem.asks, SPREAD_ORDERS, moments, problem.at)


class AllocationDong(Method[Allocation]):
    """Bound k-of-t allocation by the overlap of two independent draws, without reduction to k = 1."""

    name = "allocation.dong"
    problems = ALLOCATION
    direction = Direction.UPPER
    reference = f"{DONG}, Theorem 3.1"
    shares = ("sigma", "steps", "participations")

    def applies(self, problem: Allocation) -> str | None:
        if problem.adjacency != "remove":
            return "The bound is proved for adjacency=remove only."
        return None

    def cost(self, problem: Allocation) -> Cost:
        small = min(problem.participations, problem.steps - problem.participations)
        terms = small if small <= MOST_SUMMED else 1
        return Cost(seconds=0.02 + len(SPREAD_ORDERS) * terms * 8e-8, bytes=1e6)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        upper, order = overlap_bound(problem)
        return Answer.at_most(upper, detail=f"Renyi order {order:.6g}")
