"""Distribution of the multiplicative advantage; the eta of the attacked example enters as a weight only."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from privcore.labels import laplace
from privcore.labels.poisson_binomial import FLOOR, Array, relative_error
from privcore.labels.rows import discrete, likelihoods
from privcore.numerics.sums import dot

_GROUPED = 2.0**-40
"""Relative and absolute error of a ratio in nats: a few roundings of logarithms below 1000."""


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
    return float(low) * (1.0 - law.error), min(
        1.0, float(high) * (1.0 + law.error) + (law.ratios.size + 1.0) * FLOOR
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
    above = laplace.sides(others, epsilon, x, 1.0)[:, 2:4]  # log-ratio above the threshold
    below = laplace.sides(others, epsilon, 1.0, x)[:, 4:6]  # log-ratio below minus the threshold
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
        return row_tails(others, mechanism, epsilon, rates, threshold + spread) * (1.0 - error)
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
