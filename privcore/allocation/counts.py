r"""Exact distributions of the ratio of randomized response, from the numbers of its answers.

Without the example, of t answers some are known to be false (a number m, binomial with local_delta), and of
the other n = t - m, a binomial number b say 1. The ratio of k of t depends on the two numbers alone:

$$S = \frac{e_k}{\binom tk} = \sum_{i=0}^k \binom ki \frac{[b]_i \, [n - b]_{k-i}}{[t]_k}
  e^{\varepsilon_0 (2 i - k)}, \quad [b]_i = b (b - 1) \cdots (b - i + 1)$$

Poisson sampling with at most k participations is a mixture of such ratios (Lemma D.2).
"""

import math
from dataclasses import replace
from functools import lru_cache, partial
from typing import Annotated

import numpy as np

from privcore import params
from privcore.allocation.problems import (
    CAPPED_RESPONSE,
    RESPONSE_ALLOCATION,
    CappedResponse,
    ResponseAllocation,
)
from privcore.answer import Answer
from privcore.likelihood_ratio.distribution import (
    RatioBracket,
    RatioDistribution,
    Resolution,
    combine,
    product_of,
)
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.profile import LARGEST_EPSILON
from privcore.likelihood_ratio.questions import cost, enclose, powering, question_of, requested
from privcore.likelihood_ratio.steps import private_closed_form
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import window
from privcore.numerics.rounding import BINOMIAL_WINDOW, FEW_FUNCTIONS, UNIT
from privcore.papers import FELDMAN_SHENFELD

Answered = ResponseAllocation | CappedResponse
MOST_WORK = 10**8
"""Largest number of answers times the square of the participations."""
LARGEST_LOSS = 300.0
"""Largest logarithm of a ratio; that of two epochs is in the range of doubles."""
NEGLIGIBLE = 1e-40
"""Probability of numbers of false answers that are moved to 0 and to infinity: the mean of their ratios is at
most their mass, since it falls as more answers are false."""
UNLIKELY = 1e-300
"""Bound of the probabilities outside the window of a binomial distribution."""


class AllocationCounts(Method[Answered]):
    """Enclose allocation, and Poisson sampling with capped participations, of any private step.

    Randomized response is the worst step, and the exact distribution of its ratio follows from the numbers of
    its answers. Both ends are those of this distribution, up to rounding; several epochs are composed in
    cells, as in `allocation.certified`.
    """

    name = "allocation.counts"
    problems = (*RESPONSE_ALLOCATION, *CAPPED_RESPONSE)
    direction = Direction.ENCLOSURE
    reference = f"{FELDMAN_SHENFELD}, Theorem 3.1 (dominating pair), Lemma D.2 and Corollary 4.7 (mixture)"
    shares = ("local_epsilon", "local_delta", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def applies(self, problem: Answered) -> str | None:
        if _numbers(problem) * _most(problem) ** 2 > MOST_WORK:
            return f"Expected steps times the square of participations up to {MOST_WORK}."
        if _most(problem) * problem.local_epsilon > LARGEST_LOSS:
            return f"Expected participations times local_epsilon up to {LARGEST_LOSS:g}."
        return None

    def cost(self, problem: Answered) -> Cost:
        seconds = 0.02 + 1e-7 * min(_numbers(problem) * _most(problem) ** 2, MOST_WORK)
        size = 2e7 + 400.0 * min(_numbers(problem), MOST_WORK)
        if problem.epochs == 1:
            return Cost(seconds=seconds, bytes=size)
        one = cost(
            question_of(problem),
            problem.local_epsilon,
            self._requested(problem),
            powering(problem.epochs) + 1,
        )
        return Cost(seconds=20.0 * seconds + 4.0 * one.seconds, bytes=one.bytes + size)

    def answer(self, problem: Answered, seed: int) -> Answer:
        question, epochs = question_of(problem), problem.epochs
        law = counted(problem.local_epsilon, problem.local_delta, problem.steps, _shares(problem))
        outer = private_closed_form(
            question, _most(problem) * epochs, problem.local_epsilon, problem.local_delta
        )
        leak = -math.expm1(epochs * math.log1p(-law.lower.infinite)) * (1.0 - FEW_FUNCTIONS)
        if question.asks == "epsilon" and problem.adjacency != "add" and leak > question.at:
            detail = "the probability of a leak exceeds delta"
            return Answer.enclosure(LARGEST_EPSILON, math.inf, detail=detail)
        if epochs == 1:
            lower, upper = question.ends(law)
            detail = f"{law.lower.x.size} numbers of answers"
            return Answer.enclosure(
                min(max(lower, outer[0]), outer[1]), max(min(upper, outer[1]), outer[0]), detail=detail
            )
        lower, upper, detail = enclose(
            partial(_composed, law, epochs),
            question,
            self._requested(problem),
            copies=epochs,
            outer=outer,
            combinations=powering(epochs) + 1,
        )
        return Answer.enclosure(lower, upper, detail=detail)

    def _requested(self, problem: Answered) -> float:
        return requested(problem.asks, self.tolerance)


def _most(problem: Answered) -> int:
    """Return the largest number of participations in an epoch."""
    return problem.largest_participations if isinstance(problem, CappedResponse) else problem.participations


def _numbers(problem: Answered) -> float:
    """Return an upper bound of the number of pairs of numbers of answers."""
    return (problem.steps + 1.0) * _false(problem.steps, problem.local_delta)[0].size


def _shares(problem: Answered) -> tuple[float, ...]:
    """Return the probabilities of 0, 1, ... participations in an epoch."""
    most = _most(problem)
    if not isinstance(problem, CappedResponse):
        return (*[0.0] * most, 1.0)
    numbers = window(problem.steps, problem.sampling_probability)
    found = np.zeros(problem.steps + 1)
    found[numbers.first : numbers.first + numbers.law.size] = numbers.law
    return (*found[:most].tolist(), float(found[most:].sum()))


@lru_cache(maxsize=16)
def _false(steps: int, local_delta: float) -> tuple[Array, Array, float]:
    """Return numbers of false answers, their probabilities, and a bound of that of all others."""
    false = window(steps, local_delta)
    kept = (false.law > NEGLIGIBLE) | (false.counts <= steps * local_delta)
    return false.counts[kept], false.law[kept], 2.0 * float(false.law[~kept].sum())


@lru_cache(maxsize=16)
def counted(local_epsilon: float, local_delta: float, steps: int, shares: tuple[float, ...]) -> RatioBracket:
    """Return the distribution of the ratio of one epoch, up to rounding.

    Args:
        local_epsilon: Epsilon of a step.
        local_delta: Delta of a step.
        steps: Number of steps t.
        shares: Probabilities of 0, 1, ..., k participations, with a relative error of 2 `BINOMIAL_WINDOW`.

    Example:
        >>> law = counted(math.log(2.0), 0.0, 2, (0.0, 1.0)).upper
        >>> law.x.round(9).tolist(), law.p.round(9).tolist()
        ([0.5, 1.25, 2.0], [0.444444444, 0.444444444, 0.111111111])
    """
    low, most = math.exp(-local_epsilon), len(shares) - 1
    numbers, chances, beyond = _false(steps, local_delta)
    x, p = [], []
    for m, chance in zip(numbers, chances, strict=True):
        ones = window(steps - int(m), low / (1.0 + low))
        x.append(_ratios(ones.counts, steps - m - ones.counts, steps, local_epsilon, shares))
        p.append(chance * ones.law)
    values, at = np.unique(np.concatenate(x), return_inverse=True)
    masses = np.bincount(at, np.concatenate(p)).astype(np.float64)
    infinite = math.fsum(share * -math.expm1(j * math.log1p(-local_delta)) for j, share in enumerate(shares))
    error = 4.0 * BINOMIAL_WINDOW
    lower = RatioDistribution(
        x=values,
        p=masses,
        infinite=infinite * (1.0 - error),
        mass_error=2.0 * error + 4.0 * (steps + 4) * UNIT,
        value_error=error + (32.0 + 16.0 * most + 4.0 * most * local_epsilon) * UNIT,
        drift_remove=UNLIKELY * float(values.sum()),
        drift_add=UNLIKELY * (steps + 1.0) * numbers.size,
    )
    if beyond == 0.0:
        return RatioBracket(lower=lower, upper=replace(lower, infinite=infinite * (1.0 + error)))
    upper = replace(
        lower,
        x=np.append(0.0, values[values > 0.0]),
        p=np.append(beyond + masses[values == 0.0].sum(), masses[values > 0.0]),
        infinite=(infinite + beyond) * (1.0 + error),
    )
    return RatioBracket(lower=lower, upper=upper)


def _ratios(ones: Array, zeros: Array, steps: int, local_epsilon: float, shares: tuple[float, ...]) -> Array:
    """Return the ratio for each pair of numbers of answers; all terms are non-negative."""
    total, start = np.zeros(ones.size), np.ones(ones.size)
    for i in range(len(shares)):
        chosen = start.copy()
        for others in range(len(shares) - i):
            k = i + others
            if shares[k] > 0.0:
                total += (shares[k] * math.comb(k, i) * math.exp(local_epsilon * (i - others))) * chosen
            chosen *= np.maximum(zeros - others, 0.0) / max(1, steps - k)
        start *= np.maximum(ones - i, 0.0) / max(1, steps - i)
    return total


def _composed(law: RatioBracket, epochs: int, res: Resolution) -> RatioBracket:
    """Return the bracket of the product over epochs, with the ratio of an epoch in cells."""
    certain = RatioDistribution(x=np.ones(1), p=np.ones(1))
    epoch = combine(law, RatioBracket(lower=certain, upper=certain), res, product=True)
    return product_of(epoch, epochs, res)
