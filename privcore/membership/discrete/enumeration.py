"""Worst learner of few records with few values: enumeration of all data sets in exact arithmetic."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import get_args

from privcore.answer import Answer
from privcore.distributions.record import RecordDistribution
from privcore.membership.discrete.problems import WorstLearner
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_MOST_SUMMANDS = 20_000
_MOST_RECORDS = 60


class MembershipEnumeration(Method[WorstLearner]):
    """Sum over all counts that a data set can have, and over all values of the tested record.

    The release is the counts, from which every symmetric learner can be simulated. The sum is the one in the
    definition of the advantage, not the formula of the theorem.
    """

    name = "membership.enumeration"
    problems = get_args(WorstLearner)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, equations 3 to 7, for the learner of Theorem 14"

    def applies(self, problem: WorstLearner) -> str | None:
        if not problem.distribution.finite:
            return "Data sets of infinitely many values cannot be enumerated."
        if problem.records > _MOST_RECORDS:
            return f"Data sets of more than {_MOST_RECORDS} records are too many to enumerate."
        if _summands(problem.distribution, problem.records) > _MOST_SUMMANDS:
            return f"The pairs of counts and tested values are more than {_MOST_SUMMANDS}, the limit."
        return None

    def cost(self, problem: WorstLearner) -> Cost:
        summands = min(_MOST_SUMMANDS, _summands(problem.distribution, problem.records))
        return Cost(seconds=1e-3 + 1e-5 * summands, bytes=1e5)

    def answer(self, problem: WorstLearner, seed: int) -> Answer:
        law, odds = problem.distribution, problem.gamma
        value = float(enumerated(law, problem.records, Fraction(odds)))
        # The distance of two distributions of n + 1 records is at most (n + 1) times that of one record.
        error = 4.0 * (problem.records + 1) * law.error * max(odds, 1.0 / odds) + 1e-15
        low, high = problem.from_advantage(max(0.0, value - error), min(1.0, value + error))
        return Answer.enclosure(low, high, detail="enumeration of all counts")


def enumerated(law: RecordDistribution, records: int, odds: Fraction) -> Fraction:
    r"""Return the largest advantage, exactly for the probabilities as stored in double precision.

    $$\sum_N P(N) \sum_k (N_k / n - \gamma p_k)_+, \qquad
      \sum_N P(N) \sum_k (p_k - N_k / (\gamma n))_+$$

    for $\gamma \ge 1$ and $\gamma \le 1$. In a continuous part every record has a unique value.

    Args:
        law: Distribution with few atoms.
        records: Number n of records, >= 1.
        odds: $\gamma$ > 0.

    Reference:
        arXiv:2310.13786v6, equations 3 to 7.

    Example:
        >>> from privcore.distributions.record_notation import law
        >>> enumerated(law("bernoulli(0.5)"), 3, Fraction(1))
        Fraction(1, 4)
    """
    atoms = law.atoms(0, int(law.reach(1.0)))
    exact = [Fraction(law.continuous)] if law.continuous else []
    for p, number in zip(atoms.p.tolist(), atoms.number.tolist(), strict=True):
        exact += [Fraction(p)] * int(number)
    scale = math.lcm(*(x.denominator for x in exact))
    weights = [int(x * scale) for x in exact]
    whole = sum(weights)
    # Gains are in units of 1 / (n * whole * denominator of the odds), probabilities in units of whole^-n.
    member, fresh = whole * odds.denominator, records * odds.numerator
    total = 0
    for counts in _counts(records, len(weights)):
        probability, left = 1, records
        for count, weight in zip(counts, weights, strict=True):
            probability *= math.comb(left, count) * weight**count
            left -= count
        gains = [count * member - fresh * weight for count, weight in zip(counts, weights, strict=True)]
        if law.continuous:  # a fresh record equals no training record, a member equals itself only
            gains[0] = counts[0] * member if odds >= 1 else -fresh * weights[0]
        total += probability * sum(max(0, gain if odds >= 1 else -gain) for gain in gains)
    return Fraction(total, records * member * whole**records) / min(odds, Fraction(1))


def _counts(records: int, values: int) -> Iterator[tuple[int, ...]]:
    """Yield all counts of `values` values among `records` records."""
    for bars in itertools.combinations(range(records + values - 1), values - 1):
        edges = (-1, *bars, records + values - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def _summands(law: RecordDistribution, records: int) -> float:
    """Return the number of pairs of counts and values, or infinity if it is over the limit."""
    atoms = law.reach(1.0)
    values = float(law.atoms(0, int(atoms)).number.sum()) + (law.continuous > 0.0) if atoms <= 100 else atoms
    if values > 100 or records > _MOST_RECORDS:
        return math.inf
    return math.comb(records + int(values) - 1, records) * values
