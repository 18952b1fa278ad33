"""p-values by Algorithm 3: the least level at which it refutes a claim."""

from dataclasses import dataclass
from typing import ClassVar

from privcore.answer import Answer
from privcore.auditing.counts import recursion_cost, unlikely_at_most
from privcore.auditing.problems import AuditGaussianTail, AuditTail, Counts
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN, NO_LINES, smallest_level
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR
from privcore.problem import Problem


@dataclass(frozen=True, kw_only=True)
class AuditingRecursion(Method):
    r"""The least level at which Algorithm 3 refutes the claim bounds the probability of the count.

    The recursion follows $\alpha_i = \sum_{t \ge i} \frac tm p_t$ and $\beta_i = \sum_{t \ge i}
    \frac{c' - t}m p_t$ of the law p of the correct guesses downwards: $\beta_i \ge (k - 1) g(\alpha_{i+1})$
    with the inverse g of 1 - f. A total above c' / m is impossible, so the count is at most as likely as the
    level.
    """

    name: ClassVar[str] = "auditing.recursion"
    problems: ClassVar[tuple[type[Problem], ...]] = (AuditTail, AuditGaussianTail)
    direction: ClassVar[Direction] = Direction.UPPER
    reference: ClassVar[str] = f"{MAHLOUJIFAR}, Theorem 10 and Algorithm 3"
    version: ClassVar[int] = 2

    def cost(self, problem: Problem) -> Cost:
        assert isinstance(problem, Counts)
        return recursion_cost(problem)

    def answer(self, problem: Problem, seed: int) -> Answer:
        assert isinstance(problem, AuditTail | AuditGaussianTail)
        if isinstance(problem, AuditTail):
            claim = (APPROXIMATE, problem.claimed_epsilon, problem.delta)
        else:
            claim = (GAUSSIAN, problem.mu, 0.0)
        level = smallest_level(claim, NO_LINES, problem.counts)
        return unlikely_at_most(level, "Algorithm 3")
