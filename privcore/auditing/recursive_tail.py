"""p-values by Algorithm 3: the least level at which it refutes a claim."""

from dataclasses import dataclass
from typing import get_args

from privcore.answer import Answer
from privcore.auditing.counts import recursion_cost, unlikely_at_most
from privcore.auditing.problems import AuditGaussianTail, AuditTail
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN, NO_LINES, smallest_level
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR

Answered = AuditTail | AuditGaussianTail


@dataclass(frozen=True, kw_only=True)
class AuditingRecursion(Method[Answered]):
    r"""The least level at which Algorithm 3 refutes the claim bounds the probability of the count.

    The recursion follows $\alpha_i = \sum_{t \ge i} \frac tm p_t$ and $\beta_i = \sum_{t \ge i}
    \frac{c' - t}m p_t$ of the law p of the correct guesses downwards: $\beta_i \ge (k - 1) g(\alpha_{i+1})$
    with the inverse g of 1 - f. A total above c' / m is impossible, so the count is at most as likely as the
    level.
    """

    name = "auditing.recursion"
    problems = get_args(Answered)
    direction = Direction.UPPER
    reference = f"{MAHLOUJIFAR}, Theorem 10 and Algorithm 3"
    version = 2

    def cost(self, problem: Answered) -> Cost:
        return recursion_cost(problem)

    def answer(self, problem: Answered, seed: int) -> Answer:
        if isinstance(problem, AuditTail):
            claim = (APPROXIMATE, problem.claimed_epsilon, problem.delta)
        else:
            claim = (GAUSSIAN, problem.mu, 0.0)
        level = smallest_level(claim, NO_LINES, problem.counts)
        return unlikely_at_most(level, "Algorithm 3")
