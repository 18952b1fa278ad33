"""What the advantage tends to for many records: the diversity over the root of their number."""

import math
from dataclasses import dataclass

import numpy as np

from privcore.answer import Answer
from privcore.distributions.record import Law
from privcore.membership.discrete.diversity import diversity, diversity_cost
from privcore.membership.discrete.problems import MembershipAdvantage
from privcore.membership.discrete.worst_case import CHUNK
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_HEADS = 2**16
_SHARE = 0.7
"""Share of the diversity that has to come from atoms that are expected among the records."""


@dataclass(frozen=True, kw_only=True)
class MembershipAsymptotic(Method[MembershipAdvantage]):
    r"""$w + C / \sqrt{2 \pi n}$: a relative count is about Gaussian, whose mean deviation this is.

    An estimate, for odds 1 and as long as most of the diversity comes from atoms of which both records with
    and without the value are expected.
    """

    name = "membership.asymptotic"
    problems = (MembershipAdvantage,)
    direction = Direction.ESTIMATE
    reference = f"central limit theorem for the counts of {AUBINAIS}, Theorem 14"

    def applies(self, problem: MembershipAdvantage) -> str | None:
        if problem.odds != 1.0:
            return "The limit is that at odds 1; at others the advantage falls exponentially."
        law = problem.record_law
        whole = diversity(law)[1]
        if math.isinf(whole):
            return "The diversity of the law is infinite, and the advantage falls more slowly than its limit."
        if whole > 0.0 and _usual(law, problem.records) < _SHARE * whole:
            return "Too much of the diversity comes from atoms that are too rare for so few records."
        return None

    def cost(self, problem: MembershipAdvantage) -> Cost:
        cost = diversity_cost(problem.record_law)
        return Cost(seconds=cost.seconds + 2e-8 * _HEADS, bytes=cost.bytes)

    def answer(self, problem: MembershipAdvantage, seed: int) -> Answer:
        law = problem.record_law
        value = law.continuous + diversity(law)[0] / math.sqrt(2.0 * math.pi * problem.records)
        return Answer.about(min(1.0, value), detail="limit for many records")


def _usual(law: Law, records: int) -> float:
    """Return what atoms with 1 / n <= p <= 1 - 1 / n add to the diversity."""
    least = 1.0 / records
    last = int(min(law.reach(least), _HEADS)) if not law.finite else int(law.reach(least))
    total = 0.0
    for start in range(0, last, CHUNK):
        atoms = law.atoms(start, min(start + CHUNK, last))
        middle = np.minimum(atoms.p, atoms.q) >= least
        total += float(np.sum((atoms.number * np.sqrt(atoms.p * atoms.q))[middle]))
    return total
