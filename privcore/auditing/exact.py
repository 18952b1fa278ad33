"""The exact p-value of (epsilon, delta)-DP: the largest probability of a count of all private mechanisms."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privcore.answer import Answer
from privcore.auditing.problems import MOST, AuditEpsilon, AuditTail, level
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import Array
from privcore.numerics.gaussian import last_true
from privcore.papers import MAHLOUJIFAR

_NEGLIGIBLE = 1e-17
"""Share of a sum that the terms without a term of their own may have; it is added as a bound."""
_LEAST = 1e-300


def exact_tail(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float, alternatives: int = 2
) -> tuple[float, float]:
    r"""Return bounds of the largest probability of this many correct guesses under (epsilon, delta)-DP.

    $$\min\{1, \Pr[B \ge c]\,(1 + \tfrac{m \delta}{c} \Pr[B < c] / \Pr[B = c])\}, \qquad
      B \sim \mathrm{Bin}(c', 1 / (1 + (k - 1) e^{-\varepsilon}))$$

    Audits are symmetric in the canaries and their alternatives, so the mechanism may be taken to be so, too.
    Let $p_i$ be the probability of i correct guesses, $b_i$ that of B, and $r_i = p_i / b_i$. Since
    $i b_i = e^\varepsilon (c' - i + 1) b_{i-1} / (k - 1)$, the condition of Theorem 9 for all sets of counts
    is $\sum_i i b_i (r_i - r_{i-1})_+ \le m \delta$. An increase u of r at j costs $j b_j u$, and adds
    $u \Pr[B \ge c] \Pr[B < j]$ for $j \le c$, or $u \Pr[B < c] \Pr[B \ge j]$ for $j \ge c$. Per cost, the
    first grows with j and the second falls, because $\Pr[B < j] / b_{j-1}$ and $b_j / \Pr[B \ge j]$ grow:
    j = c is best. This r increases, so the mechanism is private, and the bound is attained.

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses.
        correct: Number c of correct guesses.
        epsilon: In nats, >= 0; beyond 700 the upper bound is 1.
        delta: In [0, 1].
        alternatives: Number k of alternatives of a canary, >= 2.

    Returns:
        Probabilities, rounded down and up.

    Reference:
        Mahloujifar, Melis and Chaudhuri (2024), arXiv:2410.22235v1, Theorem 9; the solution is ours.

    Example:
        >>> [round(end, 9) for end in exact_tail(1000, 100, 90, 1.615, 1e-4)]
        [0.04663846, 0.04663846]
        >>> exact_tail(8, 8, 1, 0.0, 1 / 128)[1]
        1.0
    """
    if correct == 0:
        return 1.0, 1.0
    odds = math.exp(min(epsilon, MOST)) / (alternatives - 1.0)
    # Sums of the probabilities from c on, and below c, in units of that of c.
    above = _sum(lambda j: odds * ((guesses - correct - j) / (correct + j + 1.0)), guesses - correct)
    below = _sum(lambda j: (correct - j) / (guesses - correct + j + 1.0) / odds, correct)
    share = canaries * delta / correct
    return (
        max(0.0, _value(1.0 + above[0], below[1], share) * (1.0 - 2.0**-49)),
        min(1.0, _value(1.0 + above[1], below[0], share) * (1.0 + 2.0**-49) + _LEAST)
        if epsilon <= MOST
        else 1.0,
    )


def exact_epsilon(problem: AuditEpsilon) -> float:
    """Return the largest epsilon whose exact p-value is at most 1 - confidence, or 0.

    Returns:
        Epsilon in nats, not rounded down, or a number above 700 if every epsilon is refuted.

    Example:
        >>> round(exact_epsilon(AuditEpsilon(canaries=1000, guesses=100, correct=90, delta=1e-4)), 4)
        1.6248
    """
    counts = problem.canaries, problem.guesses, problem.correct

    def is_refuted(epsilon: float) -> bool:
        p = exact_tail(*counts, epsilon, problem.delta, problem.alternatives)[1]
        return p <= level(problem)

    if not is_refuted(0.0):
        return 0.0
    return 2.0 * MOST if is_refuted(MOST) else last_true(is_refuted, 0.0, MOST)[0]


def _value(above: float, below: float, share: float) -> float:
    """Return the probability; it grows with `above`, and below 1 it falls with `below`."""
    if math.isinf(below):
        return min(1.0, above * share)
    return min(1.0, (1.0 + share * below) / (1.0 + below / above))


def _sum(ratio: Callable[[Array], Array], terms: int) -> tuple[float, float]:
    """Return bounds of the sum of the products of the first 1, 2, ... ratios, which fall.

    Args:
        ratio: Function of indices that returns the ratios, each with an error of a few roundings.
        terms: Number of ratios.
    """
    total, product, done, size, rest = 0.0, 1.0, 0, 256, math.inf
    while done < terms and rest > _NEGLIGIBLE * total and math.isfinite(total):
        with np.errstate(over="ignore", under="ignore"):
            ratios = ratio(np.arange(done, min(done + size, terms), dtype=float))
            products = product * np.cumprod(ratios)
            total += float(products.sum())
        product, last = float(products[-1]), float(ratios[-1])
        done, size = done + ratios.size, 2 * size
        rest = product * last / (1.0 - last) if last < 1.0 else math.inf
    error = (6.0 * done + 16.0) * 2.0**-52
    missing = rest if done < terms else 0.0
    if math.isinf(total):
        return 1e300, math.inf
    return total * (1.0 - error), (total + missing) * (1.0 + error) + _LEAST


@dataclass(frozen=True, kw_only=True)
class AuditingExact(Method[AuditTail]):
    """The closed form of the largest probability, which a private mechanism attains.

    It holds for any number of guesses and of alternatives. The proof is that of `exact_tail`. The mechanism
    chooses the correct guesses without regard to the coins, so it has the same probability if exactly half of
    the canaries are included; the largest probability is then at most that of independent coins, divided by
    the probability that they include half.
    """

    name = "auditing.exact"
    problems = (AuditTail,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Theorem 9; the solution is ours"

    def cost(self, problem: AuditTail) -> Cost:
        terms = min(float(problem.guesses), 512.0 + 200.0 * problem.guesses**0.5)
        return Cost(seconds=1e-3 + 1e-7 * terms, bytes=1e6 + 100.0 * terms)

    def answer(self, problem: AuditTail, seed: int) -> Answer:
        counts = problem.canaries, problem.guesses, problem.correct
        low, high = exact_tail(*counts, problem.claimed_epsilon, problem.delta, problem.alternatives)
        return Answer.enclosure(low, min(1.0, high / problem.share), detail="closed form")
