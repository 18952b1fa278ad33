"""Both ends of epsilon and delta of composed parts whose ratios may exceed the range of doubles."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.privacy_loss.distribution import LossEnds
from privcore.likelihood_ratio.privacy_loss.sums import (
    TILT,
    Factor,
    LossSum,
    RoundedLoss,
    deviation,
    epsilon_by_moments,
    log_delta_by_moments,
    log_moment,
    outside,
    slack_of,
)
from privcore.likelihood_ratio.profile import DIRECTIONS, Direction
from privcore.likelihood_ratio.questions import Question
from privcore.numerics.rounding import SUMMED, UNIT

Leaf = Callable[[Direction, int, float], LossEnds]
"""Function that returns the ends of the loss of a part: direction, number of cells, tail."""
Parts = Sequence[tuple[Leaf, int]]
"""The parts of a run, each with its number of repetitions."""


FEWEST, MOST = 2**12, 2**20
"""Smallest and largest number of cells of a part."""
MOST_POINTS = 2**21
"""Largest number of points of a lattice of losses, of a part or of the sum, about."""
SHARE = 0.2
"""Share of the requested width that each of the two roundings may take: to cells, and to a lattice."""
ETA = 1e-4
"""Share of delta for rounded sums that are far from the losses, and of the tails of all parts."""
SMALLEST = 1e-250
"""Smallest delta that is enclosed."""
LARGEST_TOTAL = 100.0
"""Largest logarithm of a total mass that counts: from there on, nothing is proved anyway."""
STEEPEST = 4.0
"""Largest tilt between sums that are as far apart as the rounding may move them: nearly equal losses have no
best one, and a steeper one would count sums outside of the window too often."""
HALVINGS = 60
"""Halvings in the search for an epsilon."""


@dataclass(frozen=True)
class _Rounded:
    """Both ends of the loss of a run, as sums on a lattice.

    Attributes:
        below: Sum of the lower ends.
        above: Sum of the upper ends.
        moved: Distance by which a sum is moved outwards.
        eta: Upper bound of the mass of the outputs for which a rounding moves a sum further.
    """

    below: LossSum
    above: LossSum
    moved: float
    eta: float

    @classmethod
    def of(cls, ends: Sequence[tuple[LossEnds, int]], width: float, tau: float, eta: float) -> "_Rounded":
        """Return the sums for a width of the bracket of epsilon, and an order of moments near epsilon."""
        sides = [[(getattr(end, side), times) for end, times in ends] for side in ("below", "above")]
        laws = [law for factors in sides for law, _ in factors]
        span = max(float(np.ptp(law.loss)) for law in laws)
        spacing = max(width, span / MOST_POINTS)
        while True:
            rounded = [[RoundedLoss.of(factor, spacing) for factor in factors] for factors in sides]
            moved = max(deviation(parts, math.log(eta)) for parts in rounded)
            if moved * spacing <= width or spacing <= span / MOST_POINTS:
                break
            spacing = max(0.9 * width / moved, span / MOST_POINTS)
        sums = [
            LossSum.of(factors, parts, spacing, tau) for factors, parts in zip(sides, rounded, strict=True)
        ]
        counted = sum(times * 16.0 * UNIT * float(np.max(np.abs(end.above.loss))) for end, times in ends)
        total = max(log_moment(factors, 0.0) + slack_of(factors, 0.0) for factors in sides)  # about 0
        eta *= math.exp(min(max(0.0, total), LARGEST_TOTAL))
        return cls(sums[0], sums[1], moved * spacing * (1.0 + SUMMED) + counted, eta)

    def delta(self, epsilon: float, side: float) -> float:
        """Return the lower (side -1) or the upper end (side 1) of delta."""
        total = self.below if side < 0.0 else self.above
        return total.profile(epsilon - side * self.moved, side) + side * (self.eta + total.rest)

    def epsilon(self, delta: float, most: float, side: float) -> float:
        """Return the lower (side -1) or the upper end (side 1) of epsilon, which is at most `most`."""
        low, high, step = most, most, 1e-3 * most
        while low > 0.0 and not self.delta(low, side) > delta:  # far below, sums are outside of the window
            low, high, step = max(0.0, low - step), low, 2.0 * step
        for _ in range(HALVINGS if low > 0.0 or self.delta(low, side) > delta else 0):
            middle = 0.5 * (low + high)
            if self.delta(middle, side) > delta:
                low = middle
            else:
                high = middle
        return low if side < 0.0 else high


def enclosed_losses(
    parts: Parts, question: Question, tolerance: float, outer: tuple[float, float]
) -> tuple[float, float]:
    """Return a bracket of epsilon or delta of the parts together; the outer one for other quantities.

    Args:
        parts: The parts, each with its number of repetitions.
        question: Quantity to compute.
        tolerance: Requested relative width.
        outer: A known bracket.
    """
    if question.asks not in ("epsilon", "delta"):
        return outer
    found, lower = list[tuple[float, float]](), outer[0]
    for direction in DIRECTIONS[question.adjacency]:
        if question.asks == "epsilon":
            ends = _epsilon(parts, direction, question.at, tolerance, lower)
        else:
            ends = _delta(parts, direction, question.at, tolerance, (lower, outer[1]))
        found.append(ends)
        lower = max(lower, ends[0])
    return lower, min(outer[1], max(outer[0], *(upper for _, upper in found)))


def _epsilon(
    parts: Parts, direction: Direction, delta: float, tolerance: float, known: float
) -> tuple[float, float]:
    """Return both ends of epsilon in a direction; 0 below if its upper end is below a known lower end."""
    tail = ETA * delta / sum(times for _, times in parts)
    ends = _built(parts, direction, FEWEST, tail)
    most, tau = epsilon_by_moments(_upper(ends), delta)
    if not known < most < math.inf:
        return 0.0, most
    width = SHARE * tolerance * most
    ends = _finer(parts, direction, ends, width, tail)
    sums = _Rounded.of(ends, width, min(TILT * tau, STEEPEST / width), ETA * delta)
    return sums.epsilon(delta, most, -1.0), sums.epsilon(delta, most, 1.0)


def _delta(
    parts: Parts, direction: Direction, epsilon: float, tolerance: float, outer: tuple[float, float]
) -> tuple[float, float]:
    """Return both ends of delta in a direction; the lower end is at least that of `outer`."""
    lower, upper = outer
    for wider in (10.0, 1.0):  # first, the size of delta becomes known
        if upper < SMALLEST:
            break
        tail = ETA * upper / sum(times for _, times in parts)
        ends = _built(parts, direction, FEWEST, tail)
        if outside(_upper(ends)) >= upper:  # infinite losses alone exceed the known end
            break
        log_most, tau = log_delta_by_moments(_upper(ends), epsilon)
        upper = min(upper, math.exp(min(0.0, log_most)) + outside(_upper(ends)))
        if upper <= lower * (1.0 + tolerance):
            break
        mean = sum(times * float(end.above.mass @ end.above.loss) for end, times in ends)
        width = SHARE * wider * tolerance * min(1.0 / tau, max(1.0, abs(epsilon), mean))
        sums = _Rounded.of(_finer(parts, direction, ends, width, tail), width, TILT * tau, ETA * upper)
        lower, upper = max(lower, sums.delta(epsilon, -1.0)), min(upper, sums.delta(epsilon, 1.0))
    return lower, upper


def _built(parts: Parts, direction: Direction, cells: int, tail: float) -> list[tuple[LossEnds, int]]:
    return [(leaf(direction, cells, tail), times) for leaf, times in parts]


def _finer(
    parts: Parts, direction: Direction, ends: list[tuple[LossEnds, int]], width: float, tail: float
) -> list[tuple[LossEnds, int]]:
    """Return the ends with more cells if they are further apart than the width."""
    gap = sum(times * end.gap for end, times in ends)
    if gap <= width:
        return ends
    return _built(parts, direction, min(MOST, 2 ** math.ceil(math.log2(FEWEST * gap / width))), tail)


def _upper(ends: Sequence[tuple[LossEnds, int]]) -> list[Factor]:
    return [(end.above, times) for end, times in ends]
