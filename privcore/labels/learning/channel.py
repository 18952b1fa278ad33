"""Closed forms of randomized response over c classes: flips, capacity, and the epsilon that has them."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import get_args

from privcore.labels.learning.utility_problems import (
    ClassCapacity,
    ClassCapacityEpsilon,
    ClassFlipEpsilon,
    ClassFlipProbability,
)
from privcore.method import Direction
from privcore.numerics.rounding import LABEL_BOUND
from privcore.parameter import SMALLEST_NORMAL
from privcore.published import published

_SERIES = 0.01
_LEAST, _MOST = 1e-150, 700.0
"""Range of epsilon in which the capacity is inverted."""
_CLOSE = 1e-14
"""Relative distance of the ends at which the search stops."""

Answered = ClassFlipProbability | ClassFlipEpsilon | ClassCapacity | ClassCapacityEpsilon


def flip_probability(number: int, epsilon: float) -> float:
    r"""Return the probability $(c - 1) / (e^\varepsilon + c - 1)$ that another class is released.

    Example:
        >>> flip_probability(4, 0.0), round(flip_probability(2, 1.0), 6)
        (0.75, 0.268941)
    """
    ratio = math.exp(-epsilon)
    return (number - 1) * ratio / (1.0 + (number - 1) * ratio)


def flip_epsilon(number: int, flipped: float) -> float:
    r"""Return the epsilon $\ln((1 - \pi) (c - 1) / \pi)$ of randomized response with this flip probability.

    Args:
        number: Number c of classes, >= 2.
        flipped: Probability $\pi$ of another class, in [0, (c - 1) / c].

    Returns:
        Epsilon in nats, infinite for 0; accurate also near the flip probability of a blind guess.

    Example:
        >>> flip_epsilon(2, 0.25) == math.log(3.0), flip_epsilon(10, 0.9), flip_epsilon(10, 0.0)
        (True, 0.0, inf)
    """
    if flipped == 0.0:
        return math.inf
    other = Fraction(flipped)
    odds = (1 - other) * (number - 1) / other
    return max(0.0, math.log1p(float(odds - 1)) if odds < 2 else _log(odds))


def capacity(number: int, epsilon: float) -> float:
    r"""Return the capacity in bits of randomized response over c classes.

    $$C = \log_2 c - h(\pi) - \pi \log_2(c - 1)$$

    with the flip probability $\pi$ and the binary entropy h. It is the divergence of the released class from
    a uniform one, computed as a sum of non-negative terms, which keeps its digits for a small epsilon.

    Args:
        number: Number c of classes, >= 2.
        epsilon: Label differential privacy in nats, >= 0; infinity without noise.

    Example:
        >>> capacity(8, math.inf), round(capacity(2, math.log(9.0)), 6)
        (3.0, 0.531004)
    """
    if math.isinf(epsilon):
        return math.log2(number)
    ratio = math.exp(-epsilon)
    rest = number * ratio / (1.0 + (number - 1) * ratio)  # 1 - moved
    moved = -math.expm1(-epsilon) / (1.0 + (number - 1) * ratio)
    lost = moved + rest * math.log(rest) if moved > _SERIES else _excess(-moved)
    return (_excess((number - 1) * moved) + (number - 1) * lost) / (number * math.log(2.0))


def capacity_epsilon(number: int, bits: float) -> tuple[float, float]:
    """Return bounds of the epsilon with a given capacity, by bisection.

    Args:
        number: Number of classes, >= 2.
        bits: Capacity, at most that without noise.

    Example:
        >>> low, high = capacity_epsilon(2, 0.531004406410719)
        >>> low < math.log(9.0) < high, high - low < 1e-9
        (True, True)
    """
    if bits == 0.0:
        return 0.0, 0.0

    def below(epsilon: float) -> bool:
        return capacity(number, epsilon) * (1.0 + LABEL_BOUND) <= bits

    def above(epsilon: float) -> bool:
        return capacity(number, epsilon) * (1.0 - LABEL_BOUND) >= bits

    lower = _edge(lambda epsilon: not below(epsilon))[0] if below(_LEAST) else 0.0
    return lower, _edge(above)[1] if above(_MOST) else math.inf


def _edge(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Return two close epsilons: a condition that stays true fails at the first, and holds at the second."""
    low, high = _LEAST, _MOST
    while high - low > _CLOSE * high:
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _excess(x: float) -> float:
    """Return (1 + x) ln(1 + x) - x for x > -1, which is about x^2 / 2."""
    if abs(x) > _SERIES:
        return (1.0 + x) * math.log1p(x) - x
    return math.fsum((-x) ** n / (n * (n - 1)) for n in range(2, 12))


def _log(odds: Fraction) -> float:
    """Return the logarithm of a large fraction."""
    return math.log(odds.numerator) - math.log(odds.denominator)


def _value(problem: Answered) -> float | tuple[float, float]:
    """Return the value, or both ends, of a question about randomized classes."""
    match problem:
        case ClassFlipProbability():
            return flip_probability(problem.class_number, problem.label_epsilon)
        case ClassFlipEpsilon():
            return flip_epsilon(problem.class_number, problem.flip_probability)
        case ClassCapacity():
            bits = capacity(problem.class_number, problem.label_epsilon)
            lost = SMALLEST_NORMAL if problem.label_epsilon > 0.0 else 0.0  # by squares of a tiny epsilon
            return max(0.0, bits - lost), bits + lost
        case ClassCapacityEpsilon():
            return capacity_epsilon(problem.class_number, problem.capacity)


LabelsChannel = published(
    "labels.channel",
    get_args(Answered),
    Direction.ENCLOSURE,
    r"""Randomized response as a symmetric channel: flip probability, capacity, and both inverses.

    A uniform class has the most information about the released one, since the channel is symmetric. The
    epsilon of a capacity is found by bisection.""",
    _value,
    reference="C. E. Shannon, A Mathematical Theory of Communication (1948), for the capacity",
    slack=LABEL_BOUND,
)
