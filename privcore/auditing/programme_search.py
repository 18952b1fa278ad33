"""Searches for the largest epsilon and mu that the linear programme of Theorem 9 refutes."""

import math
from collections.abc import Callable

import numpy as np

from privcore.auditing.problems import MOST, AuditGaussianTail, AuditTail, CountTail
from privcore.auditing.programme import coefficients, profile_at, proved_bound, solve
from privcore.numerics.binomial import Array
from privcore.numerics.rounding import AUDIT_SEARCH

_PRECISION = 1e-5
"""Relative precision of searches, which end at a parameter whose bound was computed."""
_MOST_SOLVED = 14
MOST_MU = 30.0
_STARTING, _SEARCHED, _ADDED = 10, 240, 4
"""Numbers of values of s: of the first programme, of the search for violated constraints, and per round."""
_ROUNDS, _IMPROVED = 3, 0.99
_STEPS = 4


def largest_epsilon(at: Callable[[float], AuditTail], start: float, tau: float) -> float:
    """Return the largest epsilon found whose p-value by the linear programme is at most tau.

    Args:
        at: Problem of the p-value of an epsilon.
        start: Epsilon that another bound refutes, or 0.
        tau: Significance level.

    Returns:
        Epsilon in nats, at least `start`; the programme was solved at this epsilon.
    """
    allowed = tau * (1.0 - AUDIT_SEARCH)

    def excess(epsilon: float) -> float:
        return math.log(max(programmed_tail(at(epsilon)), 1e-300) / allowed)

    low, below = start, excess(start)
    if below > 0.0:
        return start
    high = min(MOST, 1.03 * low + 0.02)
    above = excess(high)
    for _ in range(_MOST_SOLVED):
        if above <= 0.0:
            if high >= MOST:
                return MOST
            low, below, high = high, above, min(MOST, high + 2.0 * (high - low))
            above = excess(high)
        elif high - low <= _PRECISION * high:
            break
        else:
            # The logarithm of the bound is nearly linear; a margin on both sides makes brackets shrink.
            middle = low + min(0.95, max(0.05, below / (below - above))) * (high - low)
            value = excess(middle)
            low, below = (middle, value) if value <= 0.0 else (low, below)
            high, above = (high, above) if value <= 0.0 else (middle, value)
    return low


def largest_mu(at: Callable[[float], AuditGaussianTail], start: float, tau: float) -> float:
    r"""Return the largest mu found whose p-value by the linear programme is at most tau.

    The multipliers of one solved programme bound the p-value of every mu, by a function that grows with mu.
    So the largest mu at which this function is at most tau is refuted, and the programme is solved again
    there. Its values of s are those that the worst distribution of counts violates most.

    Args:
        at: Problem of the p-value of a mu.
        start: Mu that another bound refutes, or 0.
        tau: Significance level.

    Returns:
        Mu, at least `start`, at most 30.
    """
    best, mu = start, max(start, 1e-3)
    slopes = max(mu, 1e-2) * np.linspace(-1.0, 7.0, _STARTING)
    for step in range(_STEPS):
        solved = _refined(at(mu), slopes, _ROUNDS if step == 0 else 1)
        if solved is None:
            break
        slopes, multipliers = solved

        def bound(x: float, slopes: Array = slopes, multipliers: Array = multipliers) -> float:
            problem = at(x)
            return proved_bound(problem, slopes, profile_at(problem, slopes), multipliers)

        mu = _last(lambda x: bound(x) <= tau * (1.0 - AUDIT_SEARCH), mu)
        if mu <= best * (1.0 + _PRECISION):
            break
        best = mu
    return best


def programmed_tail(problem: CountTail) -> float:
    """Return the bound of the p-value by the linear programme; for a mu, with values of s chosen for it."""
    if isinstance(problem, AuditTail):
        slopes = np.array(sorted({-problem.claimed_epsilon, problem.claimed_epsilon}))
        profile = profile_at(problem, slopes)
        solved = solve(problem, slopes, profile)
        return 1.0 if solved is None else proved_bound(problem, slopes, profile, solved.multipliers)
    slopes = max(problem.mu, 1e-2) * np.linspace(-1.0, 7.0, _STARTING)
    if (found := _refined(problem, slopes, _ROUNDS)) is None:
        return 1.0
    slopes, multipliers = found
    return proved_bound(problem, slopes, profile_at(problem, slopes), multipliers)


def _refined(problem: AuditGaussianTail, slopes: Array, rounds: int) -> tuple[Array, Array] | None:
    """Return values of s and multipliers, after adding the values that the worst distribution violates."""
    searched, best = max(problem.mu, 1e-2) * np.linspace(-3.0, 9.0, _SEARCHED), math.inf
    found = None
    for k in range(rounds):
        profile = profile_at(problem, slopes)
        if (solved := solve(problem, slopes, profile)) is None:
            return found
        bound = proved_bound(problem, slopes, profile, solved.multipliers)
        if bound < best:
            found = slopes, solved.multipliers
        if bound > _IMPROVED * best or k == rounds - 1:
            return found
        best = bound
        violated = _violations(problem, searched, solved.counts)
        inner = (violated[1:-1] >= violated[:-2]) & (violated[1:-1] >= violated[2:])
        peaks = np.flatnonzero(inner & (violated[1:-1] > 1e-6)) + 1
        worst = peaks[np.argsort(-violated[peaks])][:_ADDED]
        slopes = np.union1d(slopes[solved.multipliers.max(axis=1) > 1e-12], searched[worst])
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
