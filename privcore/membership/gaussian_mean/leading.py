"""Leading term of the advantage for means of many Gaussian records, and the published bound."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.gaussian_mean.gamma_ratio import log_half_ratio, mean_norm
from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import CLOSED_FORM, probability_at_most
from privcore.papers import AUBINAIS

_LARGEST = 0.5
"""Largest leading term that is used as an estimate."""


@dataclass(frozen=True, kw_only=True)
class MembershipLeading(Method[MembershipMeanAdvantage]):
    r"""Correlation times $\Gamma((d + 1) / 2) / (\sqrt \pi \Gamma(d / 2))$, for equal odds."""

    name = "membership.leading"
    problems = (MembershipMeanAdvantage,)
    direction = Direction.ESTIMATE
    reference = f"leading term of {AUBINAIS}, equation 7, for Gaussian records"

    def applies(self, problem: MembershipMeanAdvantage) -> str | None:
        if problem.odds != 1.0:
            return "At odds other than 1 the advantage falls faster than any power of the correlation."
        if problem.surplus < 1.0 or leading(problem.coordinates, problem.correlation) > _LARGEST:
            return "The correlation of release and record is too large for the leading term to be accurate."
        return None

    def cost(self, problem: MembershipMeanAdvantage) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipMeanAdvantage, seed: int) -> Answer:
        value = leading(problem.coordinates, problem.correlation)
        return Answer.about(value, detail=f"correlation {problem.correlation:.6g}")


def leading(coordinates: int, correlation: float) -> float:
    r"""Return $\rho \Gamma((d + 1) / 2) / (\sqrt \pi \Gamma(d / 2))$.

    This is the mean norm of a standard normal vector times $\rho / \sqrt{2 \pi}$.

    Args:
        coordinates: Dimension d, >= 1.
        correlation: Correlation rho of release and record.

    Example:
        >>> round(leading(10, 1.0), 5)
        1.23047
    """
    return correlation * math.exp(log_half_ratio(0.5 * coordinates)) / math.sqrt(math.pi)


@dataclass(frozen=True, kw_only=True)
class MembershipProposition(Method[MembershipMeanAdvantage]):
    """Distance of two normal distributions, averaged over a record: d^(1/2) / (2n) + E|z| / (2 n^(1/2)).

    The bound also holds with noise on the release and at odds other than 1: neither raises the advantage.
    """

    name = "membership.proposition"
    problems = (MembershipMeanAdvantage,)
    direction = Direction.UPPER
    reference = f"{AUBINAIS}, Proposition 25, for at least two records"

    def applies(self, problem: MembershipMeanAdvantage) -> str | None:
        return None if problem.records >= 2 else "The proposition needs at least two records."

    def cost(self, problem: MembershipMeanAdvantage) -> Cost:
        return Cost(seconds=1e-4, bytes=1e4)

    def answer(self, problem: MembershipMeanAdvantage, seed: int) -> Answer:
        n, d = problem.records, problem.coordinates
        bound = 0.5 * math.sqrt(d) / n + 0.5 * mean_norm(d) / math.sqrt(n)
        return Answer.at_most(probability_at_most(bound, CLOSED_FORM), detail="closed form")
