"""Audit by many runs for the Gaussian family: error rates under the model of Gaussian noise."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.approximate import epsilon_of, no_gaussian_epsilon
from privcore.auditing.planning_problems import AuditRunsEpsilon
from privcore.method import Cost, Direction, Method
from privcore.numerics.pairs_of_rates import GaussianRates
from privcore.numerics.two_rates import TwoSamples, joint_cost, refuted
from privcore.papers import NASR

_MOST_MU = 60.0


@dataclass(frozen=True, kw_only=True)
class AuditingNasr(Method[AuditRunsEpsilon]):
    r"""Epsilon of the least private Gaussian mechanism that the error rates refute, by a joint test.

    $$\mathrm{TPR} \le \Phi(\Phi^{-1}(\mathrm{FPR}) + \mu)$$

    The same inequality holds for the rates of negative guesses, since it says the same, so one test has the
    whole error. Refuting mu-GDP does not refute its epsilon at delta, unless the mechanism is Gaussian: the
    value is an estimate that depends on the model.
    """

    name = "auditing.nasr"
    problems = (AuditRunsEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{NASR}; Stouffer's combination of the tests of both rates, as in auditing.runs"
    version = 2

    def applies(self, problem: AuditRunsEpsilon) -> str | None:
        return no_gaussian_epsilon(problem.delta)

    def cost(self, problem: AuditRunsEpsilon) -> Cost:
        return joint_cost(problem.runs_with, problem.runs_without)

    def answer(self, problem: AuditRunsEpsilon, seed: int) -> Answer:
        counts = TwoSamples(
            many=problem.true_positives,
            trials=problem.runs_with,
            few=problem.false_positives,
            others=problem.runs_without,
        )
        mu = refuted(counts, lambda mu: GaussianRates(mu=mu), _MOST_MU, 1.0 - problem.audit_confidence)
        detail = f"model-based: mu = {mu:.6g} of Gaussian noise, confidence {problem.audit_confidence:.4g}"
        return Answer.about(epsilon_of(mu, problem.delta), detail=detail)
