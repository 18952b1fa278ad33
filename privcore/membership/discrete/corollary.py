"""The published bounds by the diversity, for laws without rare atoms."""

import math
from dataclasses import dataclass
from typing import get_args

from privcore.answer import Answer
from privcore.membership.discrete.diversity import diversity, diversity_cost
from privcore.membership.discrete.problems import (
    MembershipAccuracy,
    MembershipAdvantage,
    MembershipSecurity,
)
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

LEAST = math.exp(1.5 * math.log(2.0) - 4.0 / 3.0) / math.sqrt(2.0 * math.pi) * (1.0 - 1e-12)
"""The constant c, 0.29744, rounded down; it is printed as 0.29."""
LARGEST = math.exp(3.5 * math.log(7.0) - 2.0 * math.log(3.0) - 6.5 * math.log(2.0) - 1.0 / 36.0)
LARGEST *= (1.0 + 1e-12) / math.sqrt(2.0 * math.pi)
"""The constant c', 0.43227, rounded up; it is printed as 0.44."""


Answered = MembershipAdvantage | MembershipSecurity | MembershipAccuracy


@dataclass(frozen=True, kw_only=True)
class MembershipCorollary(Method[Answered]):
    r"""The advantage at odds 1 is within $[c, c'] \, C / \sqrt n$ where all p > 1 / n and n >= 5.

    At other odds the advantage is at most that at odds 1.
    """

    name = "membership.corollary"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Corollary 15, with the constants of its Lemma 30"

    def applies(self, problem: Answered) -> str | None:
        law = problem.record_law
        if problem.records < 5:
            return "The corollary is for at least 5 records."
        if not law.finite or law.continuous > 0.0:
            return "The corollary is for finitely many atoms and no continuous part."
        last = int(law.reach(1.0))
        if float(law.atoms(last - 1, last).p[0]) * problem.records <= 1.0 + 1e-12:
            return "The corollary is for laws whose atoms all have more than the probability 1 / records."
        return None

    def cost(self, problem: Answered) -> Cost:
        return diversity_cost(problem.record_law)

    def answer(self, problem: Answered, seed: int) -> Answer:
        least, largest = diversity(problem.record_law)
        root = math.sqrt(problem.records)
        lower = LEAST * least / root if problem.gamma == 1.0 else 0.0
        low, high = problem.from_advantage(min(1.0, lower), min(1.0, LARGEST * largest / root))
        return Answer.enclosure(low, high, detail="published constants")
