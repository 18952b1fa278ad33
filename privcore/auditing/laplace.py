"""Algorithm 3 for the Laplace family: what the counts say if the mechanism is like a Laplace one."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.auditing.counts import MOST, SLACK, recursion_cost
from privcore.auditing.problems import AuditEpsilon
from privcore.auditing.recursion import LAPLACE, largest_refuted
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR


@dataclass(frozen=True, kw_only=True)
class AuditingLaplace(Method[AuditEpsilon]):
    r"""The epsilon at delta of the least private Laplace mechanism that the counts refute.

    With sensitivity over scale $\varepsilon_0$ it is $\varepsilon_0 + 2 \ln(1 - \delta)$. Like that of the
    Gaussian family it rests on the model.
    """

    name = "auditing.laplace"
    problems = (AuditEpsilon,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Algorithm 3 and Definition 7, Laplace family"
    version = 2

    def cost(self, problem: AuditEpsilon) -> Cost:
        return recursion_cost(problem)

    def answer(self, problem: AuditEpsilon, seed: int) -> Answer:
        tau = 1.0 - problem.audit_confidence
        refuted = largest_refuted(LAPLACE, 0.0, problem.counts, tau, MOST)
        pure = min(refuted, MOST) * (1.0 - SLACK)
        return Answer.about(
            max(0.0, pure + 2.0 * math.log1p(-problem.delta)),
            detail=f"model-based: epsilon_0 = {pure:.6g} of Laplace, confidence {1.0 - tau:.4g}",
        )
