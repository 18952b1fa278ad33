"""A mechanism that is as private as is claimed and lets many guesses be correct: p-values from below."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privcore.answer import Answer
from privcore.auditing.binomial import ERROR, window
from privcore.auditing.problems import AuditGaussianTail, AuditTail, Counts
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN, NO_LINES, inverse
from privcore.method import Cost, Direction, Method
from privcore.problem import Problem

_ACCURACIES = 200


@dataclass(frozen=True, kw_only=True)
class AuditingAttaining(Method):
    r"""With probability pi publish responses of accuracy a for c' random canaries, else coin flips.

    That is f-DP where $1 - f(\pi \gamma \frac{1 - a}{k - 1}) \ge \pi \gamma a$ with $\gamma = c' / m$, and at
    least c guesses are correct with probability $\pi P[\mathrm{Bin}(c', a) \ge c] + (1 - \pi)
    P[\mathrm{Bin}(c', 1/k) \ge c]$. The largest over a is a lower bound for every valid p-value, hence a
    ceiling for every audit by counts.
    """

    name: ClassVar[str] = "auditing.attaining"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditTail, AuditGaussianTail)
    direction: ClassVar[Direction] = Direction.LOWER
    reference: ClassVar[str] = "a mechanism of ours, beside arXiv:2410.22235, Lemma 11"

    def applies(self, problem: Problem) -> str | None:
        assert isinstance(problem, Counts)
        return (
            None if problem.alternatives == 2 else "The mechanism is proved for guesses of inclusion, k = 2."
        )

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Counts)
        return Cost(
            seconds=0.05 + 2e-6 * _ACCURACIES * problem.guesses**0.5, bytes=2e6 + 4e4 * problem.guesses**0.5
        )

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditTail | AuditGaussianTail)
        if problem.guesses == 0:
            return Answer.enclosure(float(problem.correct == 0), 1.0, detail="no guess")
        by_chance = window(problem.guesses, 0.5).at_least(problem.correct)
        best, where = by_chance, 0.5
        for accuracy in _accuracies(problem):
            share = _share(problem, accuracy)
            tail = window(problem.guesses, accuracy).at_least(problem.correct)
            found = share * tail + (1.0 - share) * by_chance
            if found > best:
                best, where = found, accuracy
        lower = max(0.0, min(1.0, best * (1.0 - 2.0 * ERROR)))
        return Answer.enclosure(lower, 1.0, detail=f"responses of accuracy {where:.4g}")


def _accuracies(problem: AuditTail | AuditGaussianTail) -> list[float]:
    """Return accuracies to try: that at which every canary may be answered, and those beyond."""
    low, high = 0.0, 40.0  # in log odds
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _share(problem, _odds(middle)) >= 1.0 else (low, middle)
    return [_odds(low), *(_odds(x) for x in np.linspace(low, low + 20.0, _ACCURACIES).tolist())]


def _odds(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))


def _share(problem: AuditTail | AuditGaussianTail, accuracy: float) -> float:
    """Return the largest probability with which responses of that accuracy may be published."""
    gamma = problem.guesses / problem.canaries
    family = (
        (APPROXIMATE, problem.claimed_epsilon, problem.delta)
        if isinstance(problem, AuditTail)
        else (GAUSSIAN, problem.mu, 0.0)
    )

    def private(share: float) -> bool:
        right, wrong = share * gamma * accuracy, share * gamma * (1.0 - accuracy)
        return bool(inverse(family, NO_LINES, min(1.0, right * (1.0 + 1e-12))) <= wrong)

    if private(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if private(middle) else (low, middle)
    return low
