"""Batches: points of one method and one kind of problem, cut by estimated cost, in a compact form to send."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from privcore.method import Method
from privcore.parameter import Value
from privcore.point import Point
from privcore.problem import Problem
from tasks.limits import Limits, estimate

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


@dataclass
class Group:
    """All points of one method and one kind of problem, before they are cut into batches.

    Attributes:
        problem: Class of the problems.
        method: The method that answers them.
        fields: One tuple for each point, in the order of the problem's parameters.
        costs: Estimated seconds of each point.
        bytes: Estimated memory of the most demanding point.
        beyond: Number of points that exceed a limit by their estimate, and will not be started.
    """

    problem: type[Problem]
    method: Method
    fields: list[tuple[Value, ...]] = field(default_factory=list)
    costs: "array[float]" = field(default_factory=lambda: array("d"))
    bytes: float = 0.0
    beyond: int = 0

    @property
    def seconds(self) -> float:
        """Estimated seconds of one core."""
        return sum(self.costs)

    def add(self, point: Point, limits: Limits) -> None:
        """Append a point; a point that exceeds a limit by its estimate costs nothing."""
        cost = estimate(point)
        starts = limits.refusal(cost) is None
        self.fields.append(tuple(point.problem.as_fields().values()))
        self.costs.append(cost.seconds if starts else 0.0)
        self.bytes = max(self.bytes, cost.bytes if starts else 0.0)
        self.beyond += not starts


def group(points: Iterable[Point], limits: Limits) -> list[Group]:
    """Group points with their costs by method and kind of problem, in order of appearance."""
    groups: dict[tuple[type[Problem], Method], Group] = {}
    for point in points:
        key = type(point.problem), point.method
        if key not in groups:
            groups[key] = Group(*key)
        groups[key].add(point, limits)
    return list(groups.values())


def cut(groups: Sequence[Group], workers: int) -> list[Batch]:
    """Cut groups into batches of 1 to 15 s of estimated work, several for each worker, the longest first.

    Before them comes the shortest of all, whose part shows early that workers can compute and store.
    Points that share state are neighbours, and a batch ends at a change of the state if possible. The same
    points in the same order give the same batches.

    Args:
        groups: From `group`.
        workers: Number of worker processes, >= 1.
    """
    total = sum(g.seconds for g in groups)
    aim = min(LONGEST, max(SHORTEST, total / (PER_WORKER * workers)))
    batches = [batch for g in groups for batch in _cut(g, aim)]
    batches.sort(key=lambda batch: -batch.seconds)
    return batches[-1:] + batches[:-1]


def _cut(whole: Group, aim: float) -> Iterator[Batch]:
    """Cut one group into batches of about `aim` seconds."""
    names = list(whole.problem.parameters)
    shared = [names.index(name) for name in whole.method.shares if name in names]
    states = [tuple(values[i] for i in shared) for values in whole.fields]
    order = sorted(range(len(states)), key=states.__getitem__) if shared else range(len(states))
    fields: list[tuple[Value, ...]] = []
    seconds = 0.0
    for place, i in enumerate(order):
        fields.append(whole.fields[i])
        seconds += whole.costs[i]
        following = order[place + 1] if place + 1 < len(order) else None
        keeps_state = shared and following is not None and states[following] == states[i]
        full = seconds >= (2 * aim if keeps_state else aim) or len(fields) >= MOST_POINTS
        if full or following is None:
            yield Batch(
                problem=whole.problem,
                method=whole.method,
                fields=tuple(fields),
                seconds=seconds,
                bytes=whole.bytes,
            )
            fields, seconds = [], 0.0
