"""Classifiers of features on a sphere: almost orthogonal features are fitted without error."""

import math

from privcore.membership.learner.problems import MembershipSphereSecurity
from privcore.method import Direction
from privcore.numerics.rounding import CLOSED_FORM
from privcore.papers import AUBINAIS
from privcore.published import published


def most_records(dimension: int) -> int:
    r"""Return the largest number of records of Proposition 19, $(s + 1) / (3 (\sqrt s \ln s + 1))$.

    Example:
        >>> most_records(162_755), most_records(10**6)
        (11, 24)
    """
    return int((dimension + 1.0) / (3.0 * (math.sqrt(dimension) * math.log(dimension) + 1.0)))


def _too_many(problem: MembershipSphereSecurity) -> str | None:
    most = most_records(problem.sphere_dimension)
    return None if problem.records <= most else f"The proposition needs at most {most} records here."


def _not_orthogonal(problem: MembershipSphereSecurity) -> float:
    r"""Return a bound of the probability that two of n features are not almost orthogonal.

    Almost orthogonal means $|x_i \cdot x_j| \le (s + 1) / (3 n) - 1 = s t$. A cap of a sphere at height t
    has at most the probability $(1 - t^2)^{(s - 1) / 2} / 2$, as $I_x(a, 1/2) \le I_x(a, 1) = x^a$, and a
    pair has two caps.
    """
    s, n = problem.sphere_dimension, problem.records
    t = max(0, s + 1 - 3 * n) / (3.0 * n * s) * (1.0 - CLOSED_FORM)
    log = 0.5 * (s - 1.0) * math.log1p(-t * t) * (1.0 - CLOSED_FORM)
    return 0.5 * n * (n - 1.0) * math.exp(log)


MembershipSphere = published(
    "membership.sphere",
    MembershipSphereSecurity,
    Direction.UPPER,
    r"""$\max\{1, 1 / \gamma\} \, s^{3 - \ln(s) / 4}$ bounds the chance that features are far from orthogonal.

    It is below 1 from 162,755 features on, with at most 11 records.
    """,
    lambda p: (
        max(1.0, 1.0 / p.odds)
        * math.exp(math.log(p.sphere_dimension) * (3.0 - 0.25 * math.log(p.sphere_dimension)))
    ),
    reference=f"{AUBINAIS}, Proposition 19",
    unless=_too_many,
    slack=CLOSED_FORM,
)
MembershipCaps = published(
    "membership.caps",
    MembershipSphereSecurity,
    Direction.UPPER,
    """The same with the exact order of the probability of a spherical cap, for each pair of records.

    It is far smaller than the published bound, and needs neither its number of records nor its dimension.
    """,
    lambda p: max(1.0, 1.0 / p.odds) * _not_orthogonal(p),
    reference=f"{AUBINAIS}, Proposition 19; the bound of a cap is ours",
    slack=CLOSED_FORM,
    offset=1e-300,  # of an exponential that underflows
)
