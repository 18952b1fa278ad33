"""Sharp constants for the mean deviation of a binomial count, without any binomial probability."""

import math
from typing import get_args

import numpy as np

from privcore.answer import Answer
from privcore.distributions.record import RecordDistribution
from privcore.membership.discrete.diversity import diversity
from privcore.membership.discrete.problems import WorstLearner
from privcore.membership.discrete.worst_case import CHUNK, rare_sum
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import CLOSED_FORM, probability_at_most
from privcore.papers import AUBINAIS

_HEADS = 2**16
"""Number of atoms that are summed individually if there are infinitely many."""


class MembershipDeviation(Method[WorstLearner]):
    r"""Every atom with $1 / n \le p \le 1 - 1 / n$ adds between L and U times $\sqrt{p q / n}$ at odds 1.

    $L = (1 - 1/n)^{n - 1/2}$ is the least and $U = (1 - 1/(2n))^{n - 1/2} / \sqrt 2$ the largest constant.
    Rarer atoms add $p q^n$ and commoner atoms $q p^n$. At other odds the advantage is at most that at odds 1.
    """

    name = "membership.deviation"
    problems = get_args(WorstLearner)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Lemmas 21 and 30; the sharp constants and their proof are ours"

    def cost(self, problem: WorstLearner) -> Cost:
        law = problem.distribution
        atoms = law.reach(1.0) if law.finite else min(_HEADS, law.reach(1.0 / problem.records))
        return Cost(seconds=2e-3 + 5e-8 * atoms, bytes=2e6 + (60.0 * atoms if law.finite else 0.0))

    def answer(self, problem: WorstLearner, seed: int) -> Answer:
        lower, upper = deviation_bounds(problem.distribution, problem.records)
        if problem.gamma != 1.0:
            lower = problem.distribution.continuous
        low, high = problem.from_advantage(lower, upper)
        return Answer.enclosure(low, high, detail="sharp constants of the mean deviation")


def least_constant(records: int) -> float:
    r"""Return $L_n = (1 - 1/n)^{n - 1/2}$, the least $E|B - np| / (2 \sqrt{n p q})$ for $n p, n q \ge 1$.

    By de Moivre's formula the quotient is $f(p) = \sqrt n \binom{n-1}{m} p^{m + 1/2} q^{n - m - 1/2}$ with
    $m = \lfloor n p \rfloor$. Its logarithm is concave in p between m / n and (m + 1) / n, so f is least at
    some $p = j / n$. There $\ln f((j+1)/n) - \ln f(j/n) = \psi(j) - \psi(n - j - 1)$ with the decreasing
    $\psi(x) = (x + 1/2) \ln(1 + 1/x) = \sum_i (2x + 1)^{-2i} / (2i + 1)$. So f rises from j = 1 to the
    middle, and it is symmetric.

    Args:
        records: Number n of records, >= 2.

    Returns:
        The constant, which increases with n to 1/e = 0.3679.

    Reference:
        Our own proof; arXiv:2310.13786v6, Lemma 30, has 0.29744 for n >= 5.

    Example:
        >>> round(least_constant(2), 5), round(least_constant(5), 5)
        (0.35355, 0.36636)
    """
    return math.exp((records - 0.5) * math.log1p(-1.0 / records))


def largest_constant(records: int) -> float:
    r"""Return $U_n = (1 - 1/(2n))^{n - 1/2} / \sqrt 2$, the largest $E|B - np| / (2 \sqrt{n p q})$.

    With f as in `least_constant`, concavity puts the largest value for a given m at $p = (m + 1/2) / n$. Its
    logarithm changes by $\varphi(m + 1) - \varphi(n - m - 1)$ from m to m + 1, with the increasing
    $\varphi(x) = 1 + \int_{-1/2}^{1/2} \ln(1 + v / x) \, dv = 1 + \int_0^{1/2} \ln(1 - v^2 / x^2) \, dv$.
    So the value falls from m = 0 to the middle, and it is symmetric: it is largest at m = 0, p = 1/(2n).

    Args:
        records: Number n of records, >= 1.

    Returns:
        The constant, which decreases with n to $1 / \sqrt{2 e}$ = 0.4289.

    Reference:
        Our own proof; arXiv:2310.13786v6, Lemma 30, has 0.43227 for n >= 5.

    Example:
        >>> largest_constant(1), round(largest_constant(10), 5)
        (0.5..., 0.43437)
    """
    return math.exp((records - 0.5) * math.log1p(-0.5 / records)) * math.sqrt(0.5)


def deviation_bounds(law: RecordDistribution, records: int) -> tuple[float, float]:
    """Return a lower and an upper bound of the largest advantage at odds 1, by the constants.

    Args:
        law: Distribution of a record.
        records: Number n of records, >= 1.

    Example:
        >>> from privcore.distributions.record_notation import law
        >>> low, high = deviation_bounds(law("uniform(10)"), 100)
        >>> round(low, 5), round(high, 5)
        (0.11036, 0.12883)
    """
    n = float(records)
    least, largest = least_constant(records) if records > 1 else 0.0, largest_constant(records)
    rare = law.reach(1.0 / n)
    last = int(rare) if law.finite else int(min(rare, _HEADS))
    usual, exact, roots = [], [law.continuous], []
    for start in range(0, last, CHUNK):
        atoms = law.atoms(start, min(start + CHUNK, last))
        p, q = atoms.p, atoms.q
        small = np.minimum(p, q)
        root = atoms.number * np.sqrt(p * q)
        middle = (small * n >= 1.0) & (records > 1)
        ends = atoms.number * small * np.exp(n * np.log1p(-small))
        usual.append(float(np.sum(root[middle])))
        exact.append(float(np.sum(ends[~middle])))
        roots.append(float(np.sum(root)))
    root_n, middle_sum = math.sqrt(n), math.fsum(usual)
    lower = math.fsum(exact) + least * middle_sum / root_n
    upper = math.fsum(exact) + largest * middle_sum / root_n
    if not law.finite:
        low, high = _rest(law, records, float(last), math.fsum(roots))
        lower, upper = lower + low, upper + high
    return max(0.0, lower * (1.0 - CLOSED_FORM)), probability_at_most(upper, CLOSED_FORM, 1e-280)


def _rest(law: RecordDistribution, records: int, after: float, before: float) -> tuple[float, float]:
    """Return bounds of the sum over the atoms after a place, given the sum of the roots before it."""
    n, mass = float(records), law.tail_sum(1.0, after)
    (p,), (q,) = law.at(np.array([after + 1.0]))
    if n * p <= 1.0:
        return rare_sum(law, records, 1.0, after)
    # Rarer atoms have a larger risk than this atom.
    lower = mass * least_constant(records) * math.sqrt(q / (n * p))
    spread = max(0.0, diversity(law)[1] - before * (1.0 - CLOSED_FORM))
    return lower, min(mass, largest_constant(records) * spread / math.sqrt(n))
