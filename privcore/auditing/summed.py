"""Expected correct guesses about canaries of DP-SGD, from the distribution of summed scores."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.auditing.extremes import NODES, mean_right, shares
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
    $F_0(s) + F_1(s) = c' / m$; the expectation is $\frac m2 (\bar F_1(t) + F_0(s))$. If exactly
    c' guesses are made, the thresholds are order statistics of the scores, over which the probabilities are
    averaged.
    """

    name = "auditing.summed"
    problems = (AuditDpsgdCorrect,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Section 4, canaries of one coordinate"

    def cost(self, problem: AuditDpsgdCorrect) -> Cost:
        q = problem.sampling_probability
        spread = math.sqrt(problem.steps * q * (1.0 - q))
        sums = NODES if problem.guess_number == "fixed" else 100.0
        return Cost(seconds=5e-3 + sums * (2e-5 + 4e-7 * spread), bytes=1e6 + 5000.0 * spread)

    def answer(self, problem: AuditDpsgdCorrect, seed: int) -> Answer:
        if problem.guesses == 0:
            return Answer.enclosure(0.0, 0.0, value=0.0, detail="no guess")
        scores = Scores(problem.sigma, problem.sampling_probability, problem.steps)
        if problem.guess_number == "fixed":
            low, high = scores.fixed(problem.canaries, problem.guesses)
        else:
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
        r"""Return bounds of the probability that a canary is beyond a threshold and guessed correctly.

        Args:
            rate: Share $c' / m$ of canaries with a guess, in (0, 1].

        Example:
            >>> low, high = Scores(15.507, 4096 / 50_000, 2500).correct(0.1)
            >>> round(5000 * low, 2), round(5000 * high, 2)
            (316.85, 316.85)
        """
        first, last = self._range()
        inside, outside = _crossing(
            lambda x: self.above(x) + float(scipy.special.ndtr(-x / self.deviation)), rate, first, last
        )
        below, beyond = _crossing(
            lambda x: -self.below(x) - float(scipy.special.ndtr(x / self.deviation)), -rate, first, last
        )
        least = 0.5 * (self.above(outside) + float(scipy.special.ndtr(below / self.deviation)))
        return least, 0.5 * (self.above(inside) + float(scipy.special.ndtr(beyond / self.deviation)))

    def fixed(self, canaries: int, guesses: int) -> tuple[float, float]:
        """Return bounds of the probability that a canary is among the extreme ones and guessed correctly.

        The likelihood ratio of a score grows with the score, so the probability of a right guess beyond a
        threshold is concave in the share of scores beyond it.

        Args:
            canaries: Number m of canaries.
            guesses: Number c' of guesses, half of them in; one more if it is odd.

        Example:
            >>> low, high = Scores(2.0, 0.3, 20).fixed(60, 20)
            >>> round(60 * low, 4), round(60 * high, 4)
            (14.6241, 14.6241)
        """
        ends = np.zeros(2)
        for chosen, side in ((guesses - guesses // 2, 1.0), (guesses // 2, -1.0)):
            if chosen == canaries:
                ends += 0.5
            elif chosen > 0:
                ends += 0.5 * np.array(self._extreme(canaries, chosen, side))
        return float(ends[0]), float(ends[1])

    def _extreme(self, canaries: int, chosen: int, side: float) -> tuple[float, float]:
        """Return the bounds for guesses of in (side 1) or of out (side -1), given that this is right."""
        tail = self.above if side > 0.0 else self.below
        first, last = self._range()

        def beyond(x: float) -> float:
            return 0.5 * (tail(x) + float(scipy.special.ndtr(-side * x / self.deviation)))

        small, large = shares(canaries, chosen)
        if side > 0.0:
            start, end = (_crossing(beyond, share, first, last)[0] for share in (small, large))
        else:
            start, end = (_crossing(lambda x: -beyond(x), -u, first, last)[0] for u in (small, large))
        x = np.linspace(start, end, NODES)
        of_all = self._normal(-side * x / self.deviation)
        inside = np.array([tail(each) for each in x.tolist()])
        right = inside if side > 0.0 else of_all
        return mean_right(canaries, chosen, 0.5 * (inside + of_all), right, 2.0)

    def _range(self) -> tuple[float, float]:
        """Return scores below and above which there are none, to machine precision."""
        far = 40.0 * self.deviation
        return min(float(self.times[0]) - far, -far), float(self.times[-1]) + far

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
