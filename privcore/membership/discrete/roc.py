"""Best attack on the worst learner at a given false positive rate, by the lemma of Neyman and Pearson."""

import math
from collections.abc import Iterator

import numpy as np

from privcore.answer import Answer
from privcore.distributions.record import Array, RecordDistribution
from privcore.membership.discrete.excess import at_least
from privcore.membership.discrete.problems import MembershipRoc
from privcore.membership.discrete.worst_case import CHUNK, MANY, rare_sum, worst_advantage, worst_cost
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import BINOMIAL_TERM
from privcore.papers import AUBINAIS

_HEADS = 2**15
"""Number of atoms with individual thresholds if there are infinitely many; rarer atoms need one record."""
_HALVINGS = 60
_LEAST, _MOST = 1e-13, 1e18
"""Interval of thresholds in which the best threshold is searched."""


class MembershipRocMethod(Method[MembershipRoc]):
    r"""Classify a record as a member if at least $g n p$ of the n records are equal to it.

    The likelihood ratio of the record is $N_z / (n p_z)$. The lower end mixes two attacks with neighbouring
    thresholds g whose false positive rates enclose x. For the upper end, the true positive rate is at most
    $E_g + g x$ for every g > 0, with $E_g = \sup_B P_1(B) - g P_0(B)$, which is $\Delta_g$ for g >= 1 and
    $g \Delta_g + 1 - g$ for g <= 1.
    """

    name = "membership.roc"
    problems = (MembershipRoc,)
    direction = Direction.ENCLOSURE
    reference = f"lemma of Neyman and Pearson, for the learner of {AUBINAIS}, Theorem 14"
    version = 3

    def cost(self, problem: MembershipRoc) -> Cost:
        heads = problem.distribution.reach(1.0) if problem.distribution.finite else _HEADS
        lines = worst_cost(problem.distribution, problem.records, _MOST, _HEADS)
        each = 8e-7 if problem.records <= MANY else 5e-6
        return Cost(seconds=0.02 + each * heads * _HALVINGS + 2.0 * lines.seconds, bytes=lines.bytes)

    def answer(self, problem: MembershipRoc, seed: int) -> Answer:
        law, n, x = problem.distribution, problem.records, problem.false_positive_rate
        if x == 1.0:
            return Answer.enclosure(1.0, 1.0, detail="every record is classified as a member")
        strict, lax = (0.0, law.continuous), (1.0, 1.0)
        low, high = math.log(_LEAST), math.log(_MOST)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            rates = attack_rates(law, n, math.exp(middle))
            if rates[0] <= x:
                high, strict = middle, max(strict, rates)
            else:
                low, lax = middle, min(lax, rates)
        share = (x - strict[0]) / (lax[0] - strict[0]) if lax[0] > strict[0] else 0.0
        lower = (strict[1] + share * max(0.0, lax[1] - strict[1])) * (1.0 - BINOMIAL_TERM)
        upper = min(_line(law, n, math.exp(g), x) for g in (low, high))
        return Answer.enclosure(min(1.0, lower), upper, detail=f"threshold {math.exp(high):.6g}")


def attack_rates(law: RecordDistribution, records: int, threshold: float) -> tuple[float, float]:
    r"""Return the false positive rate, rounded up, and the true positive rate, rounded down, of an attack.

    $$\sum_k p_k P(B_k \ge c_k), \qquad \sum_k p_k P(1 + B'_k \ge c_k), \qquad c_k = \lceil g n p_k \rceil$$

    with $B_k \sim \mathrm{Bin}(n, p_k)$ and $B'_k \sim \mathrm{Bin}(n - 1, p_k)$.

    Args:
        law: Distribution of a record.
        records: Number n of records, >= 1.
        threshold: g > 0.

    Returns:
        Upper bound of the false positive rate, and lower bound of the true positive rate.

    Reference:
        arXiv:2310.13786v6, proof of Theorem 14.

    Example:
        >>> from privcore.distributions.record_notation import law
        >>> false, true = attack_rates(law("uniform(2)"), 1, 1.0)
        >>> round(false, 9), round(true, 9)
        (0.5, 1.0)
    """
    n = float(records)
    rare = law.reach(1.0 / (n * max(1.0, threshold)))
    last = int(rare) if law.finite else int(min(rare, _HEADS))
    false, true = [], [law.continuous]
    for p, q, number in _chunks(law, last):
        needed = np.ceil(threshold * n * p * (1.0 - 2.0 * BINOMIAL_TERM))
        up, down = at_least(records, p, q, needed)[1], at_least(records - 1, p, q, needed - 1.0)[0]
        false.append(float(np.sum(number * p * up)))
        true.append(float(np.sum(number * p * down)))
    if not law.finite:  # for the other atoms the threshold is one record of the value
        mass = law.tail_sum(1.0, float(last))
        if n * float(law.at(np.array([last + 1.0]))[0][0]) <= 1.0:
            false.append(mass - rare_sum(law, records, 1.0, float(last))[0])
        else:
            false.append(mass)
        true.append(mass)
    error = BINOMIAL_TERM + 4.0 * law.error
    return min(1.0, math.fsum(false) * (1.0 + error)), min(1.0, math.fsum(true) * (1.0 - error))


def _line(law: RecordDistribution, records: int, slope: float, x: float) -> float:
    """Return an upper bound of the true positive rate of any attack at the false positive rate x."""
    upper = worst_advantage(law, records, slope, _HEADS)[1]
    if slope < 1.0:
        upper = slope * upper + (1.0 - slope)
    return min(1.0, (upper + slope * x) * (1.0 + BINOMIAL_TERM))


def _chunks(law: RecordDistribution, last: int) -> Iterator[tuple[Array, Array, Array]]:
    """Yield p, 1 - p and the multiplicity of the first atoms, in chunks."""
    for start in range(0, last, CHUNK):
        atoms = law.atoms(start, min(start + CHUNK, last))
        yield atoms.p, atoms.q, atoms.number
