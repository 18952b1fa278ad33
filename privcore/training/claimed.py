"""Audits of a claimed training run: the p-value of its privacy curve, for every sampler that has a ratio."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy

from privcore import params
from privcore.answer import Answer
from privcore.auditing.curve import MOST_MU, curve_cost, least_tail
from privcore.auditing.exact import exact_tail
from privcore.auditing.problems import (
    AuditGaussianTail,
    Counts,
    recursion_cost,
    unlikely_at_most,
)
from privcore.auditing.programme import profile_of, proved_bound, solve, too_many_guesses
from privcore.auditing.recursion import LINES, lines_of, smallest_level
from privcore.auditing.tightest import counts_of, programme_cost
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution, Resolution
from privcore.likelihood_ratio.enclose import SHARE, Question, cost, first_fineness, tier
from privcore.likelihood_ratio.profile import delta_upper
from privcore.likelihood_ratio.ratios import Gaussian, Ratio
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import NOISE_BRACKET
from privcore.papers import MAHLOUJIFAR
from privcore.training.bounds import Bounds, composed
from privcore.training.curve_problems import AuditClaimTail
from privcore.training.own_problem import proved
from privcore.training.phase import RELATIONS, unamplified

_SMALLEST = 1e-12
"""p-values far below it do not get smaller by wider tails."""
_POINTS = 40
"""Number of points of the privacy profile in the linear programme."""


@dataclass(frozen=True, kw_only=True)
class AuditingClaimed(Method[AuditClaimTail]):
    """Bound the p-value by Algorithm 3, exact probabilities along the privacy curve, and a linear programme.

    All three hold for every mechanism whose privacy profile is at most that of a dominating distribution of
    the run. The linear programme is for up to 500 guesses. A run that reveals the steps of a canary is less
    private, so its p-value is another bound.
    """

    name = "auditing.claimed"
    problems = (AuditClaimTail,)
    direction = Direction.UPPER
    reference = f"{MAHLOUJIFAR}, Theorem 9, and Algorithm 3 (Theorem 10) for the curve of a run"
    shares = ("phases",)

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def applies(self, problem: AuditClaimTail) -> str | None:
        relation = RELATIONS[problem.relation()]
        return next((why for phase in problem.run() if (why := phase.reason(relation))), None)

    def cost(self, problem: AuditClaimTail) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        question = Question(asks="epsilon", at=_SMALLEST / problem.canaries, adjacency=problem.relation())
        tests = [recursion_cost(problem), curve_cost(problem)]
        if too_many_guesses(problem) is None:
            tests.append(programme_cost(problem))
        seconds, memory = sum(each.seconds for each in tests), sum(each.bytes for each in tests)
        for ratio in _ratios(_bounds(problem)):
            law = cost(question, ratio.width, self.tolerance, ratio.levels)
            more = (ratio.combinations + 1) / (ratio.levels + 1)
            tests.append(Cost(seconds=law.seconds * more + seconds, bytes=law.bytes + memory))
        return Cost(seconds=sum(each.seconds for each in tests), bytes=max(each.bytes for each in tests))

    def answer(self, problem: AuditClaimTail, seed: int) -> Answer:
        best = _without_amplification(problem)
        for ratio in _ratios(_bounds(problem)):
            tail = tier(SHARE * _SMALLEST / problem.canaries) * tier(1.0 / ratio.copies)
            fineness = first_fineness("epsilon", self.tolerance, ratio.levels)
            try:
                law = ratio.bracket(Resolution(fineness=fineness, tail=tail)).upper
            except LikelihoodRangeError:
                continue
            probability, detail = least_probability(problem, law)
            found = unlikely_at_most(problem, probability, detail)
            best = min(best, found, key=lambda answer: answer.upper)
        return best


def least_probability(counts: Counts, dominating: RatioDistribution) -> tuple[float, str]:
    """Return the least bound of the probability of the count for independent coins, and its source.

    Args:
        counts: Canaries, guesses, correct guesses and alternatives.
        dominating: Distribution that dominates the likelihood ratio of the mechanism.
    """

    def at(epsilon: float) -> float:
        delta = delta_upper(dominating, epsilon, "add-remove")
        return exact_tail(
            counts.canaries, counts.guesses, counts.correct, epsilon, delta, counts.alternatives
        )[1]

    advantage = delta_upper(dominating, 0.0, "add")
    mu = min(max(2.0 * float(scipy.special.ndtri(0.5 + 0.5 * advantage)), 1e-3), MOST_MU)
    found = [(smallest_level((LINES, 0.0, 0.0), lines_of(dominating), counts.counts), "Algorithm 3")]
    found.append((least_tail(at, mu)[0], "closed form along the privacy curve"))
    if too_many_guesses(counts) is None:
        slopes = np.linspace(-3.0 * mu - 1.0, 6.0 * mu + 0.5 * mu * mu + 1.0, _POINTS)
        profile = profile_of(dominating, slopes)
        solved = solve(counts, slopes, profile)
        if solved is not None:
            bound = proved_bound(counts, slopes, profile, solved.multipliers)
            found.append((bound, f"linear programme with {_POINTS} points of the privacy profile"))
    return min(found)


def _bounds(problem: AuditClaimTail) -> Bounds:
    relation = RELATIONS[problem.relation()]
    return composed([phase.bounds(relation, _SMALLEST) for phase in problem.run()])


def _ratios(bounds: Bounds) -> Iterator[Ratio]:
    """Yield the ratios that dominate the run; those within a distance of it do not bound the counts."""
    for each in bounds.stages[0].above:
        if each.moved == 0.0 and not isinstance(each.ratio, Gaussian):
            yield each.ratio


def _without_amplification(problem: AuditClaimTail) -> Answer:
    """Return the bound for the run that reveals the steps of a canary, which is a Gaussian mechanism."""
    mu = unamplified(problem.run(), RELATIONS[problem.relation()]) * (1.0 + NOISE_BRACKET)
    if mu > MOST_MU:
        return Answer.at_most(1.0, detail="no bound without amplification")
    found = proved(AuditGaussianTail(**counts_of(problem), mu=mu))
    return Answer.at_most(found.upper, detail="no amplification")
