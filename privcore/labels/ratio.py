"""Distribution of the multiplicative advantage, and its quantile from sampled bags, between tested ends."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from privcore.labels.problems import LabelProblem, LabelRatioQuantile, LabelRatioTail
from privcore.labels.sums import noisy_sums
from privcore.labels.sums.poisson_binomial import FLOOR, Array, relative_error
from privcore.labels.sums.rows import discrete, likelihoods
from privcore.numerics.bounded_mean import log_wealth, width_note
from privcore.numerics.rounding import BETTED_WEALTH
from privcore.numerics.sums import dot

_GROUPED = 2.0**-40
"""Relative and absolute error of a ratio in nats: a few roundings of logarithms below 1000."""


LEAST_ETA = 1e-100
"""Least probability of a label, if it is possible, with which likelihoods that matter do not underflow."""
_SURE = 1e-150
"""Likelihood for one label from which that for the other one does not underflow, unless it is 0.

By Newton's inequalities neighbouring probabilities of a sum of k labels have at least the ratio
`LEAST_ETA` / k, and 1e-250 / k exceeds `FLOOR`. Lower ends do not count outputs with less, whose ratio may
seem infinite.
"""


@dataclass(frozen=True, kw_only=True)
class RatioLaw:
    r"""The distribution of $|\ln g_1 - \ln g_0|$, as its atoms or, for Laplace noise, by its parts.

    An output has the probability $\eta g_1 + (1 - \eta) g_0$. Since eta is independent of the other examples,
    its mean over the prior is $p g_1 + (1 - p) g_0$. In a partition, p is the mean of the rows that are left.

    Attributes:
        epsilon: Label differential privacy of the noise; infinity without noise.
        rates: For Laplace noise, mean p of eta given each row of `laws`; otherwise empty.
        error: Relative error of the probabilities.
        spread: Absolute error of a ratio in nats.
        ratios: Absolute log-ratios of the released counts, ascending; empty for Laplace noise.
        masses: Probabilities of the ratios.
        weights: For Laplace noise, probabilities of the rows of `laws`; otherwise empty.
        laws: For Laplace noise, distributions of the sum of the other labels; otherwise empty.
    """

    epsilon: float
    rates: Array
    error: float
    spread: float
    ratios: Array
    masses: Array
    weights: Array
    laws: Array

    @classmethod
    def of(
        cls, mechanism: str, epsilon: float, slack: float, rows: Iterable[tuple[Array, Array, Array]]
    ) -> Self:
        """Return the distribution of the ratio over random distributions of the sum of the other labels.

        Args:
            mechanism: A mechanism with bags.
            epsilon: Label differential privacy of its noise.
            slack: Relative error of the means, and of the probabilities of the rows.
            rows: Chunks of probabilities, shape (rows,), of distributions, shape (rows, k), and of the means
                of eta of the attacked example, shape (rows,).
        """
        ratios, masses, weights, laws, rates = [], [], [], [], []
        error = 0.0
        for weight, others, rate in rows:
            error = 3.0 * relative_error(others.shape[1]) + slack
            if discrete(mechanism):
                one, zero, wrong = likelihoods(others, epsilon)
                error += wrong
                ratios.append(absolute_ratio(one, zero, epsilon).ravel())
                p = rate[:, None]
                masses.append((weight[:, None] * (p * one + (1.0 - p) * zero)).ravel())
            else:
                weights.append(weight)
                rates.append(rate)
                laws.append(others)
        order = np.argsort(np.concatenate(ratios), kind="stable") if ratios else np.zeros(0, dtype=int)
        none = np.zeros(0)
        return cls(
            epsilon=epsilon,
            rates=np.concatenate(rates) if rates else none,
            error=error,
            spread=2.0 * error + _GROUPED,
            ratios=np.concatenate(ratios)[order] if ratios else none,
            masses=np.concatenate(masses)[order] if masses else none,
            weights=np.concatenate(weights) if weights else none,
            laws=np.concatenate(laws) if laws else none,
        )


def too_rare(problem: LabelProblem) -> str | None:
    """Return the refusal of ratios of a prior with too rare labels, or None.

    Products of rarer labels underflow, and a label would seem to be certain although it is only likely.
    """
    atoms = problem.distribution.atoms
    if atoms is None or not isinstance(problem, LabelRatioTail | LabelRatioQuantile):
        return None
    rare = np.minimum(atoms[0], 1.0 - atoms[0])
    if ((rare > 0.0) & (rare < LEAST_ETA)).any():
        return f"Probabilities of labels below {LEAST_ETA:g} are too small for ratios, unless they are 0."
    return None


def absolute_ratio(one: Array, zero: Array, epsilon: float) -> Array:
    """Return absolute log-likelihood ratios in nats, at most epsilon; 0 for an output that never occurs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(np.log(one) - np.log(zero))
    ratio[(one == 0.0) & (zero == 0.0)] = 0.0
    return np.asarray(np.minimum(ratio, epsilon))


def ratio_tail(law: RatioLaw, threshold: float) -> tuple[float, float]:
    """Return bounds of the probability that the absolute ratio exceeds a threshold in nats."""
    if threshold >= law.epsilon:
        return 0.0, 0.0
    near, far = threshold - law.spread, threshold + law.spread
    if law.laws.size == 0:
        low, high = law.masses[law.ratios > far].sum(), law.masses[law.ratios > near].sum()
    else:
        low, high = _laplace_tail(law, far), _laplace_tail(law, max(0.0, near))
    outputs = law.ratios.size + 1.0
    return max(0.0, float(low) * (1.0 - law.error) - outputs * _SURE), min(
        1.0, float(high) * (1.0 + law.error) + outputs * FLOOR
    )


def _laplace_tail(law: RatioLaw, threshold: float) -> float:
    return float(dot(law.weights, row_tails(law.laws, "llp-laplace", law.epsilon, law.rates, threshold)))


def row_tails(others: Array, mechanism: str, epsilon: float, rates: Array, threshold: float) -> Array:
    """Return the probability that the absolute ratio exceeds a threshold, for each row of `others`.

    Args:
        others: Distributions of the sum of the other labels, shape (rows, k).
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise.
        rates: Means of eta of the attacked examples, shape (rows,).
        threshold: In nats, >= 0.
    """
    if threshold >= epsilon:
        return np.zeros(others.shape[0])
    if discrete(mechanism):
        one, zero, _ = likelihoods(others, epsilon)
        exceeds = absolute_ratio(one, zero, epsilon) > threshold
        p = rates[:, None]
        return np.asarray(((p * one + (1.0 - p) * zero) * exceeds).sum(axis=1))
    x = math.exp(-threshold)
    above = noisy_sums.sides(others, epsilon, x, 1.0)[:, 2:4]  # log-ratio above the threshold
    below = noisy_sums.sides(others, epsilon, 1.0, x)[:, 4:6]  # log-ratio below minus the threshold
    masses = above + below
    return np.asarray(rates * masses[:, 0] + (1.0 - rates) * masses[:, 1])


def row_tail_ends(
    others: Array, mechanism: str, epsilon: float, rates: Array, slack: float, threshold: float
) -> tuple[Array, Array]:
    """Return bounds of the probability that the absolute ratio exceeds a threshold, for each row of `others`.

    Args:
        others: Distributions of the sum of the other labels, shape (rows, k).
        mechanism: A mechanism with bags.
        epsilon: Label differential privacy of its noise.
        rates: Means of eta of the attacked examples, shape (rows,).
        slack: Relative error of the means.
        threshold: In nats, >= 0.
    """
    low, high = (
        row_tail_end(others, mechanism, epsilon, rates, slack, threshold, upper=side)
        for side in (False, True)
    )
    return low, high


def row_tail_end(
    others: Array,
    mechanism: str,
    epsilon: float,
    rates: Array,
    slack: float,
    threshold: float,
    *,
    upper: bool,
) -> Array:
    """Return the lower or the upper one of the bounds from `row_tail_ends`."""
    if threshold >= epsilon:
        return np.zeros(others.shape[0])
    error = 3.0 * relative_error(others.shape[1]) + slack
    if discrete(mechanism):
        error += likelihoods(others[:0], epsilon)[2]
    spread = 2.0 * error + _GROUPED
    if not upper:
        low = row_tails(others, mechanism, epsilon, rates, threshold + spread) * (1.0 - error)
        return np.asarray(np.maximum(0.0, low - (others.shape[1] + 1.0) * _SURE))
    least = max(-1.0 if discrete(mechanism) else 0.0, threshold - spread)
    high = row_tails(others, mechanism, epsilon, rates, least)
    return np.asarray(np.minimum(1.0, high * (1.0 + error) + (others.shape[1] + 1.0) * FLOOR))


def ratio_quantile(law: RatioLaw, level: float, precision: float = 1e-12) -> tuple[float, float]:
    """Return bounds of the quantile: the least threshold not exceeded with probability at least `level`.

    Args:
        law: Distribution of the ratio.
        level: Level of the quantile, in (0, 1).
        precision: Relative width at which the search in a continuous distribution ends.
    """
    if law.laws.size:
        low = _reached(law, lambda threshold: 1.0 - ratio_tail(law, threshold)[0] >= level, precision)[0]
        high = _reached(law, lambda threshold: 1.0 - ratio_tail(law, threshold)[1] >= level, precision)[1]
        return low, high
    total = np.cumsum(law.masses)
    error = law.error + law.ratios.size * 2.0**-53
    first = int(np.searchsorted(total * (1.0 + error), level, side="left"))
    last = int(np.searchsorted(total * (1.0 - error), level, side="left"))
    low = float(law.ratios[min(first, law.ratios.size - 1)])
    high = float(law.ratios[last]) if last < law.ratios.size else law.epsilon
    return max(0.0, low - law.spread), min(high + law.spread, law.epsilon)


def _reached(law: RatioLaw, test: Callable[[float], bool], precision: float) -> tuple[float, float]:
    """Return two neighbouring thresholds: the second passes the test, the first fails it unless it is 0."""
    low, high = 0.0, law.epsilon
    if test(0.0):
        return 0.0, 0.0
    while high - low > precision * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if test(middle) else (middle, high)
    return low, high


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
