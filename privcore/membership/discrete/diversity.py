"""Diversity of the distribution of a record, the bounds that it gives, and the limit for many records."""

import math
from typing import get_args

import numpy as np

from privcore.answer import Answer
from privcore.distributions.record import RecordDistribution
from privcore.membership.discrete.problems import MembershipAdvantage, MembershipDiversity, WorstLearner
from privcore.membership.discrete.worst_case import CHUNK
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import CLOSED_FORM, FEW_OPERATIONS, RECORD_ATOMS
from privcore.papers import AUBINAIS
from privcore.published import published

_HEADS = 1000
"""Number of atoms that are summed individually if there are infinitely many."""
_TERMS = 8
"""Terms of the series of the square root of 1 - p, for the other atoms."""
_VACUOUS = "The diversity of the distribution is infinite, so the bound is vacuous."


class MembershipDiversityMethod(Method[MembershipDiversity]):
    r"""Sum the roots; of infinitely many atoms, all after the first ones by the series of the root.

    A sum over $k^{-s / 2}$ diverges for $s \le 2$. A continuous part has an infinite diversity, as the limit
    of more and more atoms.
    """

    name = "membership.diversity"
    problems = (MembershipDiversity,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Section 5.2, definition of C_K(P)"

    def cost(self, problem: MembershipDiversity) -> Cost:
        return diversity_cost(problem.distribution)

    def answer(self, problem: MembershipDiversity, seed: int) -> Answer:
        law = problem.distribution
        if law.continuous > 0.0:
            return Answer.enclosure(math.inf, math.inf, detail="a part of the distribution has no atoms")
        lower, upper = diversity(law)
        detail = "the sum diverges" if math.isinf(lower) else "sum over the atoms"
        return Answer.enclosure(lower, upper, detail=detail)


def diversity_cost(law: RecordDistribution) -> Cost:
    """Return the cost of computing the diversity."""
    atoms = law.reach(1.0) if law.finite else _HEADS
    return Cost(seconds=2e-3 + 2e-8 * atoms, bytes=2e6 + (60.0 * atoms if law.finite else 0.0))


def diversity(law: RecordDistribution) -> tuple[float, float]:
    r"""Return bounds of $\sum_k \sqrt{p_k (1 - p_k)}$ over the atoms; infinity if it diverges.

    Args:
        law: Distribution of a record; its continuous part is ignored.

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
        # All further terms are negative, and their sum is less than twice the next term.
        missing = -2.0 * coefficient * law.tail_sum(_TERMS + 0.5, last) if math.isfinite(total) else 0.0
    error = 2.0 * law.error + 1e-14
    return max(0.0, (total - missing) * (1.0 - error)), total * (1.0 + error)


MembershipSchwarz = published(
    "membership.schwarz",
    MembershipAdvantage,
    Direction.UPPER,
    r"""$\Delta^*_\gamma \le \Delta^*_1 \le w + C / (2 \sqrt n)$, with the continuous part w.

    $E|B / n - p| \le \sqrt{p q / n}$ for every atom, by the inequality of Cauchy and Schwarz.
    """,
    lambda p: p.distribution.continuous + diversity_bound(diversity(p.distribution)[1], p.records),
    reference=f"{AUBINAIS}, Section 5.2 and Table 1, which prints C / (2 sqrt n)",
    unless=lambda p: _VACUOUS if math.isinf(diversity(p.distribution)[1]) else None,
    slack=FEW_OPERATIONS,
    detail="Cauchy and Schwarz",
    cost=lambda p: diversity_cost(p.distribution),
)


def diversity_bound(c: float, records: int) -> float:
    r"""Return $\min\{1, C / (2 \sqrt n)\}$, an upper bound for all distributions of this diversity.

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


LEAST = math.exp(1.5 * math.log(2.0) - 4.0 / 3.0) / math.sqrt(2.0 * math.pi) * (1.0 - CLOSED_FORM)
"""The constant c, 0.29744, rounded down; it is printed as 0.29."""
LARGEST = math.exp(3.5 * math.log(7.0) - 2.0 * math.log(3.0) - 6.5 * math.log(2.0) - 1.0 / 36.0)
LARGEST *= (1.0 + CLOSED_FORM) / math.sqrt(2.0 * math.pi)
"""The constant c', 0.43227, rounded up; it is printed as 0.44."""


class MembershipCorollary(Method[WorstLearner]):
    r"""The advantage at odds 1 is within $[c, c'] \, C / \sqrt n$ if all p > 1 / n and n >= 5.

    At other odds the advantage is at most that at odds 1.
    """

    name = "membership.corollary"
    problems = get_args(WorstLearner)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Corollary 15, with the constants of its Lemma 30"

    def applies(self, problem: WorstLearner) -> str | None:
        law = problem.distribution
        if problem.records < 5:
            return "The corollary needs at least 5 records."
        if not law.finite or law.continuous > 0.0:
            return "The corollary needs finitely many atoms and no continuous part."
        last = int(law.reach(1.0))
        if float(law.atoms(last - 1, last).p[0]) * problem.records <= 1.0 + RECORD_ATOMS:
            return "The corollary needs every atom to have a probability above 1 / records."
        return None

    def cost(self, problem: WorstLearner) -> Cost:
        return diversity_cost(problem.distribution)

    def answer(self, problem: WorstLearner, seed: int) -> Answer:
        least, largest = diversity(problem.distribution)
        root = math.sqrt(problem.records)
        lower = LEAST * least / root if problem.gamma == 1.0 else 0.0
        low, high = problem.from_advantage(min(1.0, lower), min(1.0, LARGEST * largest / root))
        return Answer.enclosure(low, high, detail="published constants")


_USUAL_HEADS = 2**16
_SHARE = 0.7
"""Least share of the diversity due to atoms with an expected count between 1 and n - 1."""


class MembershipAsymptotic(Method[MembershipAdvantage]):
    r"""$w + C / \sqrt{2 \pi n}$, from the mean deviation of a Gaussian approximation to the relative counts.

    An estimate for odds 1. It applies if most of the diversity comes from atoms whose expected count is
    between 1 and n - 1.
    """

    name = "membership.asymptotic"
    problems = (MembershipAdvantage,)
    direction = Direction.ESTIMATE
    reference = f"central limit theorem for the counts of {AUBINAIS}, Theorem 14"

    def applies(self, problem: MembershipAdvantage) -> str | None:
        if problem.odds != 1.0:
            return "The limit holds at odds 1 only; at other odds the advantage falls exponentially."
        law = problem.distribution
        whole = diversity(law)[1]
        if math.isinf(whole):
            return "The diversity of the distribution is infinite; the advantage falls more slowly than this."
        if whole > 0.0 and _usual(law, problem.records) < _SHARE * whole:
            return "Too much of the diversity comes from atoms that are too rare for this number of records."
        return None

    def cost(self, problem: MembershipAdvantage) -> Cost:
        cost = diversity_cost(problem.distribution)
        return Cost(seconds=cost.seconds + 2e-8 * _USUAL_HEADS, bytes=cost.bytes)

    def answer(self, problem: MembershipAdvantage, seed: int) -> Answer:
        law = problem.distribution
        value = law.continuous + diversity(law)[0] / math.sqrt(2.0 * math.pi * problem.records)
        return Answer.about(min(1.0, value), detail="limit for many records")


def _usual(law: RecordDistribution, records: int) -> float:
    """Return the part of the diversity due to atoms with 1 / n <= p <= 1 - 1 / n."""
    least = 1.0 / records
    last = int(min(law.reach(least), _USUAL_HEADS)) if not law.finite else int(law.reach(least))
    total = 0.0
    for start in range(0, last, CHUNK):
        atoms = law.atoms(start, min(start + CHUNK, last))
        middle = np.minimum(atoms.p, atoms.q) >= least
        total += float(np.sum((atoms.number * np.sqrt(atoms.p * atoms.q))[middle]))
    return total
