"""Proved lower and upper bounds of random allocation, and of no amplification, in convex order."""

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated

import scipy

from privcore import params
from privcore.allocation.problems import (
    ALLOCATION,
    LAPLACE_ALLOCATION,
    RESPONSE_ALLOCATION,
    SAMPLED_ALLOCATION,
    UNAMPLIFIED,
    Allocation,
    LaplaceAllocation,
    ResponseAllocation,
    SampledAllocation,
    Unamplified,
)
from privcore.allocation.published.dong import overlap_bound
from privcore.allocation.reduction import (
    HOPELESS,
    MOST_CHOSEN,
    below,
    below_by_poisson,
    below_enough,
    below_finenesses,
    below_seconds,
    blocks,
    composed,
    exact,
)
from privcore.answer import Answer
from privcore.likelihood_ratio.allocated.symmetric import LARGEST_THRESHOLD
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, Resolution
from privcore.likelihood_ratio.finite import Laplace, approximate
from privcore.likelihood_ratio.privacy_loss.bounds import enclosed_losses
from privcore.likelihood_ratio.privacy_loss.outputs import losses_of_chosen_steps
from privcore.likelihood_ratio.questions import (
    SHARE,
    SMALLEST_DELTA,
    Question,
    cost,
    enclose,
    enough,
    powering,
    question_of,
    requested,
)
from privcore.likelihood_ratio.ratios import (
    LOSSES,
    OneOfSteps,
    Ratio,
    beyond,
    product,
    repeated,
    sampled,
)
from privcore.likelihood_ratio.ratios import Gaussian as GaussianRatio
from privcore.likelihood_ratio.steps import GaussianStep, LaplaceStep, ResponseStep, Step, private_closed_form
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_bounds
from privcore.papers import BALLE_WANG, DONG, FELDMAN_SHENFELD
from privcore.published import published


def _unamplified(problem: Unamplified) -> tuple[float, float]:
    """Return both ends for the Gaussian step that all steps equal."""
    sigma = problem.sigma / math.sqrt(problem.participations * problem.epochs)
    if problem.adjacency == "replace-one":  # opposite gradients have twice the distance
        sigma *= 0.5
    return gaussian_bounds(problem.asks, sigma, problem.at)


UnamplifiedExact = published(
    "unamplified.exact",
    UNAMPLIFIED,
    Direction.ENCLOSURE,
    """All k E steps equal one Gaussian step with noise multiplier sigma / sqrt(k E).""",
    _unamplified,
    reference=f"{BALLE_WANG}, Theorem 8",
    cost=lambda problem: Cost(seconds=2e-3, bytes=1e5),
)


Answered = Allocation | SampledAllocation | LaplaceAllocation | ResponseAllocation
ANSWERED = (*ALLOCATION, *SAMPLED_ALLOCATION, *LAPLACE_ALLOCATION, *RESPONSE_ALLOCATION)


class AllocationCertified(Method[Answered]):
    r"""Enclose epsilon or delta of k-of-t random allocation over E epochs.

    The likelihood ratio of 1-of-t is the mean of t i.i.d. ratios of one step, that of E epochs is a product
    of E independent means. Both are built by binary powering. After every step the distribution of the ratio
    is rounded to a grid: by a mean-preserving spread for the upper end, which keeps it dominating, and to
    conditional means for the lower end, which is a post-processing. So both ends are proved for every grid.
    For k > 1 the upper end is that of the composition of (k - r) E copies of 1-of-f and r E copies of
    1-of-(f + 1), where t = f k + r. The lower end is that of the elementary symmetric mean of the ratios,
    rounded to cells of the grid.
    """

    name = "allocation.certified"
    problems = ANSWERED
    direction = Direction.ENCLOSURE
    reference = (
        f"{FELDMAN_SHENFELD}, Theorem 3.1 (dominating pair), Lemma 3.2 (reduction to k = 1), Lemma D.1 "
        f"(nesting); {DONG}, Theorem 3.1 (k of t by Renyi orders); convex order: docs/certified.md"
    )
    version = 5
    shares = ("sigma", "scale", "local_epsilon", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def cost(self, problem: Answered) -> Cost:
        step, k, question = step_of(problem), problem.participations, question_of(problem)
        estimate = cost(question, step.width(), self._requested(problem), _combinations(problem))
        if exact(problem.steps, k):
            return estimate
        width = step.width()
        if _least_epsilon(problem) > LARGEST_THRESHOLD:  # no lower distribution is computed
            return Cost(seconds=2.0 * estimate.seconds, bytes=2.0 * estimate.bytes)
        finest = below_finenesses(k, problem.steps, width, question.guess)[-1]
        extra = 2.0 * below_seconds(k, problem.steps, width, question.guess, finest)
        return Cost(seconds=2.0 * estimate.seconds + extra, bytes=2.0 * estimate.bytes)

    def answer(self, problem: Answered, seed: int) -> Answer:
        step, question = step_of(problem), question_of(problem)
        t, k, epochs, rate = problem.steps, problem.participations, problem.epochs, rate_of(problem)
        tolerance = self._requested(problem)

        def reduced(adjacency: str) -> tuple[float, float, str]:
            found = enclose(
                partial(composed, step, t, k, epochs, rate),
                replace(question, adjacency=adjacency),
                tolerance if exact(t, k) else 0.5 * tolerance,  # the lower end has its own error
                copies=k * epochs,
                outer=closed_form(problem),
                combinations=_combinations(problem),
                ease=_ease(problem),
                tight=exact(t, k),
            )
            asked = replace(question, adjacency=adjacency)
            low, high, note = beyond(_reduction(problem), asked, tolerance, found)
            return low if exact(t, k) else found[0], high, note

        lower, upper, detail = reduced(problem.adjacency)
        if detail == LOSSES and not exact(t, k) and isinstance(step, GaussianStep) and rate == 1.0:
            chosen = partial(losses_of_chosen_steps, 1.0 / step.sigma, k, t)
            with suppress(LikelihoodRangeError):
                lower = enclosed_losses([(chosen, epochs)], question, tolerance, (lower, upper))[0]
        if not exact(t, k) and upper > lower * (1.0 + tolerance):
            overlap = _overlap(problem)
            if overlap < upper:  # this bound does not cover the direction add
                add = reduced("add")[1] if problem.adjacency != "remove" else 0.0
                upper = min(upper, max(overlap, add))
        delta = question.at if question.asks == "epsilon" else upper
        if not exact(t, k) and upper > lower * (1.0 + tolerance) and delta >= SMALLEST_DELTA:
            lower = max(lower, self._chosen_below(problem, question, lower, upper, delta))
            if k > MOST_CHOSEN and rate == 1.0:
                lower = max(lower, below_by_poisson(step, t, k, epochs, question, delta))
        return Answer.enclosure(lower, upper, detail=detail)

    def _requested(self, problem: Answered) -> float:
        """Return the requested relative width; several participations take longer."""
        quick = exact(problem.steps, problem.participations)
        return requested(problem.asks, self.tolerance, quick=quick)

    def _chosen_below(
        self, problem: Answered, question: Question, lower: float, upper: float, delta: float
    ) -> float:
        """Return a lower bound from the lower distribution of k of t.

        The grid is refined while a finer one may bring the bound close to the upper end.
        """
        most = min(upper, LARGEST_THRESHOLD) if question.asks == "epsilon" else question.at
        if most > LARGEST_THRESHOLD or (question.asks == "epsilon" and lower >= most):
            return lower
        step, t, k = step_of(problem), problem.steps, problem.participations
        tail = max(SHARE * delta / (k * problem.epochs), SMALLEST_DELTA)
        finenesses = below_finenesses(k, t, step.width(), delta)
        wanted = finenesses[0]
        for fineness in finenesses:
            if fineness > max(wanted, finenesses[-1]):
                continue
            res = Resolution(fineness=fineness, tail=tail)
            law = below(step, t, k, problem.epochs, rate_of(problem), res, most)
            if law is None:
                break
            found = question.lower(law)
            lower = max(lower, min(found, most) if question.asks == "epsilon" else found)
            tolerance = enough(question.asks, self._requested(problem), lower)
            if upper <= lower * (1.0 + tolerance) or upper > lower * (1.0 + HOPELESS):
                break
            wanted = below_enough(fineness, upper / lower - 1.0, tolerance)
        return lower


def step_of(problem: Answered) -> Step:
    """Return the mechanism of a step."""
    if isinstance(problem, LaplaceAllocation):
        return LaplaceStep(problem.scale)
    if isinstance(problem, ResponseAllocation):
        return ResponseStep(problem.local_epsilon, problem.local_delta)
    return GaussianStep(problem.sigma)


def rate_of(problem: Answered) -> float:
    """Return the probability that an epoch includes the example."""
    return problem.sampling_probability if isinstance(problem, SampledAllocation) else 1.0


def _least_epsilon(problem: Answered) -> float:
    """Return about the least epsilon of k of t Gaussian steps, from the largest term of the ratio."""
    if not isinstance(problem, Allocation) or problem.asks != "epsilon" or problem.adjacency == "add":
        return 0.0
    t, k, epochs = problem.steps, problem.participations, problem.epochs
    choices = math.lgamma(t + 1.0) - math.lgamma(k + 1.0) - math.lgamma(t - k + 1.0)
    return gaussian_bounds("epsilon", problem.sigma / math.sqrt(k * epochs), problem.at)[0] - epochs * choices


def _reduction(problem: Answered) -> Ratio:
    """Return the ratio of the composition to which k of t reduces, as `composed` builds it."""
    step, rate, epochs = step_of(problem), rate_of(problem), problem.epochs
    alone: Ratio = (
        approximate(problem.local_epsilon, problem.local_delta)
        if isinstance(problem, ResponseAllocation)
        else Laplace(problem.scale)
        if isinstance(problem, LaplaceAllocation)
        else GaussianRatio(step.width())
    )
    together = epochs if rate == 1.0 else 1
    parts = product(
        tuple(
            repeated(OneOfSteps(alone, size) if size > 1 else alone, copies)
            for size, copies in blocks(problem.steps, problem.participations, together)
        )
    )
    return parts if rate == 1.0 else repeated(sampled(parts, rate), epochs)


def _overlap(problem: Answered) -> float:
    """Return a bound for the direction remove without reduction to k = 1; infinity if it does not apply."""
    if not isinstance(problem, Allocation) or problem.adjacency == "add":
        return math.inf
    return overlap_bound(problem)[0]


def _combinations(problem: Answered) -> int:
    """Return the approximate number of combinations of two distributions at one resolution."""
    steps = problem.steps // problem.participations
    copies = problem.participations * problem.epochs
    return powering(steps) + powering(copies)


def _ease(problem: Answered) -> float:
    """Return the factor by which cells may be wider than usual, if one large ratio determines epsilon.

    Epsilon is then the logarithm of that ratio, and a cell moves it, relatively, by its width over that
    logarithm. Measured on 17 points of k = 1 at a tolerance of 1 %: brackets are 0.2 % to 0.8 % wide without
    this factor, and 0.7 % to 0.9 % with it.
    """
    if not isinstance(problem, Allocation) or problem.asks == "delta":
        return 1.0
    s = 1.0 / problem.sigma
    block = problem.steps / problem.participations
    largest = 0.5 * s * s - s * float(scipy.special.ndtri(problem.at)) - math.log(block)
    easier = 1.0 + 0.5 * max(0.0, math.log1p(math.exp(min(largest, 50.0))))
    return math.sqrt(1.1 * 1.4 ** math.floor(math.log(easier, 1.4)))  # in steps, to share distributions


def closed_form(problem: Answered) -> tuple[float, float]:
    """Return the bracket between revealing nothing and revealing the chosen steps, by closed forms."""
    question, uses = question_of(problem), problem.participations * problem.epochs
    if isinstance(problem, Allocation | SampledAllocation):
        return _gaussian_closed_form(problem, question)
    if isinstance(problem, LaplaceAllocation):
        return private_closed_form(question, uses, 1.0 / problem.scale, 0.0)
    return private_closed_form(question, uses, problem.local_epsilon, problem.local_delta)


def leaks(problem: Answered) -> str | None:
    """Return the reason why methods of finite losses do not apply, if a step may leak the example."""
    finite = not isinstance(problem, ResponseAllocation) or problem.local_delta == 0.0
    return None if finite else "Expected local_delta=0, so that all losses are finite."


def _gaussian_closed_form(problem: Allocation | SampledAllocation, question: Question) -> tuple[float, float]:
    """Return the bracket between the test on the sum of all outputs and no amplification.

    The sum of the outputs of an epoch is N(k, t sigma^2) against N(0, t sigma^2). Revealing the chosen steps
    can only reduce privacy. The two ends agree for k = t. If epochs are sampled, the test gives no lower end.
    """
    k, epochs = problem.participations, problem.epochs
    blind = problem.sigma * math.sqrt(problem.steps / epochs) / k
    public = problem.sigma / math.sqrt(k * epochs)
    lower = gaussian_bounds(question.asks, blind, question.at)[0]
    upper = gaussian_bounds(question.asks, public, question.at)[1]
    if rate_of(problem) < 1.0:
        lower = 0.0 if question.asks == "epsilon" else math.nextafter(-math.expm1(min(0.0, question.at)), 0.0)
    return lower, upper
