"""Audit by many runs for the Gaussian family: error rates under the model of Gaussian noise."""

from dataclasses import dataclass

import scipy

from privcore.answer import Answer
from privcore.auditing.approximate import epsilon_of, no_gaussian_epsilon
from privcore.auditing.planning_problems import AuditRunsEpsilon
from privcore.auditing.runs import error_rates, runs_cost
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import NORMAL_QUANTILES
from privcore.papers import NASR


@dataclass(frozen=True, kw_only=True)
class AuditingNasr(Method[AuditRunsEpsilon]):
    r"""Epsilon of the least private Gaussian mechanism that the error rates refute.

    $$\mu_- = \Phi^{-1}(1 - \mathrm{FPR}_+) - \Phi^{-1}(\mathrm{FNR}_+)$$

    with the rates of `auditing.runs`, at the same confidence. Refuting mu-GDP does not refute its epsilon at
    delta, unless the mechanism is Gaussian: the value is an estimate that depends on the model.
    """

    name = "auditing.nasr"
    problems = (AuditRunsEpsilon,)
    direction = Direction.ESTIMATE
    reference = NASR

    def applies(self, problem: AuditRunsEpsilon) -> str | None:
        return no_gaussian_epsilon(problem.delta)

    def cost(self, problem: AuditRunsEpsilon) -> Cost:
        return runs_cost(problem)

    def answer(self, problem: AuditRunsEpsilon, seed: int) -> Answer:
        rates = error_rates(problem)
        mu = refuted_mu(rates.true_positive, rates.false_positive)
        detail = f"model-based: mu = {mu:.6g} of Gaussian noise, confidence {problem.audit_confidence:.4g}"
        return Answer.about(epsilon_of(mu, problem.delta), detail=detail)


def refuted_mu(true_positive: float, false_positive: float) -> float:
    """Return the least mu of a Gaussian mechanism with these rates, rounded down; at least 0.

    Args:
        true_positive: Lower bound of the true positive rate, in [0, 1].
        false_positive: Upper bound of the false positive rate, in [0, 1].

    Reference:
        Dong, Roth and Su (2022), arXiv:1905.02383.

    Example:
        >>> round(refuted_mu(0.84134475, 0.15865525), 6), refuted_mu(0.5, 0.6)
        (2.0, 0.0)
    """
    if true_positive == 0.0 or false_positive == 1.0:
        return 0.0
    difference = float(scipy.special.ndtri(true_positive) - scipy.special.ndtri(false_positive))
    return max(0.0, difference * (1.0 - NORMAL_QUANTILES) - NORMAL_QUANTILES)
