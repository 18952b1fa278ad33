"""Search for the largest mu that the linear programme of Theorem 9 refutes."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from privcore.auditing.curve import MOST_MU, curve_tail
from privcore.auditing.problems import AuditGaussianTail
from privcore.auditing.programme import coefficients, profile_at, proved_bound, solve
from privcore.numerics.binomial import Array
from privcore.numerics.rounding import AUDIT_SEARCH

_PRECISION = 1e-4
"""Relative precision of searches, which end at a parameter whose bound was computed."""
_STARTING, _SEARCHED, _ADDED = 16, 120, 6
"""Numbers of values of s: of a grid, of the search for violated constraints, and per round."""
_ROUNDS, _IMPROVED = 3, 0.999
_STEPS = 8
_USED = 1e-12
"""Least multiplier of a value of s that is kept."""
_STALE = 1.2
"""Growth of mu after which a new grid is added to the values of s."""


def largest_mu(at: Callable[[float], AuditGaussianTail], start: float, tau: float) -> float:
    r"""Return the largest mu found whose p-value by the linear programme is at most tau.

    The multipliers of one solved programme bound the p-value of every mu, by a function that grows with mu.
    So the largest mu at which this function is at most tau is refuted, and the programme is solved again
    there. Its values of s are a grid, the best epsilon of the privacy curve, and those that the worst
    distribution of counts violates most.

    Args:
        at: Problem of the p-value of a mu.
        start: Mu that another bound refutes, > 0.
        tau: Significance level.

    Returns:
        Mu, at least `start`, at most 30.
    """
    best = mu = start
    gridded, kept = 0.0, np.empty(0)
    for _ in range(_STEPS):
        problem = at(mu)
        slopes = np.union1d(kept, [curve_tail(problem, mu)[1]])
        if mu > _STALE * gridded:
            gridded, slopes = mu, np.union1d(slopes, mu * np.linspace(-1.0, 7.0, _STARTING))
        if (found := _refined(problem, slopes)) is None:
            break
        mu = _last(partial(_is_refuted, at, tau, *found), mu)
        if mu <= best * (1.0 + _PRECISION):
            break
        best, kept = mu, found[0][found[1].max(axis=1) > _USED]
    return best


def _is_refuted(
    at: Callable[[float], AuditGaussianTail], tau: float, slopes: Array, multipliers: Array, mu: float
) -> bool:
    """Return whether these multipliers prove that the p-value of a mu is at most tau."""
    problem = at(mu)
    bound = proved_bound(problem, slopes, profile_at(problem, slopes), multipliers)
    return bound <= tau * (1.0 - AUDIT_SEARCH)


def _refined(problem: AuditGaussianTail, slopes: Array) -> tuple[Array, Array] | None:
    """Return values of s and multipliers, after adding the values that the worst distribution violates."""
    searched, best = problem.mu * np.linspace(-3.0, 9.0, _SEARCHED), math.inf
    found = None
    for k in range(_ROUNDS):
        profile = profile_at(problem, slopes)
        if (solved := solve(problem, slopes, profile)) is None:
            return found
        bound = proved_bound(problem, slopes, profile, solved.multipliers)
        if bound < best:
            found = slopes, solved.multipliers
        if bound > _IMPROVED * best or k == _ROUNDS - 1:
            return found
        best = bound
        violated = _violations(problem, searched, solved.counts)
        inner = (violated[1:-1] >= violated[:-2]) & (violated[1:-1] >= violated[2:])
        peaks = np.flatnonzero(inner & (violated[1:-1] > 1e-6)) + 1
        worst = peaks[np.argsort(-violated[peaks])][:_ADDED]
        slopes = np.union1d(slopes[solved.multipliers.max(axis=1) > _USED], searched[worst])
        if slopes.size == 0:  # every count has a p-value of 1, for example no correct guess
            return found
    return found


def _violations(problem: AuditGaussianTail, slopes: Array, counts: Array) -> Array:
    """Return by how much a distribution of the count exceeds the limit of Theorem 9, for each value of s."""
    found = []
    for s, limit in zip(slopes.tolist(), profile_at(problem, slopes).tolist(), strict=True):
        plus, minus = coefficients(problem, s)
        excess = np.maximum(0.0, plus * counts[1:] - minus * counts[:-1]).sum()
        found.append(float(excess) - problem.canaries * limit)
    return np.array(found)


def _last(holds: Callable[[float], bool], near: float) -> float:
    """Return the largest parameter at which an interval of parameters from 0 ends, or 0 if it is empty."""
    low, high = (near, min(MOST_MU, 1.1 * near + 0.01)) if holds(near) else (0.0, near)
    while high < MOST_MU and holds(high):
        low, high = high, min(MOST_MU, 2.0 * high)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
        if high - low <= 1e-9 * high:
            break
    return low
