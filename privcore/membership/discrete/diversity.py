r"""The diversity $C = \sum_k \sqrt{p_k (1 - p_k)}$ of a law, which sets the pace of the advantage."""

import math
from dataclasses import dataclass

import numpy as np

from privcore.answer import Answer
from privcore.distributions.record import Law
from privcore.membership.discrete.problems import MembershipDiversity
from privcore.membership.discrete.worst_case import CHUNK
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_HEADS = 1000
"""Of infinitely many atoms, how many are summed one by one."""
_TERMS = 8
"""Terms of the series of the square root of 1 - p, for the others."""


@dataclass(frozen=True, kw_only=True)
class MembershipDiversityMethod(Method[MembershipDiversity]):
    r"""Sum the roots; of infinitely many atoms the first, and the others by the series of the root.

    A sum over $k^{-s / 2}$ diverges for $s \le 2$. A part without atoms has an infinite diversity: it is the
    limit of ever more atoms.
    """

    name = "membership.diversity"
    problems = (MembershipDiversity,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Section 5.2, definition of C_K(P)"

    def cost(self, problem: MembershipDiversity) -> Cost:
        return diversity_cost(problem.record_law)

    def answer(self, problem: MembershipDiversity, seed: int) -> Answer:
        law = problem.record_law
        if law.continuous > 0.0:
            return Answer.enclosure(math.inf, math.inf, detail="a part of the law has no atoms")
        lower, upper = diversity(law)
        detail = "the sum diverges" if math.isinf(lower) else "sum over the atoms"
        return Answer.enclosure(lower, upper, detail=detail)


def diversity_cost(law: Law) -> Cost:
    """Return what the diversity needs."""
    atoms = law.reach(1.0) if law.finite else _HEADS
    return Cost(seconds=2e-3 + 2e-8 * atoms, bytes=2e6 + (60.0 * atoms if law.finite else 0.0))


def diversity(law: Law) -> tuple[float, float]:
    r"""Return both ends of $\sum_k \sqrt{p_k (1 - p_k)}$ over the atoms; infinity where it diverges.

    Args:
        law: Law of a record; a part without atoms is left out.

    Returns:
        Lower and upper end, >= 0.

    Reference:
        arXiv:2310.13786v6, Section 5.2.

    Example:
        >>> from privcore.distributions.record_notation import law
        >>> round(diversity(law("uniform(10)"))[0], 9), diversity(law("zipf(2)"))
        (3.0, (inf, inf))
    """
    last = int(law.reach(1.0)) if law.finite else _HEADS
    sums = []
    for start in range(0, last, CHUNK):
        atoms = law.atoms(start, min(start + CHUNK, last))
        sums.append(float(np.sum(atoms.number * np.sqrt(atoms.p * atoms.q))))
    total, missing = math.fsum(sums), 0.0
    if not law.finite:
        coefficient = 1.0
        for j in range(_TERMS):
            total += coefficient * law.tail_sum(j + 0.5, last)
            coefficient *= (j - 0.5) / (j + 1.0)
        # All further terms are negative, and together less than twice the next one.
        missing = -2.0 * coefficient * law.tail_sum(_TERMS + 0.5, last) if math.isfinite(total) else 0.0
    error = 2.0 * law.error + 1e-14
    return max(0.0, (total - missing) * (1.0 - error)), total * (1.0 + error)
