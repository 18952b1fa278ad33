"""Algorithm 3 for the Laplace family: what the counts say if the mechanism is like a Laplace one."""

import math
from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.auditing.counts import MOST, SLACK, recursion_cost
from privcore.auditing.problems import AuditEpsilon, Counts
from privcore.auditing.recursion import LAPLACE, largest_refuted
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class AuditingLaplace(Method):
    r"""The epsilon at delta of the least private Laplace mechanism that the counts refute.

    With sensitivity over scale $\varepsilon_0$ it is $\varepsilon_0 + 2 \ln(1 - \delta)$. Like that of the
    Gaussian family it rests on the model.
    """

    name: ClassVar[str] = "auditing.laplace"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditEpsilon,)
    direction: ClassVar[Direction] = Direction.ESTIMATE
    reference: ClassVar[str] = f"{MAHLOUJIFAR}, Algorithm 3 and Definition 7, Laplace family"
    version: ClassVar[int] = 2

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Counts)
        return recursion_cost(problem)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditEpsilon)
        tau = 1.0 - problem.audit_confidence
        refuted = largest_refuted(LAPLACE, 0.0, problem.counts, tau, MOST)
        pure = min(refuted, MOST) * (1.0 - SLACK)
        return Answer.about(
            max(0.0, pure + 2.0 * math.log1p(-problem.delta)),
            detail=f"model-based: epsilon_0 = {pure:.6g} of Laplace, confidence {1.0 - tau:.4g}",
        )
