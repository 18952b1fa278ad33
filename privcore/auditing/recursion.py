"""Algorithm 3: bounds of the probability of many correct guesses under a trade-off function, compiled.

The p-values of `auditing.recursion` are the least level at which the algorithm refutes a claim.
"""

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.auditing.normal import below, quantile
from privcore.auditing.problems import AuditTail, CountTail, recursion_cost, unlikely_at_most
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.profile import delta_upper
from privcore.method import Cost, Direction, Method
from privcore.numerics.compiled import compiled
from privcore.papers import MAHLOUJIFAR

Array = NDArray[np.float64]

GAUSSIAN, LAPLACE, APPROXIMATE, LINES = range(4)
"""Families of trade-off functions: of N(mu, 1), Laplace noise, (epsilon, delta), and by supporting lines."""

Claim = tuple[int, float, float]
"""A family with its parameter, mu or epsilon, and with delta, which only the third family has."""
Counts = tuple[float, float, float, float]
"""Canaries, guesses, correct guesses, and alternatives for every canary."""
Lines = tuple[Array, Array]
"""Slopes of supporting lines of g, rising, and their values at 0; empty but for the last family."""
_STALLED = 1e-13
"""Relative growth that is taken for none: near a fixed point rounding would creep on, a step a guess."""
NO_LINES: Lines = (np.zeros(0), np.zeros(0))


@compiled()
def inverse(claim: Claim, lines: Lines, y: float) -> float:
    r"""Return $g(y) = \inf\{x : 1 - f(x) \ge y\}$, for symmetric trade-off functions $f(1 - y)$.

    Args:
        claim: Family and parameters of f.
        lines: For the last family alone.
        y: Probability; above 1 it is infinite.
    """
    family, a, b = claim
    if y > 1.0:
        return math.inf
    if family == GAUSSIAN:
        return float(below(quantile(y) - a))
    if family == LAPLACE:
        x = 1.0 - y
        if x < 0.5 * math.exp(-a):
            return math.exp(a) * y - math.expm1(a)
        return 0.25 * math.exp(-a) / x if x <= 0.5 else math.exp(-a) * y
    if family == APPROXIMATE:
        # The third is 1 - delta - e^epsilon (1 - y), in which nothing cancels for small y.
        return max(0.0, math.exp(-a) * (y - b), math.exp(a) * y - math.expm1(a) - b)
    slopes, offsets = lines
    low, high = 0, slopes.size - 1  # the lines are ordered so that the largest is found by bisection
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] + slopes[middle] * y < offsets[middle + 1] + slopes[middle + 1] * y:
            low = middle + 1
        else:
            high = middle
    return max(0.0, float(offsets[low] + slopes[low] * y))


@compiled()
def unlikely(claim: Claim, lines: Lines, counts: Counts, tau: float) -> bool:
    """Return whether so many correct guesses have a probability of at most tau for every such mechanism.

    The recursion of the paper from the last guess to the first, which stops as soon as its end is known: what
    does not grow in a step never passes the limit, and what grows once never falls. What grows by rounding
    alone is taken not to grow, which refutes less.
    """
    canaries, guesses, correct, alternatives = counts
    if guesses == 0.0 or correct == 0.0:
        return tau >= 1.0
    r, h = tau * correct / canaries, tau * (guesses - correct) / canaries
    limit = guesses / canaries
    i = correct - 1.0
    while i >= 0.0:
        following = (alternatives - 1.0) * inverse(claim, lines, r)
        if following <= h * (1.0 + _STALLED):
            return False
        r += i / (guesses - i) * (following - h)
        h = following
        if r + h >= limit:
            return True
        i -= 1.0
    return False


@compiled()
def smallest_level(claim: Claim, lines: Lines, counts: Counts) -> float:
    """Return the least tau at which the count is unlikely, by bisection of its logarithm; 1 at most."""
    low, high = -700.0, 0.0
    if not unlikely(claim, lines, counts, 1.0 - 1e-14):
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if unlikely(claim, lines, counts, math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


@compiled()
def largest_refuted(family: int, delta: float, counts: Counts, tau: float, most: float) -> float:
    """Return the largest parameter of a nested family at which the count is unlikely, 0 if there is none.

    Args:
        family: Gaussian, Laplace or (epsilon, delta); a larger parameter is less private.
        delta: Of the last.
        counts: Canaries, guesses, correct guesses, alternatives.
        tau: Significance level.
        most: Where the search ends; infinity is returned if even this is refuted.
    """
    if not unlikely((family, 0.0, delta), NO_LINES, counts, tau):
        return 0.0
    low, high = 0.0, 1.0
    while unlikely((family, high, delta), NO_LINES, counts, tau):
        low = high
        high *= 2.0
        if low >= most:
            return math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        if unlikely((family, middle, delta), NO_LINES, counts, tau):
            low = middle
        else:
            high = middle
        if high - low <= 1e-13 * high:
            break
    return low


def gaussian_limit(canaries: int, guesses: int, correct: int, alternatives: int, tau: float) -> float:
    r"""Return what the Gaussian parameter of an audit never exceeds, from the first step of the recursion.

    $$\mu_A = \Phi^{-1}(\tau c / m) - \Phi^{-1}(\tau (c' - c) / ((k - 1) m))$$

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses.
        correct: Number c of correct ones.
        alternatives: Number k of choices for every canary.
        tau: Significance level in (0, 1).

    Returns:
        Upper bound, also the limit for many guesses at the same rates; infinite without an error.

    Example:
        >>> round(gaussian_limit(100_000, 1500, 1429, 2, 0.05), 4)
        0.7842
    """
    errors = tau * (guesses - correct) / ((alternatives - 1) * canaries)
    return math.inf if errors == 0.0 else quantile(tau * correct / canaries) - quantile(errors)


_LARGEST_EPSILON = 300.0
"""The slopes e^epsilon of the lines stay far within the range of doubles."""


def supporting_lines(epsilons: Array, deltas: Array) -> Lines:
    r"""Return supporting lines of the inverse of 1 - f for a symmetric f with this privacy profile.

    $$g(y) = \sup_\varepsilon \max(e^{-\varepsilon} (y - \delta), 1 - \delta - e^\varepsilon (1 - y))$$

    Finitely many lines stay below g, and a profile that is rounded up moves them down: an audit with them
    refutes less, and stays valid.

    Args:
        epsilons: Values >= 0, shape (n,).
        deltas: Privacy profile at them, the worse of both directions, shape (n,).

    Returns:
        Slopes, rising, and values at 0 of the lines on the upper envelope.

    Reference:
        Dong, Roth and Su, arXiv:1905.02383, Proposition 2.12; arXiv:2410.22235v1, Algorithm 3.

    Example:
        >>> slopes, offsets = supporting_lines(np.array([0.0]), np.array([0.0]))
        >>> slopes.tolist(), abs(offsets).tolist()
        ([1.0], [0.0])
    """
    falls, rises = np.exp(-epsilons), np.exp(epsilons)
    slopes = np.concatenate([falls, rises])
    offsets = np.concatenate([-falls * deltas, -np.expm1(epsilons) - deltas])
    order = np.lexsort((offsets, slopes))
    kept: list[tuple[float, float]] = []
    for line in zip(slopes[order].tolist(), offsets[order].tolist(), strict=True):
        if kept and kept[-1][0] == line[0]:
            kept.pop()  # the other one is lower
        while len(kept) > 1 and _hides(kept[-2], line, kept[-1]):
            kept.pop()
        kept.append(line)
    return np.array([slope for slope, _ in kept]), np.array([offset for _, offset in kept])


def _hides(a: tuple[float, float], c: tuple[float, float], b: tuple[float, float]) -> bool:
    """Return whether lines of smaller and larger slope hide the one between them."""
    return (c[1] - a[1]) * (b[0] - a[0]) >= (b[1] - a[1]) * (c[0] - a[0])


def lines_of(law: RatioDistribution) -> Lines:
    """Return lines below g for every pair, added and removed, that a law dominates.

    The profile of a law bends at its atoms only, so that lines through them lose nothing.
    """
    bends = np.abs(np.log(law.x[law.x > 0.0]))
    epsilons = np.append(0.0, np.unique(bends[bends < _LARGEST_EPSILON]))
    deltas = np.array([delta_upper(law, epsilon, "add-remove") for epsilon in epsilons.tolist()])
    return supporting_lines(epsilons, deltas)


@dataclass(frozen=True, kw_only=True)
class AuditingRecursion(Method[CountTail]):
    r"""The least level at which Algorithm 3 refutes the claim bounds the probability of the count.

    The recursion follows $\alpha_i = \sum_{t \ge i} \frac tm p_t$ and $\beta_i = \sum_{t \ge i}
    \frac{c' - t}m p_t$ of the law p of the correct guesses downwards: $\beta_i \ge (k - 1) g(\alpha_{i+1})$
    with the inverse g of 1 - f. A total above c' / m is impossible, so the count is at most as likely as the
    level.
    """

    name = "auditing.recursion"
    problems = get_args(CountTail)
    direction = Direction.UPPER
    reference = f"{MAHLOUJIFAR}, Theorem 10 and Algorithm 3"
    version = 2

    def cost(self, problem: CountTail) -> Cost:
        return recursion_cost(problem)

    def answer(self, problem: CountTail, seed: int) -> Answer:
        if isinstance(problem, AuditTail):
            claim = (APPROXIMATE, problem.claimed_epsilon, problem.delta)
        else:
            claim = (GAUSSIAN, problem.mu, 0.0)
        level = smallest_level(claim, NO_LINES, problem.counts)
        return unlikely_at_most(level, "Algorithm 3")
