"""Audits of a claim: the p-value of its privacy curve, for every run and every mechanism with a ratio."""

from functools import partial
from typing import Annotated

import numpy as np
import scipy

from privcore import params
from privcore.answer import Answer
from privcore.auditing.exact import MOST_MU, curve_cost, least_tail, probability_at
from privcore.auditing.problems import AuditGaussianTail, Counts, recursion_cost, unlikely_at_most
from privcore.auditing.programme import profile_of, proved_bound, slopes_about, solve, too_many_guesses
from privcore.auditing.recursion import LINES, lines_of, smallest_level
from privcore.auditing.tightest import counts_of, programme_cost
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution, Resolution
from privcore.likelihood_ratio.profile import delta_upper
from privcore.likelihood_ratio.questions import SHARE, Question, first_fineness, tier
from privcore.likelihood_ratio.ratios import Gaussian
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import NOISE_BRACKET
from privcore.papers import MAHLOUJIFAR
from privcore.training.brackets import estimated
from privcore.training.claims import AuditClaimTail
from privcore.training.own_problem import proved
from privcore.training.phase import RELATIONS, Phase, unamplified
from privcore.training.samplers import Above, Bounds, composed

_SMALLEST = 1e-12
"""p-values far below it do not get smaller by wider tails."""
_POINTS = 40
"""Number of points of the privacy profile in the linear programme."""


class AuditingClaimed(Method[AuditClaimTail]):
    """Bound the p-value by Algorithm 3, exact probabilities along the privacy curve, and a linear programme.

    All three hold for every mechanism whose privacy profile is at most that of a dominating distribution of
    the claim. The linear programme is for up to 500 guesses. A run that reveals the steps of a canary is less
    private, so its p-value is another bound.
    """

    name = "auditing.claimed"
    problems = (AuditClaimTail,)
    direction = Direction.UPPER
    reference = f"{MAHLOUJIFAR}, Theorem 9, and Algorithm 3 (Theorem 10) for the curve of a claim"
    shares = ("phases",)

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def applies(self, problem: AuditClaimTail) -> str | None:
        relation = RELATIONS[problem.relation()]
        return next((why for part in problem.claim() if (why := part.reason(relation))), None)

    def cost(self, problem: AuditClaimTail) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        above = _above(problem)
        parts = [recursion_cost(problem), curve_cost(problem)]
        if too_many_guesses(problem) is None:
            parts.append(programme_cost(problem))
        parts *= 1 + len(above)
        if above:
            question = Question(asks="epsilon", at=_SMALLEST / problem.canaries, adjacency=problem.relation())
            parts.append(estimated(Bounds(above, ()), question, self.tolerance))
        return Cost(seconds=sum(part.seconds for part in parts), bytes=sum(part.bytes for part in parts))

    def answer(self, problem: AuditClaimTail, seed: int) -> Answer:
        best = _without_amplification(problem)
        for ratio in (each.ratio for each in _above(problem)):
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
    advantage = min(delta_upper(dominating, 0.0, "add"), 1.0)
    mu = min(max(2.0 * float(scipy.special.ndtri(0.5 + 0.5 * advantage)), 1e-3), MOST_MU)
    positive = dominating.x[dominating.x > 0.0]
    corners = np.unique(np.abs(np.log(positive))) if positive.size <= _POINTS else np.zeros(0)
    found = [(smallest_level((LINES, 0.0, 0.0), lines_of(dominating), counts.counts), "Algorithm 3")]
    at = partial(probability_at, counts, dominating)
    on_curve = min(least_tail(at, mu)[0], *map(at, corners.tolist()), 1.0)
    found.append((on_curve, "closed form along the privacy curve"))
    if too_many_guesses(counts) is None:
        slopes = np.union1d(slopes_about(mu, _POINTS), [-corners, corners])
        profile = profile_of(dominating, slopes)
        solved = solve(counts, slopes, profile)
        if solved is not None:
            bound = proved_bound(counts, slopes, profile, solved.multipliers)
            found.append((bound, f"linear programme with {slopes.size} points of the privacy profile"))
    return min(found)


def _above(problem: AuditClaimTail) -> tuple[Above, ...]:
    """Return the ratios that dominate the claim; those within a distance of it do not bound the counts."""
    relation = RELATIONS[problem.relation()]
    bounds = composed([part.bounds(relation, _SMALLEST) for part in problem.claim()])
    found = bounds.stages[0].above
    return tuple(each for each in found if each.moved == 0.0 and not isinstance(each.ratio, Gaussian))


def _without_amplification(problem: AuditClaimTail) -> Answer:
    """Return the bound for the run that reveals the steps of a canary, which is a Gaussian mechanism."""
    run = [part for part in problem.claim() if isinstance(part, Phase)]
    mu = unamplified(run, RELATIONS[problem.relation()]) * (1.0 + NOISE_BRACKET)
    if mu > MOST_MU or len(run) < len(problem.claim()):
        return Answer.at_most(1.0, detail="no bound without amplification")
    found = proved(AuditGaussianTail(**counts_of(problem), mu=mu))
    return Answer.at_most(found.upper, detail="no amplification")
