"""The ledger of a sweep: which of its points are stored, with which status, and in which parts.

Every part is read once. Of each point a byte is kept, so the memory of a run hardly grows with its points.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flows.runs.section import EXCLUDED, NEW, Codes, Earlier, Section
from flows.spec.box import Box, chunks
from flows.spec.grid import Grid
from privcore.answer import Status

if TYPE_CHECKING:
    from storage import Store
    from storage.manifest import StoredPoints

ByMethod = dict[tuple[str, str], Counter[str]]
"""Number of points by status, for each name of a problem with each name of a method."""

_ORDER = (Status.CRASHED, Status.FAILED, Status.TIMEOUT, Status.OUT_OF_MEMORY)
_LEAST_FAILURE, _LEAST_ANSWER = 2, 253


class Ledger:
    """The points of a sweep, with their statuses in a store.

    Of several rows of a point, the one counts that the views show: `storage.sql.views.CHOICE`.

    Args:
        grids: The grids of the sweep.

    Attributes:
        sections: The points, each once, by grid and method.
        total: Number of points.
        parts: Names of the parts that hold any of them, relative to the data folder.

    Raises:
        DomainError: Parameters contradict one another at a point that no `where` excludes, or a grid is
            empty.
    """

    def __init__(self, grids: Sequence[Grid]) -> None:
        sections: list[Section] = []
        earlier = Earlier()
        for grid in grids:
            box = Box(grid)
            for method in grid.methods:
                section = Section(box, method)
                section.exclude(earlier.near(section))
                earlier.add(section)
                sections.append(section)
        self.sections = tuple(sections)
        self.total = sum(one.size - int(_histogram(one)[EXCLUDED]) for one in sections)
        self.parts: set[str] = set()
        self._read: set[str] = set()
        self._contested: set[tuple[int, int]] = set()
        self._codes: dict[str, int] = {word.value: code for code, word in enumerate(_ORDER, start=1)}
        self._codes |= {Status.NOT_APPLICABLE.value: _LEAST_ANSWER, Status.OK.value: _LEAST_ANSWER + 1}

    def read(self, store: "Store") -> None:
        """Read the parts that have not been read yet; all parts again if one of them is gone.

        Raises:
            StoreError: A part is damaged; the sentence names it.
        """
        from storage.manifest import steadily

        steadily(store.place, lambda: self._update(store))

    def unread(self, store: "Store") -> set[str] | None:
        """Return the names of the parts that have not been read; None if a part that was read is gone."""
        now = self._listed(store)
        return now - self._read if now >= self._read else None

    def counts(self) -> Counter[str]:
        """Return the number of stored points by status."""
        return sum(self.by_method().values(), Counter())

    def by_method(self) -> ByMethod:
        """Return the number of stored points by status, for each problem and method."""
        counted: ByMethod = {}
        for section in self.sections:
            found = _histogram(section)
            words = Counter({word: int(found[code]) for word, code in self._codes.items() if found[code]})
            counted.setdefault((section.box.kind.name, section.method.name), Counter()).update(words)
        return counted

    def is_new(self, codes: Codes, again: Collection[str]) -> NDArray[np.bool_]:
        """Return a mask of the codes of points to compute.

        Args:
            codes: Codes of points of a section.
            again: Statuses of stored points that are computed again.
        """
        wanted = np.zeros(256, np.bool_)
        wanted[[NEW, *(code for word, code in self._codes.items() if word in again)]] = True
        new: NDArray[np.bool_] = wanted[codes]
        return new

    def _kinds(self) -> Mapping[str, list[Section]]:
        of_problem: dict[str, list[Section]] = {}
        for section in self.sections:
            of_problem.setdefault(section.box.kind.name, []).append(section)
        return of_problem

    def _listed(self, store: "Store") -> set[str]:
        return {name for problem in self._kinds() for name in store.names(problem)}

    def _update(self, store: "Store") -> None:
        if not self._listed(store) >= self._read:  # replaced, or removed
            for section in self.sections:
                np.copyto(section.codes, NEW, where=section.codes != EXCLUDED)
            self._read.clear()
            self.parts.clear()
            self._contested.clear()
        for points in self._points(store, without=self._read):
            for number, section in enumerate(self.sections):
                self._take(number, section, points)
            self._read.add(points.part)
        if self._contested:
            self._settle(store)

    def _points(self, store: "Store", without: Collection[str]) -> Iterator["StoredPoints"]:
        for sections in self._kinds().values():
            yield from store.points(sections[0].box.kind, without)

    def _take(self, number: int, section: Section, points: "StoredPoints") -> None:
        """Enter the points of a part into a section."""
        numbers, rows = self._found(section, points)
        if not len(numbers):
            return
        self.parts.add(points.part)
        codes = self._codes_of(points)[rows]
        before = section.codes[numbers]
        np.maximum.at(section.codes, numbers, codes)
        after = section.codes[numbers]
        doubtful = (
            _is_failure(codes)
            & _is_failure(after)
            & ((codes != after) | (_is_failure(before) & (codes != before)))
        )
        self._contested |= {(number, each) for each in numbers[doubtful].tolist()}

    def _found(self, section: Section, points: "StoredPoints") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the points of a part that are in a section, and their rows."""
        nothing = np.empty(0, np.int64)
        if (
            points.part.partition("/")[0] != f"problem={section.box.kind.name}"
            or section.key not in points.methods
        ):
            return nothing, nothing
        rows = np.flatnonzero(points.method == points.methods.index(section.key))
        numbers = section.box.numbers({name: values[rows] for name, values in points.fields.items()})
        known = numbers >= 0
        known[known] = section.codes[numbers[known]] != EXCLUDED
        return numbers[known], rows[known]

    def _codes_of(self, points: "StoredPoints") -> Codes:
        """Return the code of each row; a status that this release lacks counts as a failure."""
        for word in points.statuses:
            if word not in self._codes:
                self._codes[word] = (
                    len(self._codes) - 1
                )  # two of them are answers, whose codes are the highest
        return np.array([self._codes[word] for word in points.statuses], np.uint8)[points.status]

    def _settle(self, store: "Store") -> None:
        """Give points with different failures that of the earliest row, as the views do."""
        best: dict[tuple[int, int], tuple[int, str, int]] = {}
        for points in self._points(store, without=()):
            for number, section in enumerate(self.sections):
                numbers, rows = self._found(section, points)
                codes = self._codes_of(points)
                for each, row in zip(numbers.tolist(), rows.tolist(), strict=True):
                    place = number, each
                    if place in self._contested and _LEAST_FAILURE <= codes[row] < _LEAST_ANSWER:
                        found = int(points.finished_at[row]), points.part, int(codes[row])
                        best[place] = min(best.get(place, found), found)
        for (number, each), (_, _, code) in best.items():
            if self.sections[number].codes[each] < _LEAST_ANSWER:
                self.sections[number].codes[each] = code
        self._contested.clear()


def _is_failure(codes: Codes) -> NDArray[np.bool_]:
    return (codes >= _LEAST_FAILURE) & (codes < _LEAST_ANSWER)


def _histogram(section: Section) -> NDArray[np.int64]:
    """Return the number of occurrences of each code."""
    found = np.zeros(256, np.int64)
    for numbers in chunks(section.size):  # numpy counts in a copy of eight bytes for each code
        found += np.bincount(section.codes[numbers[0] : numbers[-1] + 1], minlength=256)
    return found
