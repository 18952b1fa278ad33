"""The bound by the diversity that needs nothing else: half of it over the root of the number of records."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.membership.discrete.diversity import diversity, diversity_cost
from privcore.membership.discrete.problems import MembershipAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS


@dataclass(frozen=True, kw_only=True)
class MembershipSchwarz(Method[MembershipAdvantage]):
    r"""$\Delta^*_\gamma \le \Delta^*_1 \le w + C / (2 \sqrt n)$, with the continuous part w.

    $E|B / n - p| \le \sqrt{p q / n}$ for every atom, by the inequality of Cauchy and Schwarz.
    """

    name = "membership.schwarz"
    problems = (MembershipAdvantage,)
    direction = Direction.UPPER
    reference = f"{AUBINAIS}, Section 5.2 and Table 1, which prints C / (2 sqrt n)"

    def applies(self, problem: MembershipAdvantage) -> str | None:
        if math.isinf(diversity(problem.record_law)[1]):
            return "The diversity of the law is infinite, so the bound says nothing."
        return None

    def cost(self, problem: MembershipAdvantage) -> Cost:
        return diversity_cost(problem.record_law)

    def answer(self, problem: MembershipAdvantage, seed: int) -> Answer:
        law = problem.record_law
        bound = law.continuous + diversity_bound(diversity(law)[1], problem.records)
        return Answer.enclosure(0.0, min(1.0, bound * (1.0 + 1e-15)), detail="half the diversity")


def diversity_bound(c: float, records: int) -> float:
    r"""Return $\min\{1, C / (2 \sqrt n)\}$, at least the advantage for all laws of this diversity.

    Args:
        c: Diversity C, >= 0.
        records: Number n of training records, >= 1.

    Returns:
        Upper bound, up to rounding.

    Reference:
        arXiv:2310.13786v6, proof of Corollary 15 (Cauchy-Schwarz), and the column D of Table 1.

    Example:
        >>> round(diversity_bound(4.30, 1000), 3)
        0.068
    """
    return min(1.0, 0.5 * c / math.sqrt(records))
