"""Lower bound from the simplest attack: compare the largest output with a threshold."""

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import scipy

from privcore.allocation.problems import Allocation, AllocationEpsilon
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import LOG_EXCEEDANCE
from privcore.papers import CHUA_BALLS

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


@dataclass(frozen=True, kw_only=True)
class AllocationLargest(Method[Allocation]):
    r"""Bound from below by a threshold test on the largest output of one or several epochs.

    Over m epochs all outputs stay below c with probability
    $\Phi(\tfrac{c-1}\sigma)^{km} \Phi(\tfrac c\sigma)^{(t-k)m}$, and $\Phi(\tfrac c\sigma)^{tm}$ without the
    example. Leaving out epochs is post-processing; 1, 4, 16, ... and all epochs are tried. The bound is good
    for little noise, and poor if the privacy loss is spread over many steps.
    """

    name = "allocation.largest"
    problems = get_args(Allocation)
    direction = Direction.LOWER
    reference = f"{CHUA_BALLS} (k = E = 1, remove)"

    def cost(self, problem: Allocation) -> Cost:
        return Cost(seconds=3e-3 * len(epochs_to_try(problem.epochs)), bytes=2e6)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        at = problem.delta if isinstance(problem, AllocationEpsilon) else problem.epsilon
        t, k, mean = problem.steps, problem.participations, 1.0 / problem.sigma
        best, detail = BestTest(value=0.0), ""
        for direction in profile.DIRECTIONS[problem.adjacency]:
            for epochs in epochs_to_try(problem.epochs):
                rest = (((t - k) * epochs, 0.0),) if t > k else ()
                outputs = ((k * epochs, mean), *rest)
                found = largest_test(problem.asks, at, outputs, ((t * epochs, 0.0),), direction)
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
