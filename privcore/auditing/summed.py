"""Expected correct guesses about canaries of DP-SGD, from the distribution of summed scores."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.auditing.planning_problems import AuditDpsgdCorrect
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import Array, window
from privcore.numerics.rounding import SUMMED_SCORES
from privcore.numerics.sums import dot
from privcore.papers import MAHLOUJIFAR

_NEGLIGIBLE = 1e-25
"""Smaller probabilities of participations are left out; their sum stays below the slack."""


@dataclass(frozen=True, kw_only=True)
class AuditingSummed(Method[AuditDpsgdCorrect]):
    r"""Find both thresholds, and add the probabilities of correct guesses beyond them.

    The score is $\mathcal N(0, T \sigma^2)$ without the canary; with the canary, $\mathrm{Bin}(T, q)$ is
    added. The upper threshold t has $\bar F_0(t) + \bar F_1(t) = c' / m$ and the lower one s has
    $F_0(s) + F_1(s) = c' / m$; the expectation is $\frac m2 (\bar F_1(t) + F_0(s))$.
    """

    name = "auditing.summed"
    problems = (AuditDpsgdCorrect,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Section 4, canaries of one coordinate"

    def cost(self, problem: AuditDpsgdCorrect) -> Cost:
        q = problem.sampling_probability
        spread = math.sqrt(problem.steps * q * (1.0 - q))
        return Cost(seconds=5e-3 + 4e-5 * spread, bytes=1e6 + 5000.0 * spread)

    def answer(self, problem: AuditDpsgdCorrect, seed: int) -> Answer:
        if problem.guesses == 0:
            return Answer.enclosure(0.0, 0.0, value=0.0, detail="no guess")
        scores = Scores(problem.sigma, problem.sampling_probability, problem.steps)
        low, high = scores.correct(problem.guesses / problem.canaries)
        lower = problem.canaries * low * (1.0 - SUMMED_SCORES)
        upper = min(float(problem.guesses), problem.canaries * high * (1.0 + SUMMED_SCORES))
        value = min(max(0.5 * problem.canaries * (low + high), lower), upper)
        return Answer.enclosure(lower, upper, value=value, detail="distribution of the summed scores")


class Scores:
    """Distributions of a score with and without its canary."""

    def __init__(self, sigma: float, rate: float, steps: int) -> None:
        """Compute the probabilities of all participations that are not negligible."""
        participations = window(steps, rate)
        kept = participations.law > _NEGLIGIBLE
        self.law, self.times = participations.law[kept], participations.counts[kept]
        self.deviation = sigma * math.sqrt(steps)

    def correct(self, rate: float) -> tuple[float, float]:
        r"""Return bounds of the probability that a canary has a guess and that the guess is correct.

        Args:
            rate: Share $c' / m$ of canaries with a guess, in (0, 1].

        Example:
            >>> low, high = Scores(15.507, 4096 / 50_000, 2500).correct(0.1)
            >>> round(5000 * low, 2), round(5000 * high, 2)
            (316.85, 316.85)
        """
        first, last = (
            float(self.times[0]) - 40.0 * self.deviation,
            float(self.times[-1]) + 40.0 * self.deviation,
        )
        first = min(first, -40.0 * self.deviation)
        inside, outside = _crossing(
            lambda x: self.above(x) + float(scipy.special.ndtr(-x / self.deviation)), rate, first, last
        )
        below, beyond = _crossing(
            lambda x: -self.below(x) - float(scipy.special.ndtr(x / self.deviation)), -rate, first, last
        )
        least = 0.5 * (self.above(outside) + float(scipy.special.ndtr(below / self.deviation)))
        return least, 0.5 * (self.above(inside) + float(scipy.special.ndtr(beyond / self.deviation)))

    def above(self, x: float) -> float:
        """Return the probability that a score with its canary is above x."""
        return float(dot(self.law, self._normal((self.times - x) / self.deviation)))

    def below(self, x: float) -> float:
        """Return the probability that a score with its canary is below x."""
        return float(dot(self.law, self._normal((x - self.times) / self.deviation)))

    @staticmethod
    def _normal(z: Array) -> Array:
        with np.errstate(under="ignore"):
            return np.asarray(scipy.special.ndtr(z))


def _crossing(falls: Callable[[float], float], level: float, low: float, high: float) -> tuple[float, float]:
    """Return two neighbouring numbers between which a falling function crosses a level."""
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if falls(middle) > level else (low, middle)
