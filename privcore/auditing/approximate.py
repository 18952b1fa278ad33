"""Algorithm 3 for (epsilon, delta): an audit without any assumption about the mechanism."""

from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.auditing.counts import MOST, recursion_cost, refuted
from privcore.auditing.problems import AuditEpsilon, Counts
from privcore.auditing.recursion import APPROXIMATE, largest_refuted
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class AuditingApproximate(Method):
    r"""Refute (epsilon, delta)-DP where the recursion bounds the probability of the count by 1 - confidence.

    (epsilon, delta)-DP is f-DP with $f(x) = \max(0, 1 - \delta - e^\varepsilon x, e^{-\varepsilon}(1 - \delta
    - x))$, so the theorem applies to every mechanism, and what is refuted is the epsilon itself and no
    parameter of a family. Epsilons are nested, so the largest that is refuted needs no correction for the
    search.
    """

    name: ClassVar[str] = "auditing.approximate"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditEpsilon,)
    direction: ClassVar[Direction] = Direction.LOWER
    reference: ClassVar[str] = f"{MAHLOUJIFAR}, Theorem 10 and Algorithm 3, with Proposition 3"
    version: ClassVar[int] = 2

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Counts)
        return recursion_cost(problem)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditEpsilon)
        tau = 1.0 - problem.audit_confidence
        epsilon = largest_refuted(APPROXIMATE, problem.delta, problem.counts, tau, MOST)
        return refuted(problem, epsilon, "Algorithm 3 for (epsilon, delta)")
