"""Audit by many runs: the epsilon that both error rates of an attack refute, and bounds of the rates."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from privcore.answer import Answer
from privcore.auditing.planning_problems import AuditRunsEpsilon
from privcore.auditing.problems import MOST
from privcore.method import Cost, Direction, Method
from privcore.numerics.clopper_pearson import rate_at_least, rate_at_most, shared_error
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.numerics.two_rates import RatesBelow, TwoSamples, joint_cost, refuted


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
    r"""Refute, by a joint test of both error rates, each form of the definition with half of the error.

    $$\mathrm{TPR} \le e^\varepsilon\, \mathrm{FPR} + \delta, \qquad
      \mathrm{TNR} \le e^\varepsilon\, \mathrm{FNR} + \delta$$

    Each is the definition of $(\varepsilon, \delta)$-DP for one event: a positive or a negative run. An
    epsilon is refuted if one form is: if the counts refute every pair of rates that satisfies it. The runs
    with the canary are independent of those without.
    """

    name = "auditing.runs"
    problems = (AuditRunsEpsilon,)
    direction = Direction.LOWER
    reference = (
        "Stouffer's combination of the tests of both rates; Berger and Boos (1994), JASA 89, 1012-1016; "
        "definition of differential privacy"
    )
    version = 2

    def cost(self, problem: AuditRunsEpsilon) -> Cost:
        return joint_cost(problem.runs_with, problem.runs_without)

    def answer(self, problem: AuditRunsEpsilon, seed: int) -> Answer:
        missed = problem.runs_with - problem.true_positives
        left = problem.runs_without - problem.false_positives
        forms = {
            "positive": TwoSamples(
                many=problem.true_positives,
                trials=problem.runs_with,
                few=problem.false_positives,
                others=problem.runs_without,
            ),
            "negative": TwoSamples(
                many=left, trials=problem.runs_without, few=missed, others=problem.runs_with
            ),
        }
        error = 0.5 * (1.0 - problem.audit_confidence)
        found = {
            name: refuted(counts, lambda epsilon: _private(epsilon, problem.delta), MOST, error)
            for name, counts in forms.items()
        }
        better = max(found, key=lambda name: found[name])
        detail = f"by the numbers of {better} runs" if found[better] > 0.0 else "nothing is refuted"
        return Answer.at_least(found[better], confidence=problem.audit_confidence, detail=detail)


def _private(epsilon: float, delta: float) -> RatesBelow:
    """Return the pairs of rates of one event that a private mechanism may have."""
    return RatesBelow(slope=math.exp(epsilon) * (1.0 + FEW_FUNCTIONS), height=delta)


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
