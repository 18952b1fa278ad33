"""Proved lower and upper bounds of Poisson sampling: the likelihood ratio, bracketed in convex order."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, TypeGuard, get_args

from privcore import params
from privcore.allocation.comparisons import Poisson, PoissonEpsilon
from privcore.answer import Answer
from privcore.likelihood_ratio.batches import SignedSample
from privcore.likelihood_ratio.distribution import RatioBracket, Resolution, mixed, product_of
from privcore.likelihood_ratio.fourier import cost_of_sums, epsilon_by_sums
from privcore.likelihood_ratio.questions import Question, cost, enclose, powering, requested
from privcore.likelihood_ratio.ratios import BEYOND, Composed, Gaussian, Ratio, Sampled, attained
from privcore.likelihood_ratio.steps import lognormal
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.papers import ZHU

EASE = 1.6
"""Factor on the width of cells that only the lower end needs, which errs by a third of the whole width."""


@dataclass(frozen=True, kw_only=True)
class PoissonCertified(Method[Poisson]):
    r"""Enclose epsilon or delta of Poisson-subsampled steps.

    The likelihood ratio of one step is $1 - \lambda + \lambda Y$ with $Y$ lognormal; that of all steps is the
    product of i.i.d. copies. Epsilon has ends from Fourier transforms on a lattice of losses. If these are
    too far apart, the product is built by binary powering. After every product, its distribution is rounded
    to a grid: by a mean-preserving spread for the upper end, and to conditional means for the lower end.

    If one example is replaced, a step is a pair of mixtures with opposite means: half-spaces are the best
    tests, for every threshold, so this pair is the worst one (docs/training-runs.md).
    """

    name = "poisson.certified"
    problems = get_args(Poisson)
    direction = Direction.ENCLOSURE
    reference = f"{ZHU}, Theorem 11 (dominating pair); convex order: docs/certified.md"
    version = 5
    shares = ("sigma", "steps", "sampling_probability", "epochs")

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def cost(self, problem: Poisson) -> Cost:
        question, times = _question(problem), problem.steps * problem.epochs
        found = cost(question, 1.0 / problem.sigma, requested(question.asks, self.tolerance), powering(times))
        if not (self.tolerance <= params.WIDTH and _has_sums(problem)):
            return found
        sums = cost_of_sums(1.0 / problem.sigma, problem.sampling_probability, times)
        return Cost(seconds=found.seconds + sums.seconds, bytes=max(found.bytes, sums.bytes))

    def answer(self, problem: Poisson, seed: int) -> Answer:
        times, outer, ease = problem.steps * problem.epochs, _closed_form(problem), 1.0
        if self.tolerance <= params.WIDTH and _has_sums(problem):
            least, most = epsilon_by_sums(
                1.0 / problem.sigma, problem.sampling_probability, times, problem.delta, problem.adjacency
            )
            outer = max(outer[0], least), min(outer[1], most)
            if outer[1] <= outer[0] * (1.0 + self.tolerance):
                return Answer.enclosure(*outer, detail="Fourier transforms on a lattice of losses")
            ease = EASE if most < math.inf else 1.0
        ratio, question = _ratio(problem), _question(problem)
        tolerance = requested(problem.asks, self.tolerance)
        lower, upper, detail = enclose(
            ratio.bracket,
            question,
            tolerance,
            copies=times,
            outer=outer,
            combinations=powering(times),
            ease=ease,
        )
        if detail.endswith(BEYOND):
            lower = max(lower, attained(ratio, question, tolerance, (lower, upper)))
        if ease > 1.0 and upper == outer[1]:
            detail = f"upper end by Fourier transforms; {detail}"
        return Answer.enclosure(lower, upper, detail=detail)


def _ratio(problem: Poisson) -> Ratio:
    """Return the likelihood ratio of all steps."""
    s, rate = 1.0 / problem.sigma, problem.sampling_probability
    step = SignedSample(rate, s) if problem.adjacency == "replace-one" else Sampled(Gaussian(s), rate)
    return Composed(step, problem.steps * problem.epochs)


def _question(problem: Poisson) -> Question:
    at = problem.delta if isinstance(problem, PoissonEpsilon) else problem.epsilon
    return Question(asks=problem.asks, at=at, adjacency=problem.adjacency)


def _has_sums(problem: Poisson) -> TypeGuard[PoissonEpsilon]:
    """Return whether the sums of losses on a lattice give an upper end."""
    sampled = problem.adjacency != "replace-one" and problem.sampling_probability < 1.0
    return isinstance(problem, PoissonEpsilon) and sampled


def _closed_form(problem: Poisson) -> tuple[float, float]:
    """Return the bracket between participation in no step and in every step; exact for probability 1.

    In direction add, the privacy loss of a step is also at most -ln(1 - lambda), for every noise.
    """
    sigma = problem.sigma / math.sqrt(problem.steps * problem.epochs)
    if problem.adjacency == "replace-one":  # opposite gradients have twice the distance
        sigma *= 0.5
    if isinstance(problem, PoissonEpsilon):
        lower, upper = gaussian_epsilon_bounds(sigma, problem.delta)
    else:
        lower, upper = gaussian_delta_bounds(sigma, problem.epsilon)
    if problem.sampling_probability == 1.0:
        return lower, upper
    if problem.adjacency == "add":  # the likelihood ratio of a step is at least 1 - lambda
        times = problem.steps * problem.epochs
        most = -times * math.log1p(-problem.sampling_probability) * (1.0 + FEW_FUNCTIONS)
        if isinstance(problem, PoissonEpsilon):
            upper = min(upper, most)
        elif problem.epsilon >= most:
            upper = 0.0
    if isinstance(problem, PoissonEpsilon):
        return 0.0, upper
    return math.nextafter(-math.expm1(min(0.0, problem.epsilon)), 0.0), upper  # P and Q may be the same


@lru_cache(maxsize=32)
def poisson(s: float, probability: float, times: int, res: Resolution) -> RatioBracket:
    """Return the bracket of the product of `times` subsampled steps; the cached result is shared."""
    return product_of(mixed(lognormal(s, res), probability, res), times, res)
