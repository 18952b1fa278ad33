"""Bound of Steinke, Nasr and Jagielski (2023): randomized responses, some of them revealed.

The p-values of `auditing.revealed` use it at one (epsilon, delta), or along the privacy curve of a Gaussian.
"""

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np

from privcore.answer import Answer
from privcore.auditing.exact import exact_tail
from privcore.auditing.problems import AuditEpsilon, AuditGaussianTail, AuditTail, CountTail, unlikely_at_most
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import window
from privcore.numerics.gaussian import gaussian_delta_bounds
from privcore.numerics.rounding import BINOMIAL_WINDOW, probability_at_most
from privcore.papers import STEINKE


def revealed_tail(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float, alternatives: int = 2
) -> float:
    r"""Return their bound of the probability of this many correct guesses under (epsilon, delta)-DP.

    $$\Pr[B \ge c] + 2 m \delta \max_{1 \le i \le c} \frac 1i \Pr[c > B \ge c - i], \qquad
      B \sim \mathrm{Bin}(c', 1 / (1 + (k - 1) e^{-\varepsilon}))$$

    Their theorem has k = 2. At $\delta = 0$ its proof holds for every k: given the output and the earlier
    canaries, the probabilities of two alternatives differ by a factor of at most $e^\varepsilon$, so a guess
    is correct with probability at most $1 / (1 + (k - 1) e^{-\varepsilon})$.

    At $\delta > 0$ their bound can be too small where it is near 1: for one correct guess of 8 about 8
    canaries at epsilon 0 and delta 1/255 it is 0.9963, but the mechanism that publishes any bits other than
    the complement of the true ones, all equally likely, is private and always has a correct guess. The proof
    takes the gains from delta as independent of the other guesses, but a mechanism can make them only where a
    correct guess is lacking. So the bound here is at least that of `exact_tail`.

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses.
        correct: Number c of correct guesses.
        epsilon: In nats, >= 0.
        delta: In [0, 1].
        alternatives: Number k of alternatives of a canary, >= 2; 2 unless delta is 0.

    Returns:
        Upper bound in [0, 1], rounded up.

    Reference:
        Steinke, Nasr and Jagielski (2023), arXiv:2305.08846v1, Theorem 5.2.

    Example:
        >>> round(revealed_tail(1000, 100, 90, 1.0, 0.0), 9)
        2.7358e-05
    """
    if correct == 0:
        return 1.0
    law = window(guesses, 1.0 / (1.0 + (alternatives - 1.0) * math.exp(-epsilon)))
    probability = law.at_least(correct)
    if delta > 0.0:
        below = law.law[: max(0, correct - law.first)][::-1]  # of c - 1, c - 2, ...
        nearest = correct - (law.first + below.size - 1)  # 1, or more where c is above the window
        distances = nearest + np.arange(below.size)
        share = float((np.cumsum(below) / distances).max(initial=0.0))
        # Probabilities below the window are bounded as if they were at distance 1 from c.
        share = max(share, 1e-290)
        probability += 2.0 * canaries * delta * share
        probability = max(probability, exact_tail(canaries, guesses, correct, epsilon, delta)[1])
    slack = BINOMIAL_WINDOW * (1.0 if alternatives == 2 else 2.0)
    return probability_at_most(probability, slack, 1e-290)


def only_pure(problem: AuditEpsilon | CountTail) -> str | None:
    """Return the reason why their theorem does not apply to several alternatives, or None."""
    if problem.alternatives == 2 or (not isinstance(problem, AuditGaussianTail) and problem.delta == 0.0):
        return None
    return "The theorem is for guesses of inclusion (alternatives=2); at delta=0 it holds for any number."


_POINTS = 120


@dataclass(frozen=True, kw_only=True)
class AuditingRevealed(Method[CountTail]):
    r"""Bound of Steinke et al. at the claimed level, or its minimum over the curve of a Gaussian mechanism.

    A mechanism that is mu-GDP is $(\varepsilon, \delta(\varepsilon))$-DP for every epsilon, and all these
    bounds are for the probability of the same event: their minimum holds, without a correction for the
    search.
    """

    name = "auditing.revealed"
    version = 2
    problems = get_args(CountTail)
    direction = Direction.UPPER
    reference = f"{STEINKE}, Theorem 5.2, where its bound is valid"

    def applies(self, problem: CountTail) -> str | None:
        return only_pure(problem)

    def cost(self, problem: CountTail) -> Cost:
        points = 1.0 if isinstance(problem, AuditTail) else 2.0 * _POINTS
        root = problem.guesses**0.5
        return Cost(seconds=0.01 + points * (2e-4 + 2e-6 * root), bytes=2e6 + 4e4 * root)

    def answer(self, problem: CountTail, seed: int) -> Answer:
        counts = problem.canaries, problem.guesses, problem.correct
        if isinstance(problem, AuditTail):
            bound = revealed_tail(*counts, problem.claimed_epsilon, problem.delta, problem.alternatives)
            return unlikely_at_most(problem, bound, "bound of Steinke et al.")
        if problem.mu == 0.0:
            return unlikely_at_most(problem, revealed_tail(*counts, 0.0, 0.0), "coin flips")

        def at(epsilon: float) -> float:
            return revealed_tail(*counts, epsilon, gaussian_delta_bounds(1.0 / problem.mu, epsilon)[1])

        # At `largest`, delta is far below 1 / m^2, so larger epsilons do not help.
        largest = problem.mu * (0.5 * problem.mu + 12.0)
        coarse = np.linspace(0.0, largest, _POINTS).tolist()
        values = [at(x) for x in coarse]
        best = int(np.argmin(values))
        left, right = coarse[max(0, best - 1)], coarse[min(_POINTS - 1, best + 1)]
        fine = np.linspace(left, right, _POINTS).tolist()
        found, where = min((at(x), x) for x in fine)
        found, where = min((found, where), (values[best], coarse[best]))
        return unlikely_at_most(problem, found, f"bound of Steinke et al. at epsilon {where:.4g}")
