"""Algorithm 3 for (epsilon, delta): an audit without any assumption about the mechanism."""

from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.counts import MOST, recursion_cost, refuted
from privcore.auditing.problems import AuditEpsilon
from privcore.auditing.recursion import APPROXIMATE, largest_refuted
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR


@dataclass(frozen=True, kw_only=True)
class AuditingApproximate(Method[AuditEpsilon]):
    r"""Refute (epsilon, delta)-DP where the recursion bounds the probability of the count by 1 - confidence.

    (epsilon, delta)-DP is f-DP with $f(x) = \max(0, 1 - \delta - e^\varepsilon x, e^{-\varepsilon}(1 - \delta
    - x))$, so the theorem applies to every mechanism, and what is refuted is the epsilon itself and no
    parameter of a family. Epsilons are nested, so the largest that is refuted needs no correction for the
    search.
    """

    name = "auditing.approximate"
    problems = (AuditEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Theorem 10 and Algorithm 3, with Proposition 3"
    version = 2

    def cost(self, problem: AuditEpsilon) -> Cost:
        return recursion_cost(problem)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        tau = 1.0 - problem.audit_confidence
        epsilon = largest_refuted(APPROXIMATE, problem.delta, problem.counts, tau, MOST)
        return refuted(problem, epsilon, "Algorithm 3 for (epsilon, delta)")
