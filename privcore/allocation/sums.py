"""Lower bounds of k-of-t allocation from sums of the losses of Poisson sampling, at the best rate."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

import numpy as np

from privcore.allocation.certified import Answered, leaks, question_of, rate_of, step_of
from privcore.allocation.reduction import exact
from privcore.answer import Answer
from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.questions import FIRST_DELTA, SHARE, SMALLEST_DELTA
from privcore.likelihood_ratio.steps import Step
from privcore.likelihood_ratio.symmetric import LARGEST_SUMMED as LARGEST_THRESHOLD
from privcore.likelihood_ratio.symmetric import losses, summed
from privcore.method import Cost, Direction, Method
from privcore.papers import FELDMAN_SHENFELD

MOST_STEPS = 10**6
"""Largest number of steps of all epochs; more would need more sums than are affordable."""
FINENESS = 0.02
"""Width of the cells of a step, in local standard deviations; they are then rounded to the spacing."""
SEARCH, RESULT = (0.5, 500, 8_000), (0.08, 4_000, 16_000)
"""Wanted spacing of the sums in standard deviations of a loss, and the least and largest number of sums."""
FACTORS, FACTOR_FINENESS = (0.1, 1_000, 3_000), 0.07
"""The same for factors of a product of epochs, and the width of its cells in local standard deviations."""
EPOCH_RATES = (0.5, 0.7, 1.0)
"""Rates at which the ratios of epochs are multiplied, as shares of k / t."""
LEAST_RATE = 0.02
"""Smallest rate of the search, as a share of k / t."""
RATES, ROUNDS = 9, 3
"""Number of rates of the first round of the search; the next rounds are between neighbours of the best."""
TILTS = 2.0 ** np.arange(-8.0, 5.0)
"""Exponents of the Chernoff bounds of the range of the sums, relative to that of a normal distribution."""
FIRST_THRESHOLD = 8.0
"""Epsilon up to which the first sums are valid; it is doubled while it limits the bound."""


@dataclass(frozen=True, kw_only=True)
class AllocationSums(Method[Answered]):
    r"""Bound k-of-t allocation from below by a test on a sum over the steps, for 1 < k < t.

    The sum is that of the losses $\ln(1 - z + z X)$ of Poisson sampling with a rate z, over all steps and
    epochs, rounded to multiples of a spacing. It is a post-processing of the outputs, and its distributions
    are convolutions. The rate is searched; all rates give valid bounds.
    """

    name = "allocation.sums"
    problems = get_args(Answered)
    direction = Direction.LOWER
    reference = f"{FELDMAN_SHENFELD}, Theorem 3.1 (dominating pair); sums of losses: docs/certified.md"
    shares = ("sigma", "scale", "local_epsilon", "steps")

    def applies(self, problem: Answered) -> str | None:
        if exact(problem.steps, problem.participations):
            return "Expected 1 < participations < steps: otherwise allocation.certified needs no lower bound."
        if problem.steps * problem.epochs > MOST_STEPS:
            return f"Expected at most {MOST_STEPS} steps in all epochs."
        return leaks(problem)

    def cost(self, problem: Answered) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        steps, levels = problem.steps * problem.epochs, problem.epochs.bit_length()
        search, result = most_sums(SEARCH, steps), most_sums(RESULT, steps)
        one = 1e-3 + 1.5e-9 * search * search + (0.0 if rate_of(problem) == 1.0 else 0.04 * levels)
        looks = 2.0 if problem.asks == "epsilon" else 10.0  # for the threshold, or the size of delta
        seconds = 0.05 + looks * (RATES + 4.0 * ROUNDS) * one + 1.5e-9 * result * result + 0.1 * (levels - 1)
        return Cost(seconds=seconds, bytes=1e8)

    def answer(self, problem: Answered, seed: int) -> Answer:
        question = question_of(problem)
        rate, delta = rate_of(problem), FIRST_DELTA if question.asks == "delta" else question.at
        most = FIRST_THRESHOLD if question.asks == "epsilon" else max(0.0, question.at)
        if most > LARGEST_THRESHOLD or delta < SMALLEST_DELTA:
            return Answer.enclosure(
                question.trivial, problem.largest, detail="beyond the range of double precision"
            )
        run = _Run(step_of(problem), problem.participations, problem.steps, problem.epochs, rate)

        def found(sampling: float, wanted: tuple[float, int, int], *, multiplied: bool = rate < 1.0) -> float:
            law = run.law(sampling, wanted, max(SHARE * delta / run.uses, SMALLEST_DELTA), most, multiplied)
            end = question.trivial if law is None else question.lower(law)
            return min(end, most) if question.asks == "epsilon" else end

        while True:
            sampling, value = _best_rate(run, lambda rate: found(rate, SEARCH))
            if question.asks == "epsilon" and value >= most and most < LARGEST_THRESHOLD:
                most = min(2.0 * most, LARGEST_THRESHOLD)
            elif question.asks == "delta" and value < 0.5 * delta and delta > SMALLEST_DELTA:
                delta = max(value if value > 0.0 else 1e-10 * delta, SMALLEST_DELTA)
            else:
                break
        if question.asks == "epsilon":  # the result may exceed that of the search
            most = min(max(most, 1.25 * value), LARGEST_THRESHOLD)
        lower = max(value, found(sampling, RESULT))
        if problem.epochs > 1:
            rates = [share * run.participations / run.steps for share in EPOCH_RATES]
            lower = max(lower, *(found(each, FACTORS, multiplied=True) for each in rates))
        return Answer.enclosure(lower, problem.largest, detail=f"rate {sampling:.3g} of the losses")


@dataclass(frozen=True)
class _Run:
    """Epochs of k-of-t allocation; an epoch includes the example with a rate."""

    step: Step
    participations: int
    steps: int
    epochs: int
    rate: float

    @property
    def uses(self) -> int:
        return self.participations * self.epochs

    def law(
        self, sampling: float, wanted: tuple[float, int, int], tail: float, most: float, multiplied: bool
    ) -> RatioDistribution | None:
        """Return a lower distribution of the run, or None beyond the range of doubles.

        Args:
            sampling: Rate of the losses.
            wanted: As in `SEARCH`.
            tail: Largest change of both directions by the tails that are left out.
            most: Largest epsilon at which the profile will be used.
            multiplied: Multiply the ratios of the epochs, instead of summing the losses of all epochs.
        """
        try:
            if not multiplied:
                return _law(self, sampling, wanted, tail, most)
            further = most - math.log(self.rate)  # `mixed` uses kappas up to e^most / rate
            if further > LARGEST_THRESHOLD:
                return None
            epoch = _law(replace(self, epochs=1), sampling, wanted, tail, further)
            if epoch.x[-1] > LARGEST_RATIO:
                return None
            res = Resolution(fineness=FACTOR_FINENESS, tail=tail)
            return product_of(
                mixed(RatioBracket(lower=epoch, upper=epoch), self.rate, res), self.epochs, res
            ).lower
        except LikelihoodRangeError:
            return None


def _best_rate(run: _Run, found: Callable[[float], float]) -> tuple[float, float]:
    """Return the best of the tried rates of the losses, and its bound."""
    lowest = math.log(LEAST_RATE * run.participations / run.steps)
    apart = -lowest / (RATES - 1)
    tried = [lowest + apart * k for k in range(RATES)]
    best, value = 0.0, -math.inf
    for _ in range(ROUNDS):
        for logarithm in tried:
            if (end := found(math.exp(min(0.0, logarithm)))) > value:
                best, value = logarithm, end
        tried = [best + apart * side for side in (-0.6, -0.3, 0.3, 0.6)]
        apart *= 0.3
    return math.exp(min(0.0, best)), value


def most_sums(wanted: tuple[float, int, int], steps: int) -> float:
    """Return the largest number of sums: a few steps with heavy tails are not worth as many as many steps."""
    _, fewest, largest = wanted
    return min(largest, fewest * (1.0 + 0.2 * math.sqrt(steps)))


@lru_cache(maxsize=64)
def _law(
    run: _Run, sampling: float, wanted: tuple[float, int, int], tail: float, most: float
) -> RatioDistribution:
    """Return a lower distribution with the wanted spacing of the sums."""
    base = _base(run.step, tail)
    nats = most - math.log(tail) + math.log(4.0 * run.steps * run.epochs)
    deviation, width = _extent(base, run, sampling, nats)
    spacing, fewest, _ = wanted
    return summed(
        base,
        run.participations,
        run.steps,
        epochs=run.epochs,
        rate=sampling,
        spacing=max(
            width / most_sums(wanted, run.steps * run.epochs), min(spacing * deviation, width / fewest)
        ),
        tail=tail,
        most=most,
    )


@lru_cache(maxsize=8)
def _base(step: Step, tail: float) -> RatioDistribution:
    """Return the lower distribution of the ratio of a step; the cached result is shared."""
    return step.ratio(Resolution(fineness=FINENESS, tail=tail)).lower


def _extent(base: RatioDistribution, run: _Run, sampling: float, nats: float) -> tuple[float, float]:
    """Return the standard deviation of the loss of a step, and the range of the sums by Chernoff bounds.

    Args:
        base: A lower distribution of the ratio of one step.
        run: The epochs.
        sampling: Rate of the losses.
        nats: Negative logarithm of the probability of the sums that are left out.
    """
    loss = losses(base, sampling)
    unused, used = base.p / base.p.sum(), base.p * base.x / float(base.p @ base.x)
    steps, uses = run.steps * run.epochs, run.uses
    mean, moved = float(unused @ loss), float(used @ loss)
    variance = (1.0 - uses / steps) * float(unused @ np.square(loss - mean))
    variance += uses / steps * float(used @ np.square(loss - moved))
    if variance <= 0.0:
        raise LikelihoodRangeError
    tilts = math.sqrt(2.0 * nats / (steps * variance)) * TILTS
    reach = 0.0
    for side in (-1.0, 1.0):
        exponents = side * np.multiply.outer(tilts, loss - mean)
        largest = exponents.max(axis=1)
        exponents = np.exp(exponents - largest[:, None])
        without, with_example = (
            largest + np.log(np.maximum(exponents @ law, 1e-300)) for law in (unused, used)
        )
        both = (steps * without, (steps - uses) * without + uses * with_example)
        reach += max(float(np.min((moments + nats) / tilts)) for moments in both)
    return math.sqrt(variance), min(reach, steps * float(np.ptp(loss)))
