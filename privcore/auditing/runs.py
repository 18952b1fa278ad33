"""Audit by many runs: exact confidence bounds of both error rates of an attack, and the refuted epsilon."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from privcore.answer import Answer
from privcore.auditing.planning_problems import AuditRunsEpsilon
from privcore.method import Cost, Direction, Method
from privcore.numerics.clopper_pearson import rate_at_least, rate_at_most, shared_error
from privcore.numerics.rounding import FEW_FUNCTIONS


class Rates(NamedTuple):
    """Confidence bounds of the rates of an attack: lower bounds of true rates, upper bounds of false rates.

    Only two of them are independent bounds; the others are their complements, each rounded to the safe side.
    """

    true_positive: float
    false_positive: float
    true_negative: float
    false_negative: float


@dataclass(frozen=True, kw_only=True)
class AuditingRuns(Method[AuditRunsEpsilon]):
    r"""Bound the true positive rate from below, the false positive rate from above, and refute by both forms.

    $$\varepsilon \ge \ln\frac{\mathrm{TPR}_- - \delta}{\mathrm{FPR}_+}, \qquad
      \varepsilon \ge \ln\frac{\mathrm{TNR}_- - \delta}{\mathrm{FNR}_+}$$

    Each is the definition of $(\varepsilon, \delta)$-DP for one event: a positive or a negative run. Since
    $\mathrm{FNR}_+ = 1 - \mathrm{TPR}_-$ and $\mathrm{TNR}_- = 1 - \mathrm{FPR}_+$, two one-sided bounds of
    Clopper and Pearson serve both forms, and taking the larger epsilon needs no correction. The runs with the
    canary are independent of those without. So both bounds hold at once with the stated confidence if each
    holds with the square root of it, which is a little more than half the error for each bound.
    """

    name = "auditing.runs"
    problems = (AuditRunsEpsilon,)
    direction = Direction.LOWER
    reference = "Clopper and Pearson (1934), Biometrika 26, 404-413; definition of differential privacy"

    def cost(self, problem: AuditRunsEpsilon) -> Cost:
        return runs_cost(problem)

    def answer(self, problem: AuditRunsEpsilon, seed: int) -> Answer:
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
    """Return the cost of four bounds, each a tail of a binomial distribution in a window around its mode."""
    size = 4e3 + 76.0 * (problem.runs_with**0.5 + problem.runs_without**0.5)
    return Cost(seconds=2e-3 + 1e-7 * size, bytes=1e5 + 50.0 * size)


def error_rates(problem: AuditRunsEpsilon) -> Rates:
    """Return bounds of the rates of an attack that hold jointly with the confidence of the problem.

    Example:
        >>> counts = {"runs_with": 1000, "true_positives": 900, "runs_without": 1000, "false_positives": 50}
        >>> rates = error_rates(AuditRunsEpsilon(**counts, delta=1e-5))
        >>> round(rates.true_positive, 6), round(rates.false_positive, 6)
        (0.87977, 0.065346)
    """
    error = shared_error(problem.audit_confidence)
    found, missed = problem.true_positives, problem.runs_with - problem.true_positives
    wrong, left = problem.false_positives, problem.runs_without - problem.false_positives
    return Rates(
        true_positive=rate_at_least(problem.runs_with, found, error),
        false_positive=rate_at_most(problem.runs_without, wrong, error),
        true_negative=rate_at_least(problem.runs_without, left, error),
        false_negative=rate_at_most(problem.runs_with, missed, error),
    )


def _refuted(least: float, most: float, delta: float) -> float:
    """Return the least epsilon at which an event may have these probabilities, rounded down."""
    if least <= delta or most <= 0.0:
        return 0.0
    return max(0.0, math.log((least - delta) / most) - FEW_FUNCTIONS) * (1.0 - FEW_FUNCTIONS)
