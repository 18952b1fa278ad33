"""The batches of a plan, whose points are made when a batch is handed out."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import overload

import numpy as np
from numpy.typing import NDArray

from flows.runs.ledger import Ledger
from flows.runs.section import Prices, Section
from flows.spec.box import chunks
from flows.spec.levels import Column, Numbers
from privcore.method import Method
from privcore.problem import Problem
from tasks.batch import Batch, Columns, Span, aim, cut
from tasks.guard import Limits


class Group:
    """The new points of one method and one kind of problem, from one or more grids.

    Args:
        sections: The sections of the method and the problem, in order.
        ledger: Their ledger.
        again: Statuses of stored points that are computed again.
        limits: Limits of each point.

    Attributes:
        kind: The kind of problem.
        method: The method.
        points: Number of new points.
        prices: Their estimated costs, for each section.
    """

    def __init__(
        self, sections: Sequence[Section], ledger: Ledger, again: frozenset[str], limits: Limits
    ) -> None:
        self.kind: type[Problem] = sections[0].box.kind
        self.method: Method = sections[0].method
        self._sections = tuple(sections)
        self._starts = list(accumulate((one.size for one in sections), initial=0))
        self._ledger, self._again = ledger, again
        self.prices = [Prices(one, limits, self._new(one, 0, one.size)) for one in sections]
        self.points = sum(one.points for one in self.prices)

    @property
    def name(self) -> tuple[str, str]:
        """Names of problem and method."""
        return self.kind.name, self.method.name

    @property
    def label(self) -> str:
        """Name of the method, with the options that differ from their defaults."""
        options = ", ".join(f"{name}={value}" for name, value in self.method.identity().items())
        return f"{self.method.name}({options})" if options else self.method.name

    @property
    def seconds(self) -> float:
        """Estimated seconds of one core."""
        return sum(one.total for one in self.prices)

    @property
    def beyond(self) -> int:
        """Number of points that exceed a limit by their estimate, and will not be started."""
        return round(sum(one.beyond for one in self.prices))

    @property
    def bytes(self) -> float:
        """Estimated memory of the most demanding point."""
        return max(one.bytes for one in self.prices)

    def batch(self, start: int, stop: int, seconds: float) -> Batch:
        """Return the new points from place `start` to before `stop`, as a batch."""
        parts: list[dict[str, Column]] = []
        for section, first in zip(self._sections, self._starts, strict=False):
            within = max(start - first, 0), min(stop - first, section.size)
            if within[0] < within[1]:
                parts.extend(section.box.columns(section.at(new)) for new in self._new(section, *within))
        fields = Columns.of([np.concatenate([part[name] for part in parts]) for name in parts[0]])
        return Batch(problem=self.kind, method=self.method, fields=fields, seconds=seconds, bytes=self.bytes)

    def stretches(self) -> Iterator[Span]:
        """Yield the new points in order, with their costs."""
        held: Span | None = None  # the last point waits for the state of the next one
        state = -1
        for section, first, prices in zip(self._sections, self._starts, self.prices, strict=False):
            state = -1
            for places in self._new(section, 0, section.size):
                states = section.states(section.at(places))
                parted = np.ones(len(places), np.bool_)
                if states is not None:
                    parted[:-1] = states[1:] != states[:-1]
                if held is not None:
                    held.parted[-1] = states is None or states[0] != state
                    yield held
                state = -1 if states is None else int(states[-1])
                held = Span(places + first, prices.of(places), parted)
        if held is not None:
            yield held

    def _new(self, section: Section, start: int, stop: int) -> Iterator[Numbers]:
        """Yield the places of the new points of a section, in arrays that are not empty."""
        for offsets in chunks(stop - start):
            places = offsets + start
            new = places[self._ledger.is_new(section.codes[section.at(places)], self._again)]
            if len(new):
                yield new


def grouped(ledger: Ledger, again: frozenset[str], limits: Limits) -> list[Group]:
    """Return the new points of a sweep by method and kind of problem, in order of appearance.

    Args:
        ledger: The points of the sweep, with their stored statuses.
        again: Statuses of stored points that are computed again.
        limits: Limits of each point.
    """
    of: dict[tuple[type[Problem], Method], list[Section]] = {}
    for section in ledger.sections:
        of.setdefault((section.box.kind, section.method), []).append(section)
    groups = (Group(sections, ledger, again, limits) for sections in of.values())
    return [one for one in groups if one.points]


class Batches(Sequence[Batch]):
    """The batches of a plan, the longest first; only their bounds are kept.

    Before them comes the shortest of all, whose part shows early that workers can compute and store.

    Args:
        groups: The new points.
        workers: Number of worker processes, >= 1.

    Attributes:
        groups: The new points.
        seconds: Estimated seconds of each batch.
        points: Number of points of each batch.
        group: Place of the group of each batch.
    """

    def __init__(self, groups: Sequence[Group], workers: int) -> None:
        self.groups = tuple(groups)
        least = aim(sum(one.seconds for one in groups), workers)
        seconds, whole = array("d"), array("q")
        for number, one in enumerate(groups):
            for each in cut(one.stretches(), least):
                seconds.append(each.seconds)
                whole.extend((number, each.start, each.stop, each.points))
        order = np.argsort(-np.array(seconds), kind="stable")
        order = np.concatenate((order[-1:], order[:-1]))
        bounds: NDArray[np.int64] = np.array(whole, np.int64).reshape(-1, 4)[order]
        self.seconds: NDArray[np.float64] = np.array(seconds)[order]
        self.group, self._starts, self._stops, self.points = bounds.T

    def __len__(self) -> int:
        """Number of batches."""
        return len(self.seconds)

    @overload
    def __getitem__(self, index: int) -> Batch: ...

    @overload
    def __getitem__(self, index: slice) -> list[Batch]: ...

    def __getitem__(self, index: int | slice) -> Batch | list[Batch]:
        """Return one batch, or some, with their points."""
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        start, stop = int(self._starts[index]), int(self._stops[index])
        return self.groups[int(self.group[index])].batch(start, stop, float(self.seconds[index]))
