"""Algorithm 3, compiled: bounds of the probability of many correct guesses under a trade-off function.

The p-value of `auditing.recursion` is the least level at which the algorithm refutes a claim.
"""

import math
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.auditing.problems import AuditTail, CountTail, recursion_cost, unlikely_at_most
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.profile import delta_upper
from privcore.method import Cost, Direction, Method
from privcore.numerics.compiled import compiled
from privcore.papers import MAHLOUJIFAR

_TAIL = 0.02425
_ROOT = math.sqrt(2.0 * math.pi)


@compiled()
def below(x: float) -> float:
    """Return the probability that a standard normal variable lies below x.

    Example:
        >>> below(0.0)
        0.5
    """
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@compiled()
def quantile(p: float) -> float:
    """Return the x below which a standard normal variable lies with probability p.

    P. Acklam's rational approximation, with relative error 1.2e-9, is refined by one step of Halley's method.

    Args:
        p: Probability; values <= 0 return -infinity, values >= 1 return infinity.

    Example:
        >>> round(quantile(0.975), 12), quantile(0.0)
        (1.95996398454, -inf)
    """
    if p <= 0.0:
        return -math.inf
    if p >= 1.0:
        return math.inf
    if p > 0.5:
        return -_lower(1.0 - p)
    return _lower(p)


@compiled()
def _lower(p: float) -> float:
    """Return the quantile of a probability in (0, 1/2]."""
    if p < _TAIL:
        q = math.sqrt(-2.0 * math.log(p))
        top = -7.784894002430293e-3
        for c in (
            -3.223964580411365e-1,
            -2.400758277161838,
            -2.549732539343734,
            4.374664141464968,
            2.938163982698783,
        ):
            top = top * q + c
        bottom = 7.784695709041462e-3
        for d in (3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0):
            bottom = bottom * q + d
        x = top / bottom
    else:
        q = p - 0.5
        r = q * q
        top = -3.969683028665376e1
        for a in (
            2.209460984245205e2,
            -2.759285104469687e2,
            1.383577518672690e2,
            -3.066479806614716e1,
            2.506628277459239,
        ):
            top = top * r + a
        bottom = -5.447609879822406e1
        for b in (1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1.0):
            bottom = bottom * r + b
        x = top * q / bottom
    wrong = (below(x) - p) * _ROOT * math.exp(0.5 * x * x)
    return x - wrong / (1.0 + 0.5 * x * wrong)


Array = NDArray[np.float64]

GAUSSIAN, LAPLACE, APPROXIMATE, LINES = range(4)
"""Families of trade-off functions: Gaussian, Laplace, (epsilon, delta), and maxima of supporting lines."""

Claim = tuple[int, float, float]
"""A family, its parameter mu or epsilon, and delta, which is used by the third family only."""
Counts = tuple[float, float, float, float]
"""Canaries, guesses, correct guesses, and alternatives for every canary."""
Lines = tuple[Array, Array]
"""Slopes of supporting lines of g, ascending, and their values at 0; used by the last family only."""
_STALLED = 1e-13
"""Relative growth that counts as zero: near a fixed point, rounding alone would continue the recursion."""
NO_LINES: Lines = (np.zeros(0), np.zeros(0))


@compiled()
def inverse(claim: Claim, lines: Lines, y: float) -> float:
    r"""Return $g(y) = \inf\{x : 1 - f(x) \ge y\}$, for symmetric trade-off functions $f(1 - y)$.

    Args:
        claim: Family and parameters of f.
        lines: Supporting lines, for the last family only.
        y: Probability; the result is infinite for y > 1.
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
        # The third term is 1 - delta - e^epsilon (1 - y), written without cancellation for small y.
        return max(0.0, math.exp(-a) * (y - b), math.exp(a) * y - math.expm1(a) - b)
    slopes, offsets = lines
    low, high = 0, slopes.size - 1  # lines are sorted by slope, so bisection finds the largest
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] + slopes[middle] * y < offsets[middle + 1] + slopes[middle + 1] * y:
            low = middle + 1
        else:
            high = middle
    return max(0.0, float(offsets[low] + slopes[low] * y))


@compiled()
def unlikely(claim: Claim, lines: Lines, counts: Counts, tau: float) -> bool:
    """Return whether every mechanism with this claim has the count with probability at most tau.

    This is the recursion of the paper from the last guess to the first. It stops as soon as the outcome is
    decided: a sequence that does not grow in a step never exceeds the limit, and a sequence that grows once
    never falls. Growth by rounding alone counts as no growth, which refutes less.
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
    """Return the largest parameter of a nested family at which the count is unlikely, or 0.

    Args:
        family: Gaussian, Laplace or (epsilon, delta); a larger parameter is less private.
        delta: Delta of the (epsilon, delta) family.
        counts: Canaries, guesses, correct guesses, alternatives.
        tau: Significance level.
        most: Largest parameter of the search; infinity is returned if it is refuted.
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
    r"""Return an upper bound of the Gaussian parameter of an audit, from the first step of the recursion.

    $$\mu_A = \Phi^{-1}(\tau c / m) - \Phi^{-1}(\tau (c' - c) / ((k - 1) m))$$

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses.
        correct: Number c of correct guesses.
        alternatives: Number k of alternatives for every canary.
        tau: Significance level in (0, 1).

    Returns:
        Upper bound, which is the limit for many guesses at the same rates; infinite if all guesses are
        correct.

    Example:
        >>> round(gaussian_limit(100_000, 1500, 1429, 2, 0.05), 4)
        0.7842
    """
    errors = tau * (guesses - correct) / ((alternatives - 1) * canaries)
    return math.inf if errors == 0.0 else quantile(tau * correct / canaries) - quantile(errors)


_LARGEST_EPSILON = 300.0
"""Largest epsilon of a line, so that the slope e^epsilon stays within the range of doubles."""


def supporting_lines(epsilons: Array, deltas: Array) -> Lines:
    r"""Return supporting lines of the inverse of 1 - f for a symmetric f with this privacy profile.

    $$g(y) = \sup_\varepsilon \max(e^{-\varepsilon} (y - \delta), 1 - \delta - e^\varepsilon (1 - y))$$

    The maximum of finitely many lines is at most g, and a privacy profile that is rounded up moves the lines
    down: an audit with these lines refutes less, and is valid.

    Args:
        epsilons: Values >= 0, shape (n,).
        deltas: Privacy profile at these epsilons, the maximum of both directions, shape (n,).

    Returns:
        Slopes, ascending, and values at 0 of the lines on the upper envelope.

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
            kept.pop()  # the previous line is lower
        while len(kept) > 1 and _hides(kept[-2], line, kept[-1]):
            kept.pop()
        kept.append(line)
    return np.array([slope for slope, _ in kept]), np.array([offset for _, offset in kept])


def _hides(a: tuple[float, float], c: tuple[float, float], b: tuple[float, float]) -> bool:
    """Return whether line b, with a slope between those of a and c, is nowhere the maximum."""
    return (c[1] - a[1]) * (b[0] - a[0]) >= (b[1] - a[1]) * (c[0] - a[0])


def lines_of(law: RatioDistribution) -> Lines:
    """Return lines below g for every pair, in both directions, that the distribution dominates.

    The privacy profile of a discrete distribution has kinks at its atoms only, so lines through them suffice.
    """
    bends = np.abs(np.log(law.x[law.x > 0.0]))
    epsilons = np.append(0.0, np.unique(bends[bends < _LARGEST_EPSILON]))
    deltas = np.array([delta_upper(law, epsilon, "add-remove") for epsilon in epsilons.tolist()])
    return supporting_lines(epsilons, deltas)


class AuditingRecursion(Method[CountTail]):
    r"""Least level at which Algorithm 3 refutes the claim, which bounds the probability of the count.

    The recursion follows $\alpha_i = \sum_{t \ge i} \frac tm p_t$ and
    $\beta_i = \sum_{t \ge i} \frac{c' - t}m p_t$ of the distribution p of the number of correct guesses
    downwards: $\beta_i \ge (k - 1) g(\alpha_{i+1})$ with the inverse g of 1 - f. A total above c' / m is
    impossible, so the probability of the count is at most the level.
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
        return unlikely_at_most(problem, level, "Algorithm 3")
