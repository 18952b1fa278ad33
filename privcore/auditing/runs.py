"""The audit by many runs: exact confidence bounds of both error rates of an attack, and what they refute."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from scipy.special import betainccinv, betaincinv

from privcore.answer import Answer
from privcore.auditing.binomial import ERROR, window
from privcore.auditing.runs_problems import AuditRunsEpsilon
from privcore.method import Cost, Direction, Method
from privcore.problem import Problem

_STEP = 1e-9
"""Relative move of a rate away from its data; more where its tail is not yet seen to be small enough."""


class Rates(NamedTuple):
    """Confidence bounds of the rates of an attack: the true ones from below, the false ones from above.

    Only two are bounds of their own; the others are their complements, each rounded to its own safe side.
    """

    true_positive: float
    false_positive: float
    true_negative: float
    false_negative: float


@dataclass(frozen=True, kw_only=True)
class AuditingRuns(Method):
    r"""Bound the true positive rate from below, the false positive rate from above, and refute by both forms.

    $$\varepsilon \ge \ln\frac{\mathrm{TPR}_- - \delta}{\mathrm{FPR}_+}, \qquad
      \varepsilon \ge \ln\frac{\mathrm{TNR}_- - \delta}{\mathrm{FNR}_+}$$

    Each is the definition of $(\varepsilon, \delta)$-DP for one event: a positive or a negative run. Since
    $\mathrm{FNR}_+ = 1 - \mathrm{TPR}_-$ and $\mathrm{TNR}_- = 1 - \mathrm{FPR}_+$, two one-sided bounds of
    Clopper and Pearson serve both, and nothing is paid for taking the larger epsilon. The runs with the
    canary are independent of those without, so both bounds hold at once with the stated confidence where
    each holds with its square root: a little more than half the error for each.
    """

    name: ClassVar[str] = "auditing.runs"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditRunsEpsilon,)
    direction: ClassVar[Direction] = Direction.LOWER
    reference: ClassVar[str] = (
        "Clopper and Pearson (1934), Biometrika 26, 404-413; definition of differential privacy"
    )

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, AuditRunsEpsilon)
        return runs_cost(problem)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditRunsEpsilon)
        rates = error_rates(problem)
        epsilon = max(
            _refuted(rates.true_positive, rates.false_positive, problem.delta),
            _refuted(rates.true_negative, rates.false_negative, problem.delta),
        )
        detail = (
            f"true positive rate at least {rates.true_positive:.6g}, "
            f"false positive rate at most {rates.false_positive:.6g}"
        )
        return Answer.at_least(epsilon, confidence=problem.audit_confidence, detail=detail)


def runs_cost(problem: AuditRunsEpsilon) -> Cost:
    """Return the cost of four bounds, each the tail of a binomial law in a window around its mode."""
    size = 4e3 + 76.0 * (problem.runs_with**0.5 + problem.runs_without**0.5)
    return Cost(seconds=2e-3 + 1e-7 * size, bytes=1e5 + 50.0 * size)


def error_rates(problem: AuditRunsEpsilon) -> Rates:
    """Return bounds of the rates of an attack that hold at once with the confidence of the problem.

    Example:
        >>> counts = {"runs_with": 1000, "true_positives": 900, "runs_without": 1000, "false_positives": 50}
        >>> rates = error_rates(AuditRunsEpsilon(**counts, delta=1e-5))
        >>> round(rates.true_positive, 6), round(rates.false_positive, 6)
        (0.87977, 0.065346)
    """
    error = -math.expm1(0.5 * math.log(problem.audit_confidence)) * (1.0 - 1e-14)
    found, missed = problem.true_positives, problem.runs_with - problem.true_positives
    wrong, left = problem.false_positives, problem.runs_without - problem.false_positives
    return Rates(
        true_positive=rate_at_least(problem.runs_with, found, error),
        false_positive=rate_at_most(problem.runs_without, wrong, error),
        true_negative=rate_at_least(problem.runs_without, left, error),
        false_negative=rate_at_most(problem.runs_with, missed, error),
    )


def rate_at_least(trials: int, successes: int, error: float) -> float:
    r"""Return the lower confidence bound p of a rate, where $\Pr[\mathrm{Bin}(n, p) \ge x]$ is the error.

    Args:
        trials: Number n of independent trials, >= 0.
        successes: Number x of successes among them.
        error: Probability with which the bound may exceed the truth, in (0, 1/2).

    Returns:
        Rounded down; the tail was computed anew and is below the error.

    Reference:
        Clopper and Pearson (1934), Biometrika 26, 404-413.

    Example:
        >>> round(rate_at_least(10, 10, 0.05), 6), rate_at_least(10, 0, 0.05)
        (0.741134, 0.0)
    """
    if successes == 0:
        return 0.0
    start = float(betaincinv(successes, trials - successes + 1.0, error))
    return _outward(start, -_STEP, lambda p: window(trials, p).at_least(successes), error)


def rate_at_most(trials: int, successes: int, error: float) -> float:
    r"""Return the upper confidence bound p of a rate, where $\Pr[\mathrm{Bin}(n, p) \le x]$ is the error.

    Args and source are those of `rate_at_least`.

    Returns:
        Rounded up; the tail was computed anew and is below the error.

    Example:
        >>> round(rate_at_most(10, 0, 0.05), 6), rate_at_most(10, 10, 0.05)
        (0.258866, 1.0)
    """
    if successes == trials:
        return 1.0
    start = float(betainccinv(successes + 1.0, float(trials - successes), error))

    def at_most(p: float) -> float:
        law = window(trials, p)
        return float(law.law[: max(0, successes - law.first + 1)].sum())

    return _outward(start, _STEP, at_most, error)


def _outward(start: float, step: float, tail: Callable[[float], float], error: float) -> float:
    """Return a rate beyond the start at which the tail is below the error; 0 or 1 if none is near."""
    for power in range(15):
        rate = start * (1.0 + step * 4.0**power)
        if not 0.0 < rate < 1.0:
            break
        if tail(rate) * (1.0 + 10.0 * ERROR) + 1e-290 <= error:
            return rate
    return 0.0 if step < 0.0 else 1.0


def _refuted(least: float, most: float, delta: float) -> float:
    """Return the epsilon below which an event has no such probabilities, rounded down; 0 if there is none."""
    if least <= delta or most <= 0.0:
        return 0.0
    return max(0.0, math.log((least - delta) / most) - 1e-14) * (1.0 - 1e-14)
