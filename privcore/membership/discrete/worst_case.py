r"""Largest advantage over all learners, for any distribution of a record, with both ends proved.

A learner that releases the multiset of its records reveals most: $\Delta^*_\gamma = w + \sum_k e(p_k)$ with
the mass w of the continuous part, whose records an attack identifies with certainty. Of infinitely many
atoms, the first ones are summed individually, the next ones in blocks, and the rare ones in closed form.
"""

import math

import numpy as np
from numpy.typing import NDArray

from privcore.distributions.record import RecordDistribution
from privcore.membership.discrete.excess import excess
from privcore.method import Cost
from privcore.numerics.rounding import BINOMIAL_TERM, probability_at_most

Array = NDArray[np.float64]

CHUNK = 2**15
"""Atoms of a chunk, few enough that its arrays stay in the cache of a core."""
HEADS = 2**23
"""Number of atoms that are summed individually if there are infinitely many."""
MANY = 10**9
"""Records beyond which the incomplete beta function takes several times as long."""
_UNDERFLOW = 1e-280
"""Upper bound of the sum of all excesses that underflow."""
_BLOCK = 1e-4
"""Relative length of the blocks of atoms between the first and the rare atoms."""
_ORDERS = 20
"""Terms of the alternating series for rare atoms, whose terms fall faster than 1 / j!."""


def worst_advantage(
    law: RecordDistribution, records: int, odds: float, heads: int = HEADS
) -> tuple[float, float]:
    r"""Return bounds of the largest advantage of an attack on any learner.

    $$\Delta^*_\gamma = w + \sum_k E(B_k / n - \gamma p_k)_+, \qquad
      \Delta^*_\gamma = w + \frac1\gamma \sum_k E(\gamma p_k - B_k / n)_+$$

    for $\gamma \ge 1$ and for $\gamma \le 1$, with $B_k \sim \mathrm{Bin}(n, p_k)$.

    Args:
        law: Distribution of a record.
        records: Number n of records, >= 1.
        odds: $\gamma$ > 0.
        heads: Number of atoms that are summed individually if there are infinitely many.

    Returns:
        Lower and upper end in [0, 1], which account for errors of the arithmetic and of the probabilities.

    Reference:
        arXiv:2310.13786v6, Theorem 14; the form as sums of positive parts, and the extension to records with
        a continuous part, are our own.

    Example:
        >>> from privcore.distributions.record_notation import law
        >>> low, high = worst_advantage(law("uniform(3)"), 5, 1.0)
        >>> round(low, 9), round(high, 9), round(64 / 243, 9)
        (0.263374486, 0.263374486, 0.263374486)
    """
    rare = law.reach(1.0 / (records * max(1.0, odds)))
    last = int(rare) if law.finite else int(min(rare, heads))
    sums, errors = [law.continuous], [_UNDERFLOW]
    for start in range(0, last, CHUNK):
        atoms = law.atoms(start, min(start + CHUNK, last))
        values, off = excess(records, atoms.p, atoms.q, odds, law.error)
        sums.append(float(np.sum(atoms.number * values)))
        errors.append(float(np.sum(atoms.number * off)))
    total, error = math.fsum(sums), math.fsum(errors)
    lower, upper = total - error, total + error
    if not law.finite:
        if rare > last:
            low, high = _blocks(law, records, odds, float(last), rare)
            lower, upper = lower + low, upper + high
        low, high = rare_sum(law, records, odds, rare)
        lower, upper = lower + low, upper + high
    return max(0.0, lower * (1.0 - BINOMIAL_TERM)), probability_at_most(upper, BINOMIAL_TERM)


def worst_cost(law: RecordDistribution, records: int, odds: float, heads: int = HEADS) -> Cost:
    """Return the cost of computing the largest advantage."""
    rare = law.reach(1.0 / (records * max(1.0, odds)))
    atoms = rare if law.finite else min(rare, heads)
    blocks = 0.0 if law.finite or rare <= heads else math.log(rare / heads) / _BLOCK
    # The incomplete beta function is slow for odds other than 1, and slower for more records.
    each = 1e-7 if odds == 1.0 else 7e-7 if records <= MANY else 4e-6
    stored = 60.0 * atoms if law.finite else 0.0
    return Cost(
        seconds=2e-3 + each * (atoms + 2.0 * blocks),
        bytes=1e6 + 300.0 * (min(atoms, CHUNK) + blocks) + stored,
    )


def _blocks(
    law: RecordDistribution, records: int, odds: float, first: float, last: float
) -> tuple[float, float]:
    """Return bounds of the sum over the atoms after `first` up to `last`, along which the risk rises."""
    number = math.ceil(math.log(last / first) / _BLOCK)
    places = np.unique(np.floor(np.geomspace(first, last, number + 1)))
    places[0], places[-1] = first, last
    mass = -np.diff(law.tail(1.0, places))
    slack = 4.0 * law.error * law.tail_sum(1.0, first)
    least, off_least = _risk(law, records, odds, places[:-1] + 1.0)
    most, off_most = _risk(law, records, odds, places[1:])
    lower = float(np.sum(mass * np.maximum(0.0, least - off_least)))
    upper = float(np.sum(mass * (most + off_most)))
    # Summation by parts: a sum of mass times risk moves by at most the error of a tail times the largest
    # risk, which is at most 1.
    return max(0.0, lower - slack), upper + slack


def _risk(law: RecordDistribution, records: int, odds: float, places: Array) -> tuple[Array, Array]:
    """Return the risk of the records of some atoms, and bounds of the errors."""
    p, q = law.at(places)
    values, off = excess(records, p, q, odds, law.error)
    return values / p, off / p


def rare_sum(law: RecordDistribution, records: int, odds: float, after: float) -> tuple[float, float]:
    r"""Return bounds of the sum over the atoms after a place, all with $n p \max(1, \gamma) \le 1$.

    It is $R - g \sum_j (-1)^{j+1} \binom nj \sum_k p_k^{j+1}$ with their mass R and $g = \max(1, \gamma)$.
    The terms alternate in sign and fall, so two successive partial sums enclose it.
    """
    mass = law.tail_sum(1.0, after)
    if mass == 0.0:
        return 0.0, 0.0
    odds = max(1.0, odds)
    total, size, binomial = mass, mass, odds
    before = total
    for j in range(1, _ORDERS):
        binomial *= (records - j + 1.0) / j
        before, term = total, binomial * law.tail_sum(j + 1.0, after)
        total -= term if j % 2 else -term
        size += term
        if term <= 1e-17 * total:
            break
    slack = size * (4.0 * _ORDERS * law.error)
    return max(0.0, min(total, before) - slack), max(total, before) + slack
