"""What no audit by counts can exceed: the epsilon at which a private mechanism is as often correct."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.auditing.binomial import ERROR, window
from privcore.auditing.combined import AuditingCombined
from privcore.auditing.counts import MOST
from privcore.auditing.gaussian_family import epsilon_of, refuted_mu
from privcore.auditing.planning_problems import AuditCeiling
from privcore.auditing.problems import AuditEpsilon, Counts
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN, NO_LINES, Claim, inverse
from privcore.gaussian import gaussian_epsilon_bounds
from privcore.method import Cost, Direction, Method
from privcore.problem import Problem

_PRECISION = 1e-7
"""Relative precision of the search: far below what the accuracies that are tried leave open."""
_MOST_MU = 60.0
_LEAST_MU = 1e-6
"""The epsilon of a Gaussian mechanism with less is bounded by that of this mu."""
_SPACING = 0.02
_COARSE = range(-300, 601, 10)
"""Accuracies that are tried first: log odds around the counted ones, in spacings of so many deviations."""


@dataclass(frozen=True, kw_only=True)
class AuditingCeiling(Method):
    r"""Enclose the largest refutable epsilon by an audit and by a mechanism that attains the counts.

    From below by the best audit that is known: `auditing.combined`, or for the Gaussian family
    `auditing.gaussian`. From above by the least epsilon at which a private mechanism has so many correct
    guesses with more than probability 1 - confidence: to refute that epsilon would be an error. The mechanism
    publishes, with probability pi, responses of accuracy a for c' random canaries, and else coin flips. With
    $\gamma = c' / m$ it is f-DP where $1 - f(\pi \gamma (1 - a)) \ge \pi \gamma a$.
    """

    name: ClassVar[str] = "auditing.ceiling"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditCeiling,)
    direction: ClassVar[Direction] = Direction.ENCLOSURE
    reference: ClassVar[str] = "arXiv:2410.22235, Theorem 10; for the upper end a mechanism of ours"

    def applies(self, problem: Problem) -> str | None:
        assert isinstance(problem, Counts)
        return None if problem.alternatives == 2 else "The mechanism is for guesses of inclusion, k = 2."

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Counts)
        return ceiling_cost(problem.guesses if self.applies(problem) is None else 0)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditCeiling)
        lower, upper = refutable(problem)
        return Answer.enclosure(
            lower, upper, detail=f"audit and attaining mechanism, {problem.family} family"
        )


def ceiling_cost(guesses: int) -> Cost:
    """Return the cost of both ends of the largest refutable epsilon."""
    root = guesses**0.5
    return Cost(seconds=0.1 + 3e-4 * root, bytes=2e6 + 4e4 * root)


def refutable(problem: AuditCeiling) -> tuple[float, float]:
    """Return both ends of the largest epsilon that a valid audit can refute, the ceiling being the upper one.

    Args:
        problem: Counts of inclusion guesses, delta, confidence and the family.

    Returns:
        What an audit refutes, rounded down, and what none can exceed, rounded up; in nats.

    Example:
        >>> counts = {"canaries": 1000, "guesses": 1000, "correct": 691}
        >>> low, high = refutable(AuditCeiling(**counts, delta=1e-5, family="gaussian"))
        >>> round(low, 4), round(high, 4)
        (1.2967, 1.4524)
    """
    audit = AuditEpsilon(
        canaries=problem.canaries,
        guesses=problem.guesses,
        correct=problem.correct,
        delta=problem.delta,
        audit_confidence=problem.audit_confidence,
    )
    tau = 1.0 - problem.audit_confidence
    attaining = Attaining(problem.canaries, problem.guesses, problem.correct)
    if problem.family == "approximate":
        refuted = AuditingCombined().answer(audit, 0).lower
        ceiling = _least(
            lambda x: attaining.probability((APPROXIMATE, x, problem.delta)) > tau, refuted, MOST
        )
        return refuted, max(refuted, ceiling)
    mu = refuted_mu(audit)
    ceiling = _least(lambda x: attaining.probability((GAUSSIAN, x, 0.0)) > tau, mu, _MOST_MU)
    lower = epsilon_of(mu, problem.delta)
    return lower, max(lower, _epsilon_above(ceiling, problem.delta))


class Attaining:
    """The mechanism for given counts, which looks for the accuracy that serves it best."""

    def __init__(self, canaries: int, guesses: int, correct: int) -> None:
        """Choose the accuracies to try: those near the one that was counted."""
        self.rate = guesses / canaries
        self.guesses, self.correct = guesses, correct
        right, wrong = correct + 0.5, guesses - correct + 0.5
        self.counted, self.deviation = math.log(right / wrong), math.sqrt((right + wrong) / (right * wrong))
        self.by_chance = self._tail(0.0)
        self.tails: dict[int, float] = {}

    def probability(self, claim: Claim) -> float:
        """Return with which probability at least so many guesses are correct, rounded down."""
        if self.correct == 0:
            return 1.0
        always = _largest(lambda x: self._private(claim, x, 1.0), 0.0, 700.0)
        tried = {i: self._attained(claim, i, always) for i in _COARSE}
        near = max(tried, key=lambda i: tried[i])
        fine = max(self._attained(claim, i, always) for i in range(near - 9, near + 10))
        return max(fine, self._tail(always)) * (1.0 - 2.0 * ERROR)

    def _attained(self, claim: Claim, place: int, always: float) -> float:
        """Return the probability with the accuracy of that number; 0 if it is no better than `always`."""
        log_odds = self.counted + place * _SPACING * self.deviation
        if log_odds <= always:
            return 0.0
        if place not in self.tails:
            self.tails[place] = self._tail(log_odds)
        share = _largest(lambda x: self._private(claim, log_odds, x), 0.0, 1.0)
        return share * self.tails[place] + (1.0 - share) * self.by_chance

    def _tail(self, log_odds: float) -> float:
        """Return the probability of at least so many correct responses."""
        return window(self.guesses, 1.0 / (1.0 + math.exp(-log_odds))).at_least(self.correct)

    def _private(self, claim: Claim, log_odds: float, share: float) -> bool:
        """Whether responses of that accuracy may be published with that probability."""
        right = share * self.rate / (1.0 + math.exp(-log_odds))
        wrong = share * self.rate / (1.0 + math.exp(log_odds))
        return bool(inverse(claim, NO_LINES, min(1.0, right * (1.0 + 1e-12))) <= wrong)


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest number up to which something holds, from below; what starts is taken for granted."""
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _least(attained: Callable[[float], bool], start: float, most: float) -> float:
    """Return a parameter at which the counts are attained, the least to within the precision."""
    if attained(0.0):
        return 0.0
    low, high = start, min(most, 1.05 * start + 0.1)
    while not attained(high):
        if high >= most:
            return math.inf
        low, high = high, min(most, 2.0 * high)
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if attained(middle) else (middle, high)
    return high


def _epsilon_above(mu: float, delta: float) -> float:
    """Return the epsilon of a Gaussian mechanism, rounded up."""
    if mu in (0.0, math.inf):
        return mu
    return gaussian_epsilon_bounds(1.0 / max(mu, _LEAST_MU), delta)[1]
