"""Confidence interval of a quantile of the multiplicative advantage, from random bags."""

import math
from collections.abc import Callable

import numpy as np

from privcore.labels.poisson_binomial import Array
from privcore.labels.problems import LabelRatioQuantile
from privcore.labels.ratio import RatioLaw, ratio_quantile, row_tail_end, row_tails
from privcore.labels.rows import discrete
from privcore.numerics.betting import log_wealth, width_note
from privcore.numerics.rounding import BETTED_WEALTH

SEARCHED = 2**17
"""Largest number of outputs in which the quantile is found with Laplace noise, where a search is slow."""

_SORTED = 2**21  # outputs that are sorted, without Laplace noise
_SHARE = 20  # 5 % of the bags choose the stakes
_APART = 1e-9
"""Distance of a threshold from a ratio, relative and absolute, far above the rounding of the ratio."""
_ALL = 1e4
"""Threshold that infinite ratios alone exceed, since finite ones are below 1000."""
_MOST_TESTS, _EXCESS = 24, 0.1
"""Most tests of one end, and the excess of wealth at which they stop, as a share of the needed wealth."""
_GROWTH, _INNER = 8.0, 0.05
"""Growth of steps, and share of an interval from its ends within which a secant is not trusted."""


def sampled_quantile(
    problem: LabelRatioQuantile, others: Array, rates: Array, confidence: float
) -> tuple[float, float, float, str]:
    r"""Return the ends of a confidence interval of the quantile, and the quantile in the bags between them.

    Let T be the probability, given a bag, that the ratio exceeds a threshold x, and a = 1 - level. If the
    quantile is at most x, the mean of T is at most a, and $\prod_i (1 + \lambda (T_i - a))$ has a mean of at
    most 1, so it exceeds 2 / (1 - confidence) with probability at most (1 - confidence) / 2. It falls as x
    grows, so this bounds the probability that it does so for any x above the quantile, and the lower end is
    the largest x that a search finds at which it does. The upper end mirrors it. The stake $\lambda$ follows
    the variance in one twentieth of the bags, and the others are tested.

    Args:
        problem: The mechanism, the prior, and the level.
        others: Distributions of the sum of the other labels in independent bags, shape (bags, bag_size).
        rates: Means of eta of the attacked examples, shape (bags,).
        confidence: Probability in (0, 1) that the interval has the quantile.

    Returns:
        Lower end, value and upper end, in nats, with the ends rounded outwards; and a note if the probability
        between the ends is more than three times that of a normal interval.

    Reference:
        Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86, Theorem 3, with one
        stake; the inversion is ours.
    """
    mechanism, epsilon, slack = problem.mechanism, problem.label_epsilon, problem.attacked.moment_error
    level, allowed = problem.level, math.nextafter(1.0 - problem.level, 1.0)
    needed = -math.log(0.5 * (1.0 - confidence)) * (1.0 + BETTED_WEALTH) + BETTED_WEALTH
    shown = 0 if discrete(mechanism) else 1

    def law_of(rows: Array) -> RatioLaw:
        rows = rows[: max(1, (SEARCHED if shown else _SORTED) // rows.shape[1])]
        equal = np.full(len(rows), 1.0 / len(rows))
        return RatioLaw.of(mechanism, epsilon, slack, [(equal, rows, rates[: len(rows)])])

    def quantile(law: RatioLaw, of: float, end: int = shown) -> float:
        return ratio_quantile(law, max(1e-9, of), 1e-5)[end] if of < 1.0 else epsilon

    # The stakes depend on the first bags alone; the thresholds may depend on all.
    first, tested = np.split(others, [max(1, others.shape[0] // _SHARE)])
    of_first, of_tested = np.split(rates, [len(first)])
    known = law_of(first)

    def variance(x: float) -> float:
        tails = row_tails(first, mechanism, epsilon, of_first, x)
        return (float(np.square(tails - tails.mean()).sum()) + 0.25 / (len(first) + 1.0)) / (len(first) + 1.0)

    def margin(chosen: float) -> float:
        return math.sqrt(2.0 * needed * chosen / len(tested))

    # On either side of an atom the variances differ, and near its boundary the next atom counts.
    down, up = variance(_below(quantile(known, level))), variance(_beyond(quantile(known, level)))
    down = max(down, variance(_below(quantile(known, level - margin(down), 0))))
    up = max(up, variance(_beyond(quantile(known, level + margin(up), 1))))

    def above(x: float) -> float:
        tails = row_tail_end(tested, mechanism, epsilon, of_tested, slack, x, upper=False)
        return log_wealth(tails, margin(down) / down, allowed) - needed

    def below(x: float) -> float:
        tails = row_tail_end(tested, mechanism, epsilon, of_tested, slack, x, upper=True)
        return log_wealth(1.0 - tails, margin(up) / up, level) - needed

    law = law_of(others)
    value = quantile(law, level)
    start, stop = quantile(law, level - margin(down), 0), quantile(law, level + margin(up), 1)
    low = _search(above, _below(start), _below(value), 0.0, _EXCESS * needed)
    high = epsilon
    if stop < epsilon:
        high = -_search(lambda x: below(-x), -_beyond(stop), -_beyond(value), -epsilon, _EXCESS * needed)
    low, high = math.inf if low >= _ALL else low, min(epsilon, high)
    low = min(low, high)
    value = min(max(value, low), high)
    return low, value, high, _note(problem, others, rates, (low, value, high), confidence)


def _note(
    problem: LabelRatioQuantile,
    others: Array,
    rates: Array,
    found: tuple[float, float, float],
    confidence: float,
) -> str:
    """Return the note about the probability between the ends, apart from an atom at the value."""
    low, value, high = found
    fixed = problem.mechanism, problem.label_epsilon, rates
    tails = [
        row_tails(others, *fixed, x) for x in (_beyond(low), _below(value), _beyond(value), _below(high))
    ]
    lower, from_value, beyond_value, upper = (float(each.mean()) for each in tails)
    apart = max(0.0, lower - from_value) + max(0.0, beyond_value - upper)
    error = max(float(each.std()) for each in tails[1:3]) / math.sqrt(len(others))
    return width_note(apart, error, confidence)


def _search(excess: Callable[[float], float], start: float, value: float, sure: float, slack: float) -> float:
    """Return the largest threshold found at which a decreasing function is at least 0.

    Args:
        excess: Wealth beyond the needed one, as a logarithm.
        start: Threshold at which it is about 0.
        value: Threshold at which it is negative; then thresholds at growing distances follow.
        sure: Threshold that needs no test.
        slack: Excess at which the search ends.
    """
    passed, failed = (sure, math.inf), (math.inf, -math.inf)
    x, step = start, abs(value - start)
    for _ in range(_MOST_TESTS):
        if (found := excess(x)) >= 0.0:
            passed = x, found
        else:
            failed = x, found
        least = 4.0 * _APART * (1.0 + abs(x))
        if 0.0 <= found <= slack or x >= _ALL or failed[0] - passed[0] <= least:
            break
        if passed[1] < math.inf and failed[0] < math.inf:
            share = (passed[1] - 0.5 * slack) / (passed[1] - failed[1])
            share = share if _INNER <= share <= 1.0 - _INNER else 0.5  # at a jump, for example
            x = passed[0] + share * (failed[0] - passed[0])
        else:
            step = max(step, least)
            x = passed[0] + step if passed[1] < math.inf else max(sure, failed[0] - step)
            step *= _GROWTH
    return passed[0]


def _below(ratio: float) -> float:
    """Return a threshold that the ratio certainly exceeds, despite rounding."""
    return _ALL if math.isinf(ratio) else max(0.0, ratio * (1.0 - _APART) - _APART)


def _beyond(ratio: float) -> float:
    """Return a threshold that the ratio certainly does not exceed."""
    return ratio * (1.0 + _APART) + _APART
