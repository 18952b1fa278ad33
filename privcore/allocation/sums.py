"""Lower bounds of random allocation: by the sum of the losses, and by the largest loss."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from privcore.allocation.certified import ANSWERED, Answered, leaks, rate_of, step_of
from privcore.allocation.problems import ALLOCATION, Allocation
from privcore.allocation.reduction import exact
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.allocated.symmetric import LARGEST_SUMMED as LARGEST_THRESHOLD
from privcore.likelihood_ratio.allocated.symmetric import losses, summed
from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.questions import FIRST_DELTA, SHARE, SMALLEST_DELTA, question_of
from privcore.likelihood_ratio.steps import Step
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import LOG_EXCEEDANCE
from privcore.papers import CHUA_BALLS, FELDMAN_SHENFELD

Outputs = tuple[tuple[int, float], ...]
"""Independent outputs of unit variance under one hypothesis, as pairs of number and mean."""


_REACH = 40.0
"""Number of standard deviations beyond which a normal variable has probability 1e-350."""

_ZOOM = 64


@dataclass(frozen=True, kw_only=True)
class BestTest:
    """Best of the tried tests.

    Attributes:
        value: Proved lower end of epsilon or delta.
        threshold: Threshold on the largest output, in standard deviations of the noise.
    """

    value: float
    threshold: float = math.nan


def log_exceedances(cuts: Any, outputs: Outputs, side: int) -> Any:
    r"""Return a bound of the logarithm of $h(c) = -\ln \Pr(\text{all outputs} < c)$.

    $$h(c) = -\sum_i n_i \ln \Phi(c - \mu_i)$$

    Args:
        cuts: Thresholds c in standard deviations; shape (m,).
        outputs: Pairs (n_i, mu_i), n_i >= 1; a mean of 2 or 1 over sigma may be rounded once.
        side: 1 for an upper bound, -1 for a lower one.

    Returns:
        Natural logarithms, shape (m,).

    Example:
        >>> h = np.exp(log_exceedances(np.array([0.0]), ((2, 0.0),), 1))[0]
        >>> round(float(h / (2.0 * math.log(2.0))), 10)
        1.0
    """
    parts = []
    for count, mean in outputs:
        # A larger mean makes the exceedance larger, so the difference is rounded to the matching side.
        x = np.nextafter(cuts - math.nextafter(mean, side * math.inf), -side * math.inf)
        high = x > 1.0
        tail = scipy.special.log_ndtr(-x[high])
        near = np.log(-np.log1p(-np.exp(np.maximum(tail, -80.0))))
        log_h = np.empty_like(x)
        log_h[high] = np.where(tail < -40.0, tail, near)
        log_h[~high] = np.log(-scipy.special.log_ndtr(x[~high]))
        parts.append(math.log(count) + log_h)
    total = np.logaddexp.reduce(parts)
    return total + side * LOG_EXCEEDANCE * np.maximum(1.0, np.abs(total))


def log_powers(cuts: Any, with_example: Outputs, without: Outputs, direction: str) -> tuple[Any, Any]:
    """Return a lower bound of log p and an upper bound of log q, the probabilities of the event.

    For remove, the event is that some output reaches the threshold; for add, that no output does. p is its
    probability under the first hypothesis of the direction, q that under the second.

    Args:
        cuts: Thresholds in standard deviations; shape (m,).
        with_example: Outputs if the example is present.
        without: Outputs if the example is absent.
        direction: `remove` or `add`.
    """
    with_h, without_h = log_exceedances(cuts, with_example, -1), log_exceedances(cuts, without, 1)
    if direction == "add":
        return -np.exp(without_h), -np.exp(with_h)
    log_p, log_q = _log_some(with_h), _log_some(without_h)
    return log_p - LOG_EXCEEDANCE * np.maximum(1.0, -log_p), log_q + LOG_EXCEEDANCE * np.maximum(1.0, -log_q)


def _log_some(log_h: Any) -> Any:
    """Return ln(1 - exp(-h))."""
    near = np.log(-np.expm1(-np.exp(np.clip(log_h, -80.0, 700.0))))
    return np.where(log_h < -40.0, log_h, near)


def largest_test(asks: str, at: float, with_example: Outputs, without: Outputs, direction: str) -> BestTest:
    r"""Return the best lower bound that a threshold on the largest output gives.

    $$\delta \ge p - e^\varepsilon q, \qquad \varepsilon \ge \ln \frac{p - \delta}{q}$$

    for the probabilities p, q of any event. The threshold is found by a search, and the bound at that
    threshold is proved.

    Args:
        asks: `epsilon` or `delta`.
        at: The given delta in (0, 1), or epsilon.
        with_example: Outputs if the example is present.
        without: Outputs if the example is absent.
        direction: `remove` or `add`.

    Returns:
        Lower end, rounded down, at least the bound from an event of probability 0 or 1.
    """

    def values(cuts: Any) -> Any:
        log_p, log_q = log_powers(cuts, with_example, without, direction)
        with np.errstate(divide="ignore"):
            return _log_delta(log_p, log_q, at) if asks == "delta" else _epsilon(log_p, log_q, at)

    top = max(mean for _, mean in with_example) + _REACH
    cuts = np.concatenate((np.linspace(-_REACH, _REACH, 801), np.linspace(_REACH, max(_REACH, top), 1501)))
    best, value = math.nan, -math.inf
    for _ in range(6):
        found = values(cuts)
        i = int(np.argmax(found))
        if found[i] > value:
            best, value = float(cuts[i]), float(found[i])
        cuts = np.linspace(cuts[max(0, i - 1)], cuts[min(i + 1, len(cuts) - 1)], _ZOOM + 1)
    if asks == "epsilon":
        return BestTest(value=max(0.0, value), threshold=best)
    trivial = math.nextafter(-math.expm1(min(0.0, at)), 0.0)
    shown = math.nextafter(math.exp(value), 0.0)
    return BestTest(value=shown, threshold=best) if shown > trivial else BestTest(value=trivial)


def _log_delta(log_p: Any, log_q: Any, epsilon: float) -> Any:
    """Return a lower bound of ln(p - e^epsilon q), -inf if the difference is negative."""
    apart = epsilon + log_q - log_p
    apart = apart + LOG_EXCEEDANCE * (abs(epsilon) + np.abs(log_q) + np.abs(log_p))
    log_delta = log_p + np.log(-np.expm1(np.minimum(apart, 0.0)))
    return np.where(apart < 0.0, log_delta - LOG_EXCEEDANCE * np.maximum(1.0, np.abs(log_delta)), -np.inf)


def _epsilon(log_p: Any, log_q: Any, delta: float) -> Any:
    """Return a lower bound of ln((p - delta) / q), -inf if p is at most delta."""
    used = math.log(delta) - log_p
    used = used + LOG_EXCEEDANCE * np.maximum(1.0, np.abs(log_p))
    epsilon = log_p - log_q + np.log1p(-np.exp(np.minimum(used, 0.0)))
    return np.where(used < 0.0, epsilon - LOG_EXCEEDANCE * (1.0 + np.abs(log_p) + np.abs(log_q)), -np.inf)


class AllocationLargest(Method[Allocation]):
    r"""Bound from below by a threshold test on the largest output of one or several epochs.

    Over m epochs all outputs stay below c with probability
    $\Phi(\tfrac{c-1}\sigma)^{km} \Phi(\tfrac c\sigma)^{(t-k)m}$, and $\Phi(\tfrac c\sigma)^{tm}$ without the
    example. Leaving out epochs is post-processing; 1, 4, 16, ... and all epochs are tried. The bound is good
    for little noise, and poor if the privacy loss is spread over many steps.
    """

    name = "allocation.largest"
    problems = ALLOCATION
    direction = Direction.LOWER
    reference = f"{CHUA_BALLS} (k = E = 1, remove)"

    def cost(self, problem: Allocation) -> Cost:
        return Cost(seconds=3e-3 * len(epochs_to_try(problem.epochs)), bytes=2e6)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        t, k, mean = problem.steps, problem.participations, 1.0 / problem.sigma
        best, detail = BestTest(value=0.0), ""
        for direction in profile.DIRECTIONS[problem.adjacency]:
            for epochs in epochs_to_try(problem.epochs):
                rest = (((t - k) * epochs, 0.0),) if t > k else ()
                outputs = ((k * epochs, mean), *rest)
                found = largest_test(problem.asks, problem.at, outputs, ((t * epochs, 0.0),), direction)
                if found.value > best.value or not detail:
                    best, detail = found, f"{direction}, {described(found, problem.sigma)}, epochs: {epochs}"
        return Answer.enclosure(best.value, problem.largest, detail=detail)


def described(found: BestTest, sigma: float) -> str:
    """Return a description of the best test, for the detail of an answer."""
    if math.isnan(found.threshold) or found.value == 0.0:
        return "no threshold improves the trivial bound"
    return f"largest output compared with {found.threshold * sigma:.6g} sensitivities"


def epochs_to_try(epochs: int) -> list[int]:
    """Return 1, 4, 16, ... and all epochs."""
    return [4**i for i in range(10) if 4**i < epochs] + [epochs]


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


class AllocationSums(Method[Answered]):
    r"""Bound k-of-t allocation from below by a test on a sum over the steps, for 1 < k < t.

    The sum is that of the losses $\ln(1 - z + z X)$ of Poisson sampling with a rate z, over all steps and
    epochs, rounded to multiples of a spacing. It is a post-processing of the outputs, and its distributions
    are convolutions. The rate is searched; all rates give valid bounds.
    """

    name = "allocation.sums"
    problems = ANSWERED
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
