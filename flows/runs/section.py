"""A section of a sweep: the points of one grid and one method, by number, and their estimated costs."""

import itertools
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flows.spec.box import Box, chunks
from flows.spec.levels import Column, Levels, Numbers
from privcore.method import Method
from privcore.point import Point
from tasks.guard import Limits, estimate

NEW = 0
"""Code of a point without a stored row."""
EXCLUDED = 255
"""Code of a number without a point: its grid excludes it, or an earlier section has the point."""

FEW = 100
"""Most values of a field by which sections are found."""
_MANY = object()

Codes = NDArray[np.uint8]


class Section:
    """Points of one method on the problems of one grid.

    A point has a number, as its problem has in the box, and a place in the order in which points are
    computed: those that share state are neighbours. Of each number, a code of one byte is kept.

    Args:
        box: The problems.
        method: The method that answers them.

    Attributes:
        key: Name, version and options of the method, as rows have them.
        codes: For each number, `NEW`, `EXCLUDED`, or the code of a stored status.
    """

    def __init__(self, box: Box, method: Method) -> None:
        self.box = box
        self.method = method
        self.codes: Codes = np.zeros(box.size, np.uint8)  # the system gives pages when they are written
        names = [name for name in method.shares if name in box.kind.parameters]
        sharing = [(k, [name for name in names if name in d.columns]) for k, d in enumerate(box.dimensions)]
        sharing.sort(key=lambda each: min(map(names.index, each[1]), default=len(names)))
        self._order: list[tuple[int, Numbers | None]] = []  # dimensions, slowest first, and orders of rows
        self._states: list[tuple[int, Numbers]] = []  # dimensions, and the state of each row
        for k, shared in sharing:
            ranks = box.dimensions[k].ranks(shared)
            self._order.append((k, np.lexsort(ranks[::-1]) if shared else None))
            if shared:
                joint = np.stack(ranks)
                self._states.append((k, np.unique(joint, axis=1, return_inverse=True)[1].reshape(-1)))
        options = json.dumps(method.identity(), sort_keys=True, separators=(",", ":"))
        self.key = method.name, method.version, options

    @property
    def size(self) -> int:
        """Number of places, which is the number of numbers."""
        return self.box.size

    def point(self, number: int) -> Point:
        """Return the point with a number."""
        return Point(problem=self.box.problem(number), method=self.method)

    def at(self, places: Numbers) -> Numbers:
        """Return the numbers at these places."""
        if not self._states:
            return places
        numbers = np.zeros(len(places), np.int64)
        left = places
        for k, order in reversed(self._order):
            left, rows = np.divmod(left, len(self.box.dimensions[k]))
            numbers += (rows if order is None else order[rows]) * self.box.factors[k]
        return numbers

    def states(self, numbers: Numbers) -> Numbers | None:
        """Return equal numbers for points that share state; None if the method shares nothing."""
        if not self._states:
            return None
        found = np.zeros(len(numbers), np.int64)
        for k, state in self._states:
            found = found * len(state) + state[self.box.rows(k, numbers)]
        return found

    def exclude(self, earlier: Iterable["Section"]) -> None:
        """Exclude the numbers that the grid excludes, and the points of earlier sections of the method."""
        others = [one for one in earlier if one.box.meets(self.box)]
        for numbers in chunks(self.size):
            excluded = self.box.excluded(numbers)
            if excluded is not None:
                self.codes[numbers[excluded]] = EXCLUDED
            for other in others:
                left = numbers[self.codes[numbers] != EXCLUDED]
                if not len(left):
                    break
                self.codes[left[other.has(self.box.columns(left))]] = EXCLUDED

    def has(self, columns: dict[str, Column]) -> NDArray[np.bool_]:
        """Return a mask of the rows whose problems are points of this section."""
        numbers = self.box.numbers(columns)
        known: NDArray[np.bool_] = (numbers >= 0) & (self.codes[numbers] != EXCLUDED)
        return known


class Earlier:
    """Sections that were made before, found by the values of their fields.

    So a sweep of thousands of grids compares each of them with few others.
    """

    def __init__(self) -> None:
        self._having: dict[tuple[Any, ...], list[Section]] = {}

    def add(self, section: Section) -> None:
        """Add a section, unless all its numbers are excluded."""
        if (section.codes[:1] == EXCLUDED).all() and (section.codes == EXCLUDED).all():
            return
        for name, levels in section.box.levels().items():
            for value in _values(levels) or [_MANY]:
                self._having.setdefault((section.key, section.box.kind, name, value), []).append(section)
        self._having.setdefault((section.key, section.box.kind), []).append(section)

    def near(self, section: Section) -> Iterable[Section]:
        """Return the sections of its problem and method, except most of those that share no point with it."""
        key = section.key, section.box.kind
        found = [[self._having.get(key, [])]]
        for name, levels in section.box.levels().items():
            if values := _values(levels):
                found.append([self._having.get((*key, name, value), []) for value in [*values, _MANY]])
        fewest = min(found, key=lambda lists: sum(map(len, lists)))
        return dict.fromkeys(one for several in fewest for one in several)


def _values(levels: Levels) -> list[Any]:
    """Return the values of a field if they are few."""
    values: list[Any] = levels.values.tolist() if len(levels) <= FEW else []
    return values


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
