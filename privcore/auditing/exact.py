"""Exact p-values: of (epsilon, delta)-DP, and along the privacy curve of a Gaussian mechanism."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from privcore.answer import Answer
from privcore.auditing.problems import (
    MOST,
    AuditEpsilon,
    AuditGaussianTail,
    AuditMu,
    AuditTail,
    Counts,
    level,
    unlikely_at_most,
)
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.profile import delta_upper
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import Array
from privcore.numerics.gaussian import gaussian_delta_bounds, last_true
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


_POINTS, _MOST_STEPS = 24, 40
"""Number of epsilons of the first search for the least probability, and most steps of the second."""
_ROUNDS, _PRECISION = 30, 1e-7
"""Most rounds of the search for mu, and its relative precision; every round ends at a refuted mu."""

MOST_MU = 30.0
"""Largest mu of searches."""


def curve_tail(problem: Counts, mu: float) -> tuple[float, float]:
    r"""Return a bound of the probability of the count under mu-GDP, and the epsilon that gives it.

    $$\min_{\varepsilon \ge 0} p(\varepsilon, \delta_\mu(\varepsilon))$$

    Here p is the exact probability of (epsilon, delta)-DP. A mechanism that is mu-GDP is
    $(\varepsilon, \delta_\mu(\varepsilon))$-DP for every epsilon, and all these probabilities bound the same
    event, so the minimum holds without a correction for the search.

    Args:
        problem: Canaries, guesses, correct guesses and alternatives.
        mu: Parameter of Gaussian differential privacy, >= 0.

    Returns:
        Probability, rounded up, and epsilon in nats.

    Reference:
        Mahloujifar, Melis and Chaudhuri (2024), arXiv:2410.22235v1, Theorem 9; the solution is ours.

    Example:
        >>> counts = AuditMu(canaries=1000, guesses=600, correct=400)
        >>> [round(end, 4) for end in curve_tail(counts, 0.3)]
        [0.1073, 0.4996]
    """
    if mu == 0.0:
        return _probability(problem, mu, 0.0), 0.0
    return least_tail(partial(_probability, problem, mu), mu)


def least_tail(probability: Callable[[float], float], mu: float) -> tuple[float, float]:
    """Return the least value found of a probability along a privacy curve, and the epsilon that gives it.

    Args:
        probability: Function of epsilon >= 0.
        mu: The curve is about that of mu-GDP, > 0.
    """
    # At the largest epsilon, delta is far below 1 / m^2, so larger ones do not help.
    coarse = np.linspace(0.0, mu * (0.5 * mu + 12.0), _POINTS).tolist()
    values = [probability(epsilon) for epsilon in coarse]
    best = int(np.argmin(values))
    found = minimize_scalar(
        lambda epsilon: math.log(probability(epsilon)),
        bounds=(coarse[max(0, best - 1)], coarse[min(_POINTS - 1, best + 1)]),
        method="bounded",
        options={"maxiter": _MOST_STEPS, "xatol": 1e-4 * coarse[1]},
    )
    near = float(found.x)
    return min((probability(near), near), (values[best], coarse[best]))


def curve_mu(problem: AuditEpsilon | AuditMu, start: float) -> float:
    """Return the largest mu found that the exact probabilities along the curve refute, at least `start`.

    At one epsilon the probability grows with mu, so the largest mu that it refutes is known. Rounds take the
    best epsilon for the last mu.

    Args:
        problem: The counts and the confidence.
        start: Mu that another bound refutes, or 0.

    Returns:
        Mu, at most 30.
    """
    tau = level(problem)
    mu, epsilon = start, 0.0
    if start > 0.0:
        probability, epsilon = curve_tail(problem, start)
        if probability > tau:
            return start
    for _ in range(_ROUNDS):
        before = mu
        refuted = partial(_is_refuted, problem, epsilon, tau)
        mu = last_true(refuted, before, MOST_MU)[0]
        if mu <= before * (1.0 + _PRECISION):
            break
        epsilon = curve_tail(problem, mu)[1]
    return mu


def _is_refuted(problem: Counts, epsilon: float, tau: float, mu: float) -> bool:
    return _probability(problem, mu, epsilon) <= tau


def _probability(problem: Counts, mu: float, epsilon: float) -> float:
    """Return the exact probability at one epsilon of the curve, rounded up."""
    return _exact(problem, epsilon, gaussian_delta_bounds(1.0 / mu, epsilon)[1] if mu > 0.0 else 0.0)


def probability_at(problem: Counts, dominating: RatioDistribution, epsilon: float) -> float:
    """Return the exact probability at one epsilon of the curve of a dominating distribution, rounded up."""
    return _exact(problem, epsilon, delta_upper(dominating, epsilon, "add-remove"))


def _exact(problem: Counts, epsilon: float, delta: float) -> float:
    counts = problem.canaries, problem.guesses, problem.correct
    return exact_tail(*counts, epsilon, delta, problem.alternatives)[1]


def curve_cost(problem: Counts) -> Cost:
    """Return the cost of one minimum over the curve."""
    claim = AuditTail(
        canaries=problem.canaries,
        guesses=problem.guesses,
        correct=problem.correct,
        claimed_epsilon=1.0,
        delta=0.5,
    )
    once = AuditingExact().cost(claim)
    return Cost(seconds=0.01 + (_POINTS + _MOST_STEPS) * once.seconds, bytes=once.bytes)


class AuditingCurve(Method[AuditGaussianTail]):
    """The least exact probability along the privacy curve of the Gaussian mechanism.

    It holds for any number of guesses and of alternatives. The proof is that of `curve_tail`.
    """

    name = "auditing.curve"
    problems = (AuditGaussianTail,)
    direction = Direction.UPPER
    reference = f"{MAHLOUJIFAR}, Theorem 9; the solution is ours"

    def cost(self, problem: AuditGaussianTail) -> Cost:
        return curve_cost(problem)

    def answer(self, problem: AuditGaussianTail, seed: int) -> Answer:
        probability, epsilon = curve_tail(problem, problem.mu)
        return unlikely_at_most(problem, probability, f"closed form at epsilon {epsilon:.4g}")
