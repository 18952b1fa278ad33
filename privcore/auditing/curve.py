"""Exact probabilities of (epsilon, delta)-DP along the privacy curve of a Gaussian mechanism."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from privcore.answer import Answer
from privcore.auditing.exact import AuditingExact, exact_tail
from privcore.auditing.problems import (
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
from privcore.numerics.gaussian import gaussian_delta_bounds, last_true
from privcore.papers import MAHLOUJIFAR

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


@dataclass(frozen=True, kw_only=True)
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
