"""Estimated costs of the points of a section: of each point, or of drawn points of a large section."""

import itertools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from flows.runs.section import EXCLUDED, Section
from flows.spec.levels import Numbers
from tasks.limits import Limits, estimate

EACH = 20_000
"""Largest number of places of a section whose points are all priced, in less than a second."""
STRETCH = 256
"""Places of a larger section that have the mean cost of the points that are drawn among them."""
DRAWN = 4
"""Points that are drawn among the new points of a stretch: 0.3 microseconds for each place."""
CORNERS = 64
"""Most corners of a larger section, which are priced as well: there the most memory is needed."""


class Prices:
    """The estimated costs of the new points of a section.

    A point that exceeds a limit by its estimate will not be started, so it costs nothing.

    Args:
        section: The section.
        limits: Limits of each point.
        new: The places of its new points, in order, each stretch in one array alone.

    Attributes:
        points: Number of new points.
        total: Their estimated seconds of one core.
        bytes: Estimated memory of the most demanding point that was priced.
        beyond: Number of new points that exceed a limit by their estimate; a fraction if points were drawn.
    """

    def __init__(self, section: Section, limits: Limits, new: Iterable[Numbers]) -> None:
        self._section, self._limits = section, limits
        self._step = 1 if section.size <= EACH else STRETCH
        self._mean = np.zeros(-(-section.size // self._step))
        self._random = np.random.default_rng(0)
        self.points, self.total, self.bytes, self.beyond = 0, 0.0, 0.0, 0.0
        for places in new:
            self.points += len(places)
            self._price(places)
        if self.points and self._step > 1:
            for number in self._corners():
                self._cost(number)

    def of(self, places: Numbers) -> NDArray[np.float64]:
        """Return the estimated seconds at these places, which are places of new points."""
        costs: NDArray[np.float64] = self._mean[places // self._step]
        return costs

    def _price(self, places: Numbers) -> None:
        """Price the new points at these places."""
        stretches, firsts, counts = np.unique(places // self._step, return_index=True, return_counts=True)
        numbers = self._section.at(places)
        draws = (self._random.random((len(stretches), DRAWN)) * counts[:, None]).astype(np.int64)
        few = counts <= DRAWN
        draws[few] = np.arange(DRAWN)
        for stretch, first, count, drawn in zip(
            stretches.tolist(), firsts.tolist(), counts.tolist(), draws.tolist(), strict=True
        ):
            costs = [self._cost(int(numbers[first + k])) for k in drawn[:count]]
            started = [cost for cost in costs if cost is not None]
            self._mean[stretch] = sum(started) / len(costs)
            self.total += self._mean[stretch] * count
            self.beyond += (len(costs) - len(started)) / len(costs) * count

    def _cost(self, number: int) -> float | None:
        """Return the estimated seconds of a point; None if it will not be started."""
        cost = estimate(self._section.point(number))
        if self._limits.refusal(cost) is not None:
            return None
        self.bytes = max(self.bytes, cost.bytes)
        return cost.seconds

    def _corners(self) -> list[int]:
        """Return the numbers of the points with the first or the last row of each dimension."""
        box = self._section.box
        ends = [
            [row * factor for row in sorted({0, len(dimension) - 1})]
            for dimension, factor in zip(box.dimensions, box.factors, strict=True)
        ]
        corners = [sum(each) for each in itertools.islice(itertools.product(*ends), CORNERS)]
        return [number for number in corners if self._section.codes[number] != EXCLUDED]
