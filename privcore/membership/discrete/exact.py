"""Worst learner of discrete records, exactly: advantage, security, accuracy, and the risk of records."""

from typing import get_args

import numpy as np

from privcore.answer import Answer
from privcore.distributions.record import RecordDistribution
from privcore.membership.discrete.excess import excess
from privcore.membership.discrete.problems import (
    MembershipRecordRisk,
    MembershipRiskQuantile,
    WorstLearner,
    WorstLearnerProblem,
)
from privcore.membership.discrete.worst_case import worst_advantage, worst_cost
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_TIE = 1e-12
"""Tolerance of the definition of the quantile: a share that misses the level by less reaches it."""
_LAST_PLACE = 2.0**50
"""Last place that a search visits if there are infinitely many atoms."""


Answered = WorstLearner | MembershipRecordRisk | MembershipRiskQuantile


class MembershipExact(Method[Answered]):
    r"""A learner that releases the multiset of its records, and de Moivre's formula for its advantage.

    At odds 1 it is $\sum_k p_k q_k b_{n-1}(\lfloor n p_k \rfloor; p_k)$ with binomial probabilities b, one
    term for every atom. Records of rarer values have a larger risk, so a quantile of the risk is the risk of
    a single value.
    """

    name = "membership.exact"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, Theorem 14, with the exact formula of its Lemma 31"

    def cost(self, problem: Answered) -> Cost:
        if isinstance(problem, WorstLearnerProblem):
            return worst_cost(problem.distribution, problem.records, problem.gamma)
        if isinstance(problem, MembershipRiskQuantile):
            atoms = problem.distribution.reach(1.0) if problem.distribution.finite else 1.0
            return Cost(seconds=2e-3 + 4e-8 * atoms, bytes=1e5 + 60.0 * atoms)
        return Cost(seconds=1e-3, bytes=1e5)

    def answer(self, problem: Answered, seed: int) -> Answer:
        if isinstance(problem, WorstLearnerProblem):
            ends = worst_advantage(problem.distribution, problem.records, problem.gamma)
            lower, upper = problem.from_advantage(*ends)
            return Answer.enclosure(lower, upper, detail="multiset of all records")
        if isinstance(problem, MembershipRecordRisk):
            p = problem.atom_probability
            lower, upper = record_risk(p, 1.0 - p, problem.records, problem.odds, 0.0)
            return Answer.enclosure(lower, upper, detail="count of the attacked value")
        lower, upper = _quantile(problem)
        return Answer.enclosure(lower, upper, detail="count of the value at the quantile")


def record_risk(p: float, q: float, records: int, odds: float, error: float) -> tuple[float, float]:
    r"""Return bounds of the largest risk, over all learners, of records whose value has probability p.

    $$E(B / (n p) - \gamma)_+ \text{ for } \gamma \ge 1, \qquad
      E(\gamma - B / (n p))_+ / \gamma \text{ for } \gamma \le 1, \qquad B \sim \mathrm{Bin}(n, p)$$

    Args:
        p: Probability in (0, 1].
        q: 1 - p, accurate even if it is small.
        records: Number n of records, >= 1.
        odds: $\gamma$ > 0.
        error: Relative error of p and of q.

    Returns:
        Lower and upper end in [0, 1].

    Reference:
        arXiv:2310.13786v6, equation 7 and Theorem 14.

    Example:
        >>> low, high = record_risk(0.5, 0.5, 1, 1.0, 0.0)
        >>> round(low, 9), round(high, 9)
        (0.5, 0.5)
    """
    values, off = excess(records, np.array([p]), np.array([q]), odds, error)
    value, wrong = float(values[0]) / p, float(off[0]) / p
    return max(0.0, value - wrong), min(1.0, value + wrong + 1e-280)


def _quantile(problem: MembershipRiskQuantile) -> tuple[float, float]:
    """Return bounds of the risk of the value at which the mass of commoner values reaches the level."""
    law, beyond, error = problem.distribution, 1.0 - problem.risk_level, 0.0
    if beyond > 0.0:
        beyond += _TIE
        error = 1e-14 + (2.0**-52 * law.reach(1.0) if law.finite else 0.0)
    lower = _risk_after(problem, law, beyond + error)[0]
    return lower, _risk_after(problem, law, beyond - error)[1]


def _risk_after(
    problem: MembershipRiskQuantile, law: RecordDistribution, share: float
) -> tuple[float, float]:
    """Return bounds of the risk of the first value after which the rest has at most the mass `share`."""
    left = share - law.continuous
    if left < 0.0 or (left == 0.0 and not law.finite):
        return 1.0, 1.0
    place = _place(law, left)
    p, q = law.at(np.array([place]))
    ends = record_risk(float(p[0]), float(q[0]), problem.records, problem.odds, law.error)
    return (ends[0], 1.0) if place == _LAST_PLACE else ends


def _place(law: RecordDistribution, left: float) -> float:
    """Return the first place after which the atoms have at most the mass `left`, or the last place."""
    if law.finite:
        return 1.0 + float(np.argmax(law.tail(1.0, np.arange(1.0, law.reach(1.0) + 1.0)) <= left))
    low, high = 0.0, 1.0
    while law.tail_sum(1.0, high) > left:
        if high == _LAST_PLACE:
            return high
        low, high = high, 2.0 * high
    while high - low > 1.0:
        middle = float(np.floor(0.5 * (low + high)))
        low, high = (middle, high) if law.tail_sum(1.0, middle) > left else (low, middle)
    return high
