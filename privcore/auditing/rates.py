"""Rates of an attack from the scores of canaries that are in and out: TPR at FPR, AUROC, held-out threshold.

All intervals hold with their confidence for every pair of distributions of the scores, if the scores are
independent: from separate runs, or from canaries that do not influence one another.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.numerics.clopper_pearson import rate_at_least, rate_at_most
from privcore.numerics.rounding import ERROR_RATES

Array = NDArray[np.float64]

_STEPS = 60


def true_positive_rate(
    inside: Array, outside: Array, false_positive_rate: float, confidence: float
) -> tuple[float, float]:
    """Return a confidence interval of the largest true positive rate at a false positive rate.

    Order statistics of the scores that are out give a threshold whose false positive rate is surely small
    enough, and a rate that is surely too large. Given the scores that are out, the number of
    scores that are in beyond a threshold is binomial.

    Args:
        inside: Scores of included canaries, higher for canaries more likely to be in.
        outside: Scores of canaries that are not included.
        false_positive_rate: Largest allowed false positive rate, in (0, 1).
        confidence: Probability that the interval has the rate, in (0, 1).

    Returns:
        Ends, rounded outward. Each of four bounds has a quarter of the error.

    Reference:
        David and Nagaraja (2003), Order Statistics, Section 7.1; Clopper and Pearson (1934), Biometrika 26.

    Example:
        >>> scores = np.arange(1000.0)
        >>> lower, upper = true_positive_rate(scores + 500.0, scores, 0.1, 0.95)
        >>> 0.5 < lower < 0.6 < upper < 0.7
        True
    """
    error = 0.25 * (1.0 - confidence) * (1.0 - ERROR_RATES)
    n, ranked = outside.size, np.sort(outside)[::-1]
    surely, at_most = _ranks(n, false_positive_rate, error)
    lower, upper = 0.0, 1.0
    if surely > 0:  # "in" for scores above the threshold
        lower = rate_at_least(inside.size, int((inside > ranked[surely - 1]).sum()), error)
    if at_most <= n:  # no rule with a rate that is small enough says "in" below the threshold
        upper = rate_at_most(inside.size, int((inside >= ranked[at_most - 1]).sum()), error)
    return lower, upper


def _ranks(n: int, rate: float, error: float) -> tuple[int, int]:
    """Return ranks of scores that are out, from the highest: of a small enough rate, and of a too large one.

    The share of a distribution beyond its k-th highest of n draws is below the rate with probability
    P(Bin(n, rate) >= k), and above it with probability P(Bin(n, rate) < k); ties make the first share of
    strictly higher scores smaller, and the second share, of scores at least as high, larger. A rank of 0, or
    of n + 1, means that no score qualifies.
    """
    k = np.arange(1, n + 1)
    below = scipy.special.bdtr(k - 1.0, n, rate) * (1.0 + ERROR_RATES)  # P(Bin < k)
    above = scipy.special.bdtrc(k - 1.0, n, rate) * (1.0 + ERROR_RATES)  # P(Bin >= k)
    return int(np.sum(below <= error)), int(np.sum(above > error)) + 1


def area_under_curve(inside: Array, outside: Array) -> float:
    """Return the share of pairs whose score that is in is higher, with half of the ties.

    Example:
        >>> area_under_curve(np.array([1.0, 3.0]), np.array([0.0, 1.0]))
        0.875
    """
    ranked = np.sort(outside)
    below = np.searchsorted(ranked, inside, side="left").astype(float)
    at_most = np.searchsorted(ranked, inside, side="right")
    return float(np.sum(0.5 * (below + at_most))) / (inside.size * outside.size)


def area_interval(area: float, pairs: int, confidence: float) -> tuple[float, float]:
    r"""Return a confidence interval of the area under the ROC curve.

    The share over all pairs is a mean of shares over min(m, n) independent pairs, so its moment generating
    function is at most that of a binomial mean, and with the Kullback-Leibler divergence of coins
    $$\Pr[\hat A \ge x] \le e^{-n\,\mathrm{kl}(x, A)} \text{ for } x > A.$$

    Args:
        area: The share over all pairs.
        pairs: Smaller number of the scores that are in and out.
        confidence: Probability that the interval has the area, in (0, 1).

    Returns:
        Ends, rounded outward.

    Reference:
        Hoeffding (1963), Probability inequalities for sums of bounded random variables, Section 5.

    Example:
        >>> [round(end, 4) for end in area_interval(0.75, 1000, 0.95)]
        [0.7116, 0.7859]
    """
    most = math.log(2.0 / (1.0 - confidence)) / pairs * (1.0 + ERROR_RATES) + ERROR_RATES / pairs
    ends = []
    for end in (0.0, 1.0):
        close, far = area, end
        for _ in range(_STEPS):  # `far` stays rejected
            middle = 0.5 * (close + far)
            close, far = (middle, far) if _divergence(area, middle) <= most else (close, middle)
        ends.append(far)
    return max(0.0, ends[0] - ERROR_RATES), min(1.0, ends[1] + ERROR_RATES)


def _divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of two coins; infinite if q excludes an outcome of p."""
    return float(scipy.special.rel_entr(p, q) + scipy.special.rel_entr(1.0 - p, 1.0 - q))


def first_half(size: int) -> NDArray[np.bool_]:
    """Return a random half of the canaries, from their number alone.

    The split does not depend on the scores, so a threshold that is chosen on one half is independent of the
    scores of the other half, in any order of the canaries.

    Example:
        >>> int(first_half(6).sum())
        3
    """
    return np.random.default_rng(size).permutation(size) < size // 2


def best_threshold(inside: Array, outside: Array) -> float:
    """Return a threshold, among the scores, at which log(TPR / FPR) is largest with a smoothed FPR.

    Scores above the threshold are "in". Any choice is valid for other scores; this one aims at a large
    refuted epsilon.

    Example:
        >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([-1.0, 0.0, 1.0, 0.5]))
        1.0
    """
    candidates = np.unique(np.concatenate([inside, outside]))
    above = [
        values.size - np.searchsorted(np.sort(values), candidates, side="right")
        for values in (inside, outside)
    ]
    found, wrong = above[0] / inside.size, above[1] / outside.size
    # one standard deviation towards the safe side, since rare events have few counts
    least = found - np.sqrt(found * (1.0 - found) / inside.size)
    most = wrong + np.sqrt((wrong * (1.0 - wrong) + 1.0 / outside.size) / outside.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.log(np.maximum(least, 0.0) / most)
    return float(candidates[int(np.argmax(np.where(np.isnan(gain), -np.inf, gain)))])
