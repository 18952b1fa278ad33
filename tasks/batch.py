"""Batches: points of one method and one kind of problem, cut by estimated cost, in a compact form to send."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from privcore.method import Method
from privcore.parameter import Value
from privcore.point import Point
from privcore.problem import Problem

_CODES = {"f": "d", "i": "q"}


@dataclass(frozen=True)
class Columns(Sequence[tuple[Value, ...]]):
    """A sequence of points, each a tuple of the values of its fields.

    Attributes:
        values: For each field, its values at all points.
    """

    values: tuple[Sequence[Value], ...]

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any]]) -> Self:
        """Return the points whose fields these arrays hold: floats, integers, or texts as objects.

        Example:
            >>> Columns.of([np.array([0.5, 1.0]), np.array([2, 3])])[1]
            (1.0, 3)
        """
        return cls(tuple(_compact(values) for values in columns))

    def __len__(self) -> int:
        """Number of points."""
        return len(self.values[0])

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        """Yield the points in order."""
        return zip(*self.values, strict=True)

    @overload
    def __getitem__(self, index: int) -> tuple[Value, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> tuple[Value, ...] | Self:
        """Return one point, or some of them."""
        if isinstance(index, slice):
            return type(self)(tuple(values[index] for values in self.values))
        return tuple(values[index] for values in self.values)


def _compact(values: NDArray[Any]) -> Sequence[Value]:
    """Return an array as values of Python that need few bytes."""
    if code := _CODES.get(values.dtype.kind):
        compact: array[Any] = array(code)
        compact.frombytes(np.ascontiguousarray(values).tobytes())
        return compact
    return tuple(values.tolist())


LONGEST = 15.0
"""Most seconds of estimated work in a batch (a single point may need more), which a lost worker can cost."""
SHORTEST = 1.0
"""Least seconds of work in a batch, so that the overhead of a batch stays small."""
PER_WORKER = 4
"""Least number of batches for each worker, so that all workers finish at about the same time."""
MOST_POINTS = 10_000
"""Most points in a batch, since it is sent, and its rows are held in memory until they are published."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Points of one method and one kind of problem, stored as the values of their fields.

    Attributes:
        problem: Class of the problems.
        method: The method that answers them.
        fields: One tuple for each point, in the order of the problem's parameters.
        seconds: Estimated work in seconds of one core.
        bytes: Estimated memory of the most demanding point.
    """

    problem: type[Problem]
    method: Method
    fields: Sequence[tuple[Value, ...]]
    seconds: float
    bytes: float

    def __len__(self) -> int:
        """Number of points."""
        return len(self.fields)

    def points(self) -> Iterator[Point]:
        """Yield the points in order."""
        names = tuple(self.problem.parameters)
        for values in self.fields:
            problem = self.problem(**dict(zip(names, values, strict=True)))
            yield Point(problem=problem, method=self.method)

    def part(self, start: int, stop: int | None = None) -> Self:
        """Return a batch of some of the points; its cost is proportional to their number."""
        fields = self.fields[start:stop]
        seconds = self.seconds * len(fields) / len(self.fields)
        return type(self)(
            problem=self.problem, method=self.method, fields=fields, seconds=seconds, bytes=self.bytes
        )


@dataclass(frozen=True)
class Span:
    """Points that follow one another in a group, before it is cut into batches.

    Attributes:
        places: Their places in the group, ascending.
        seconds: Estimated seconds of each.
        parted: Whether each is the last of those that share its state.
    """

    places: NDArray[np.int64]
    seconds: NDArray[np.float64]
    parted: NDArray[np.bool_]


@dataclass(frozen=True)
class Cut:
    """A batch of a group: points from place `start` to before `stop`, their number and estimated seconds."""

    start: int
    stop: int
    points: int
    seconds: float


def aim(seconds: float, workers: int) -> float:
    """Return the least seconds of a batch, from the work of a sweep and the number of workers, >= 1."""
    return min(LONGEST, max(SHORTEST, seconds / (PER_WORKER * workers)))


def cut(stretches: Iterable[Span], least: float) -> Iterator[Cut]:
    """Cut a group into batches of about `least` seconds, each with 10,000 points at most.

    A batch ends where the state changes, unless it would take twice as long. The same points in the same
    order give the same batches.

    Args:
        stretches: The points of the group, in order.
        least: From `aim`.
    """
    start, points, seconds = 0, 0, 0.0
    last = -1
    for stretch in stretches:
        ends = np.flatnonzero(stretch.parted)
        first = 0
        while first < len(stretch.places):
            if not points:
                start = int(stretch.places[first])
            room = MOST_POINTS - points
            within = stretch.seconds[first : first + room]
            sums = np.cumsum(np.concatenate(([seconds], within)))[1:]  # in order, as a loop would add
            end = min(_end(sums, ends, first, least), room - 1)
            if end >= len(sums):  # it goes on in the next stretch
                points, seconds = points + len(sums), float(sums[-1])
                last = int(stretch.places[-1])
                break
            yield Cut(start, int(stretch.places[first + end]) + 1, points + end + 1, float(sums[end]))
            first += end + 1
            points, seconds = 0, 0.0
    if points:
        yield Cut(start, last + 1, points, seconds)


def _end(sums: NDArray[np.float64], ends: NDArray[np.int64], first: int, least: float) -> int:
    """Return the place in `sums` at which a batch ends, or a larger number."""
    full = int(np.searchsorted(sums, least))
    state = int(np.searchsorted(ends, first + full))
    at_state = int(ends[state]) - first if state < len(ends) else MOST_POINTS
    return min(at_state, int(np.searchsorted(sums, 2 * least)))
