r"""The likelihood ratio of sampled steps, given that some step uses the example.

If no step uses it with probability $a$, the ratio $S$ of all steps is at least $a$, and the ratio given
participation is $W = (S - a) / (1 - a) \ge 0$.
"""

import math
from dataclasses import replace

import numpy as np

from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioBracket, RatioDistribution
from privcore.numerics.rounding import SUMMED, UNIT


def given_participation(sampled: RatioBracket, log_absence: float) -> RatioBracket:
    r"""Return a dominating distribution of $W = (S - a) / (1 - a)$, and an estimate of its limit.

    A dominating distribution of S may have values below a. Its least values, together with as many more as
    bring their mean to a, are then spread to a and to the largest of them, which keeps the mean. The result
    still dominates S: between these two points, $E(c - S)_+$ is convex in c and 0 at c = a, so it is below
    its chord, which is the same expectation of the result.

    Args:
        sampled: Bracket of S.
        log_absence: Logarithm of a, in [-inf, 0); its relative error is at most 4 u.

    Returns:
        The upper distribution dominates W, rounding included. The lower one is that of S, mapped; it shows
        when a finer resolution would not help.

    Raises:
        LikelihoodRangeError: The values are too close to a for their errors.

    Source:
        Feldman and Shenfeld (2025), arXiv:2502.08202v3, Theorem 4.6.
    """
    absence, presence = math.exp(log_absence), -math.expm1(log_absence)
    lower, upper = sampled.lower, sampled.upper
    return RatioBracket(
        lower=replace(
            lower,
            x=np.maximum(0.0, (lower.x - absence) / presence),
            infinite=lower.infinite / presence,
            drift_remove=lower.drift_remove / presence,
        ),
        upper=_dominating(upper, log_absence),
    )


def _dominating(law: RatioDistribution, log_absence: float) -> RatioDistribution:
    """Return a dominating distribution of W from one of S, with masses rounded up.

    An error of E(1 - kappa S)_+ is that of an atom at S = 0, which is spread with the least values. An error
    of the values of S is larger relative to the distance from a, and largest for the smallest of them.
    """
    absence, presence = math.exp(log_absence), -math.expm1(log_absence)
    relative = math.expm1(min(law.value_error, 100.0))
    terms = law.p * (law.x - absence)
    sizes = np.cumsum(law.p * (law.x + absence)) * (2.0 * law.mass_error + relative + SUMMED)
    apart = law.x - absence >= 0.5 * np.diff(law.x, prepend=0.0)
    enough = np.flatnonzero((np.cumsum(terms) >= sizes) & apart & (law.x > absence))
    if enough.size == 0:
        raise LikelihoodRangeError
    last = int(enough[0])
    end, least = float(law.x[last]), law.x[:last]
    width = end - absence
    error = (relative * end + 4.0 * UNIT * (1.0 - max(log_absence, -1e3)) * absence) / width + 8.0 * UNIT
    nearest = 2.0 * relative * end / (end - float(least[-1])) if last else 0.0
    if error > 0.01 or nearest > 0.01:
        raise LikelihoodRangeError
    outward = 1.0 + 2.0 * error + SUMMED
    at_absence = (
        (float(law.p[:last] @ (end - least)) * (1.0 + nearest) + end * law.drift_add) / width * outward
    )
    at_end = (float(terms[: last + 1].sum()) + float(sizes[last])) / width * outward
    return replace(
        law,
        x=np.append([0.0, width / presence], (law.x[last + 1 :] - absence) / presence),
        p=np.append([at_absence, at_end], law.p[last + 1 :]),
        infinite=law.infinite / presence * (1.0 + SUMMED),
        value_error=error * (1.0 + error),
        drift_remove=law.drift_remove / presence * (1.0 + SUMMED),
        drift_add=0.0,
    )
