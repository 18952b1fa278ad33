"""Audit by many runs: the epsilon that both error rates of an attack refute."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.planning_problems import AuditRunsEpsilon
from privcore.auditing.problems import MOST
from privcore.method import Cost, Direction, Method
from privcore.numerics.pairs_of_rates import RatesBelow
from privcore.numerics.rounding import FEW_FUNCTIONS
from privcore.numerics.two_rates import TwoSamples, joint_cost, refuted


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
