"""Search for the least private member of a family that the linear programme of Theorem 9 refutes."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from privcore.auditing.curve import MOST_MU, curve_tail
from privcore.auditing.problems import Counts
from privcore.auditing.programme import coefficients, proved_bound, solve
from privcore.numerics.binomial import Array
from privcore.numerics.rounding import AUDIT_SEARCH

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
