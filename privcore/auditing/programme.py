"""Theorem 9 as a linear programme over all events of counts at once, for audits of up to 500 guesses."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, get_args

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.auditing import params as audit_params
from privcore.auditing.exact import MOST_MU, curve_tail
from privcore.auditing.problems import AuditTail, Counts, CountTail, unlikely_at_most
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.profile import delta_upper
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import Array
from privcore.numerics.gaussian import gaussian_delta_bounds
from privcore.numerics.rounding import AUDIT_SEARCH, PROGRAMME, PROGRAMME_OFFSET
from privcore.numerics.sums import dot
from privcore.papers import MAHLOUJIFAR

MOST_GUESSES = 500
"""Largest number of guesses of a linear programme."""


class AuditingProgramme(Method[CountTail]):
    r"""Maximise the probability of the count over all distributions p that Theorem 9 allows.

    Here p is the distribution of the number of correct guesses. The inequalities of the theorem for all sets
    of counts are $\sum_i (i p_i - e^s (c' - i + 1) p_{i-1} / (k - 1))_+ \le m \delta(s)$ for all real s,
    where $\delta(s)$ is the privacy profile. A finite choice of s gives a valid bound, which is computed from
    the dual solution: non-negative multipliers prove it, even if the solver is inaccurate.
    """

    name = "auditing.programme"
    problems = get_args(CountTail)
    direction = Direction.UPPER
    reference = f"{MAHLOUJIFAR}, Theorem 9; the programme is ours"

    profile_points: Annotated[int, audit_params.PROFILE_POINTS] = 40

    def applies(self, problem: CountTail) -> str | None:
        return too_many_guesses(problem)

    def cost(self, problem: CountTail) -> Cost:
        size = float(min(problem.guesses, MOST_GUESSES) * self.profile_points)
        return Cost(seconds=0.1 + 2e-5 * size + 1e-8 * size**2, bytes=3e7 + 1500.0 * size)

    def answer(self, problem: CountTail, seed: int) -> Answer:
        slopes, profile = _profile(problem, self.profile_points)
        solved = solve(problem, slopes, profile)
        if solved is None:
            return unlikely_at_most(problem, 1.0, "the solver found no solution of the linear programme")
        bound = proved_bound(problem, slopes, profile, solved.multipliers)
        return unlikely_at_most(problem, bound, f"{slopes.size} points of the privacy profile")


def too_many_guesses(problem: Counts) -> str | None:
    """Return the reason why the linear programme does not apply to an audit, or None."""
    if problem.guesses > MOST_GUESSES:
        return f"The linear programme is for audits of at most {MOST_GUESSES} guesses."
    return None if problem.guesses > 0 else "The audit needs at least one guess."


def _profile(problem: CountTail, points: int) -> tuple[Array, Array]:
    """Return values of s, and of the privacy profile there, rounded up."""
    if isinstance(problem, AuditTail):
        # The profile of (epsilon, delta)-DP is decided by its values at epsilon and -epsilon.
        s = np.array(sorted({-problem.claimed_epsilon, problem.claimed_epsilon}))
        delta = problem.delta
        values = [max(delta, 1.0 - math.exp(x) * (1.0 - delta)) if x <= 0.0 else delta for x in s.tolist()]
        return s, np.array(values) * (1.0 + 1e-12)
    mu = max(problem.mu, 1e-12)
    s = slopes_about(mu, points)
    return s, gaussian_profile(mu, s)


def slopes_about(mu: float, points: int) -> Array:
    """Return values of s at which a privacy profile that is about that of mu-GDP is taken."""
    return np.linspace(-3.0 * mu - 1.0, 6.0 * mu + mu * mu / 2.0 + 1.0, points)


def gaussian_profile(mu: float, slopes: Array) -> Array:
    """Return the privacy profile of mu-GDP at these values of s, rounded up."""
    return np.array([gaussian_delta_bounds(1.0 / mu, x)[1] for x in slopes.tolist()])


def profile_of(dominating: RatioDistribution, slopes: Array) -> Array:
    r"""Return the largest privacy profile of all pairs that a distribution dominates, rounded up.

    $\delta(-s) = 1 - e^{-s} + e^{-s} \delta(s)$, where $\delta(s)$ is for the pair in the other order.

    Args:
        dominating: Distribution of a likelihood ratio.
        slopes: Values of s, of any sign, shape (n,).
    """
    above = np.array([delta_upper(dominating, s, "add-remove") for s in np.abs(slopes).tolist()])
    negative = np.minimum(slopes, 0.0)
    deltas: Array = np.minimum(1.0, (np.exp(negative) * above - np.expm1(negative)) * (1.0 + 1e-12))
    return deltas


def coefficients(problem: Counts, s: float) -> tuple[Array, Array]:
    """Return the coefficients of p_i and p_(i - 1) in the expressions for i = 1, ..., c'."""
    i = np.arange(1.0, problem.guesses + 1.0)
    return i, math.exp(s) * (problem.guesses - i + 1.0) / (problem.alternatives - 1.0)


@dataclass(frozen=True, kw_only=True)
class Solved:
    """Solution of a linear programme.

    Attributes:
        multipliers: Dual solution: multipliers of the expressions, non-negative, shape (points, c').
        counts: Primal solution: probabilities of the numbers of correct guesses, shape (c' + 1,).
    """

    multipliers: Array
    counts: Array


def solve(problem: Counts, slopes: Array, profile: Array) -> Solved | None:
    """Return the solution of the programme for these values of s, or None if the solver fails."""
    n, points = problem.guesses, slopes.size
    # Variables: p_0, ..., p_n, then the positive parts for each point of the profile.
    rows, columns, entries = [], [], []
    for j, s in enumerate(slopes.tolist()):
        plus, minus = coefficients(problem, s)
        at = j * n + np.arange(n)
        rows += [at, at, at]
        columns += [np.arange(1, n + 1), np.arange(n), n + 1 + at]
        entries += [plus, -minus, -np.ones(n)]
        rows.append(np.full(n, points * n + j))
        columns.append(n + 1 + at)
        entries.append(np.ones(n))
    matrix = scipy.sparse.coo_matrix(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))),
        shape=(points * n + points, n + 1 + points * n),
    ).tocsr()
    goal = np.zeros(n + 1 + points * n)
    goal[problem.correct : n + 1] = -1.0
    simplex = np.zeros((1, goal.size))
    simplex[0, : n + 1] = 1.0
    limits = np.concatenate([np.zeros(points * n), problem.canaries * profile])
    solved = scipy.optimize.linprog(goal, A_ub=matrix, b_ub=limits, A_eq=simplex, b_eq=[1.0], method="highs")
    if solved.status != 0:
        return None
    found = np.maximum(0.0, -np.asarray(solved.ineqlin.marginals[: points * n]))
    return Solved(multipliers=np.asarray(found.reshape(points, n)), counts=np.asarray(solved.x[: n + 1]))


def proved_bound(problem: Counts, slopes: Array, profile: Array, multipliers: Array) -> float:
    r"""Return the bound that non-negative multipliers prove.

    With $0 \le w_{s,i} \le \lambda_s = \max_i w_{s,i}$, $\lambda_s \sum_i (x_i)_+ \ge \sum_i w_{s,i} x_i$, so
    the probability is at most $\max_i (1\{i \ge c\} - a_i) + \sum_s \lambda_s m \delta(s)$, where $a_i$ is
    the coefficient of $p_i$ in $\sum_{s, i} w_{s,i} x_i$.

    Args:
        problem: The counts.
        slopes: Values of s, shape (points,).
        profile: Privacy profile at them, shape (points,).
        multipliers: w, non-negative, shape (points, c').
    """
    total = np.zeros(problem.guesses + 1)
    total[problem.correct :] = 1.0
    for s, weights in zip(slopes.tolist(), multipliers, strict=True):
        plus, minus = coefficients(problem, s)
        total[1:] -= weights * plus
        total[:-1] += weights * minus
    paid = float(problem.canaries * dot(profile, multipliers.max(axis=1)))
    return (float(total.max()) + paid) * (1.0 + PROGRAMME) + PROGRAMME_OFFSET


Profile = Callable[[float, Array], Array]
"""Privacy profile of the member with a mu at values of s, rounded up; it grows with mu."""

_IMPROVEMENT = 1e-4
"""Relative growth of mu below which a search ends, at a mu whose bound was computed."""
_STARTING, _SEARCHED, _ADDED = 16, 120, 6
"""Numbers of values of s: of a grid, of the search for violated constraints, and per round."""
_ROUNDS, _IMPROVED = 3, 0.999
_STEPS = 8
_USED = 1e-12
"""Least multiplier of a value of s that is kept."""
_STALE = 1.2
"""Growth of mu after which a new grid is added to the values of s."""


def largest_mu(counts: Counts, profile: Profile, start: float, tau: float, precision: float = 1e-9) -> float:
    r"""Return the largest mu found whose p-value by the linear programme is at most tau.

    The multipliers of one solved programme bound the p-value of every mu, by a function that grows with mu.
    So the largest mu at which this function is at most tau is refuted, and the programme is solved again
    there. Its values of s are a grid, the best epsilon of the privacy curve of a Gaussian mechanism, and
    those that the worst distribution of counts violates most.

    Args:
        counts: Canaries, guesses, correct guesses and alternatives.
        profile: Privacy profiles of the family, whose members are about mu-GDP.
        start: Mu that another bound refutes, > 0.
        tau: Significance level.
        precision: Relative precision of the mu at which a bound reaches tau.

    Returns:
        Mu, at least `start`, at most 30.
    """
    best = mu = start
    gridded, kept = 0.0, np.empty(0)
    for _ in range(_STEPS):
        slopes = np.union1d(kept, [curve_tail(counts, mu)[1]])
        if mu > _STALE * gridded:
            gridded, slopes = mu, np.union1d(slopes, mu * np.linspace(-1.0, 7.0, _STARTING))
        if (found := _refined(counts, profile, mu, slopes)) is None:
            break
        mu = _last(partial(_is_refuted, counts, profile, tau, *found), mu, precision)
        if mu <= best * (1.0 + _IMPROVEMENT):
            break
        best, kept = mu, found[0][found[1].max(axis=1) > _USED]
    return best


def _is_refuted(
    counts: Counts, profile: Profile, tau: float, slopes: Array, multipliers: Array, mu: float
) -> bool:
    """Return whether these multipliers prove that the p-value of a mu is at most tau."""
    bound = proved_bound(counts, slopes, profile(mu, slopes), multipliers)
    return bound <= tau * (1.0 - AUDIT_SEARCH)


def _refined(counts: Counts, profile: Profile, mu: float, slopes: Array) -> tuple[Array, Array] | None:
    """Return values of s and multipliers, after adding the values that the worst distribution violates."""
    searched, best = mu * np.linspace(-3.0, 9.0, _SEARCHED), math.inf
    limits = counts.canaries * profile(mu, searched)
    found = None
    for k in range(_ROUNDS):
        deltas = profile(mu, slopes)
        if (solved := solve(counts, slopes, deltas)) is None:
            return found
        bound = proved_bound(counts, slopes, deltas, solved.multipliers)
        if bound < best:
            found = slopes, solved.multipliers
        if bound > _IMPROVED * best or k == _ROUNDS - 1:
            return found
        best = bound
        violated = _expressions(counts, searched, solved.counts) - limits
        inner = (violated[1:-1] >= violated[:-2]) & (violated[1:-1] >= violated[2:])
        peaks = np.flatnonzero(inner & (violated[1:-1] > 1e-6)) + 1
        worst = peaks[np.argsort(-violated[peaks])][:_ADDED]
        slopes = np.union1d(slopes[solved.multipliers.max(axis=1) > _USED], searched[worst])
        if slopes.size == 0:  # every count has a p-value of 1, for example no correct guess
            return found
    return found


def _expressions(counts: Counts, slopes: Array, distribution: Array) -> Array:
    """Return the left sides of the inequalities of Theorem 9 for a distribution of the count, for each s."""
    found = []
    for s in slopes.tolist():
        plus, minus = coefficients(counts, s)
        found.append(float(np.maximum(0.0, plus * distribution[1:] - minus * distribution[:-1]).sum()))
    return np.array(found)


def _last(holds: Callable[[float], bool], near: float, precision: float) -> float:
    """Return the largest parameter at which an interval of parameters from 0 ends, or 0 if it is empty."""
    low, high = (near, min(MOST_MU, 1.1 * near + 0.01)) if holds(near) else (0.0, near)
    while high < MOST_MU and holds(high):
        low, high = high, min(MOST_MU, 2.0 * high)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
        if high - low <= precision * high:
            break
    return low
