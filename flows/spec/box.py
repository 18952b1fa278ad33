"""The points of a grid by number: fields from numbers, and numbers from fields, without making the points.

A grid is a product of dimensions. The number of a point has the rows of the dimensions as its digits, the
first dimension slowest, which is the order in which a grid yields its points.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flows.spec.fields import are_own
from flows.spec.grid import Grid
from flows.spec.levels import Column, Levels, Numbers, place
from privcore.constraint import Constraint
from privcore.errors import DomainError
from privcore.parameter import Integer, Parameter, Real
from privcore.problem import Problem

Columns = Mapping[str, Column]

CHUNK = 1 << 18
"""Numbers that are handled together, a few megabytes for each column."""


def chunks(size: int) -> Iterator[Numbers]:
    """Yield the numbers below `size` in order, in arrays of at most `CHUNK`."""
    for start in range(0, size, CHUNK):
        yield np.arange(start, min(start + CHUNK, size))


class Dimension:
    """A factor of a grid: the values of an axis, or of axes that advance together, each row once.

    Args:
        columns: The values of each field; rows that occur again are left out.

    Attributes:
        columns: The values of each field, without these rows.
        levels: The distinct values of each field.
    """

    def __init__(self, columns: Columns) -> None:
        self.levels = {name: Levels(values) for name, values in columns.items()}
        self._joint: dict[str, Numbers] = {}
        keys = self._keys(columns, learn=True)
        _, first = np.unique(keys, return_index=True)
        first.sort()
        self.columns = {name: values[first] for name, values in columns.items()}
        self._row = np.empty(len(first), np.int64)  # of each key
        self._row[keys[first]] = np.arange(len(first))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._row)

    def rows(self, columns: Columns) -> Numbers:
        """Return the row that has these values, or -1, for each row of the columns."""
        keys = self._keys(columns, learn=False)
        return np.where(keys < 0, -1, self._row[keys])

    def ranks(self, names: list[str]) -> list[Numbers]:
        """Return the ranks of the values of each row among all values of a field."""
        return [self.levels[name].codes(self.columns[name]) for name in names]

    def _keys(self, columns: Columns, *, learn: bool) -> Numbers:
        """Return a number for each combination of values that occurs, below the number of combinations."""
        keys: Numbers = np.zeros(1, np.int64)
        for name, levels in self.levels.items():
            codes = levels.codes(columns[name])
            joint = np.where((keys < 0) | (codes < 0), -1, keys * len(levels) + codes)
            if learn:
                self._joint[name] = np.unique(joint)
            keys = place(self._joint[name], joint)
        return keys


class Box:
    """The problems of a grid by number, from 0; some numbers may be excluded.

    Steps that follow from examples and batch sizes make no product: such a grid is expanded, into one
    dimension.

    Args:
        grid: The grid.

    Attributes:
        kind: The kind of problem.
        dimensions: The dimensions, the first slowest.
        size: Number of numbers.

    Raises:
        DomainError: Parameters contradict one another at a point that `where` does not exclude, or `where`
            excludes all points.
    """

    def __init__(self, grid: Grid) -> None:
        self.kind = grid.problem
        self._allowed: NDArray[np.bool_] | None = None
        self._judges: list[tuple[int, int]] = []  # dimension, and its factor in `_allowed`
        defaults = self.kind.defaults()
        named = {*grid.product, *grid.zip}
        own = are_own(self.kind, named)
        if own:
            product = [{name: list(axis)} for name, axis in grid.product.items()]
            together = {name: list(axis) for name, axis in grid.zip.items()}
            given = [Dimension(self._typed(each)) for each in [*product, together] if each]
            rest = {name: [value] for name, value in defaults.items() if name not in named}
            self.dimensions = [*given, *([Dimension(self._typed(rest))] if rest else [])]
        else:
            problems = [problem.as_fields() for problem in grid.problems()]
            columns = {name: [fields[name] for fields in problems] for name in self.kind.parameters}
            self.dimensions = [Dimension(self._typed(columns))] if problems else []
        sizes = [len(dimension) for dimension in self.dimensions]
        self.size = math.prod(sizes) if sizes else 0
        self.factors = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
        if self.size and own:
            self._judge(grid)
        if not self.size or (self._allowed is not None and not self._allowed.any()):
            raise DomainError(
                f"{grid.origin}: Expected a condition `where` that leaves points, got an empty grid."
            )

    def _typed(self, columns: Mapping[str, list[Any]]) -> dict[str, Column]:
        """Return columns with the types that a store has for them."""
        return {name: np.array(values, _type(self.kind.parameters[name])) for name, values in columns.items()}

    def _judge(self, grid: Grid) -> None:
        """Decide which numbers are excluded, from the fields alone that conditions and constraints name."""
        names = set(grid.where.names) if grid.where is not None else set[str]()
        for constraint in self.kind.constraints:
            names |= _names(constraint)
        if not names:
            return
        known = names <= self.kind.parameters.keys()  # else a property, which may depend on any field
        judging = [not known or bool(names & d.columns.keys()) for d in self.dimensions]
        rows = [range(len(d)) if j else range(1) for d, j in zip(self.dimensions, judging, strict=True)]
        values = [
            [dict(zip(d.columns, row, strict=True)) for row in _python_rows(d, len(r))]
            for d, r in zip(self.dimensions, rows, strict=True)
        ]
        given = {*grid.product, *grid.zip}
        allowed = np.zeros(math.prod(map(len, rows)), np.bool_)
        for judged, parts in enumerate(itertools.product(*values)):
            fields = {name: value for part in parts for name, value in part.items() if name in given}
            allowed[judged] = grid.problem_of(fields) is not None
        if allowed.all():
            return
        self._allowed = allowed
        for k, judges in enumerate(judging):
            if judges:
                self._judges.append((k, math.prod(map(len, rows[k + 1 :]))))

    def excluded(self, numbers: Numbers) -> NDArray[np.bool_] | None:
        """Return a mask of the numbers that the grid excludes, or None if it excludes none at all."""
        if self._allowed is None:
            return None
        place = np.zeros(len(numbers), np.int64)
        for k, factor in self._judges:
            place += self.rows(k, numbers) * factor
        excluded: NDArray[np.bool_] = ~self._allowed[place]
        return excluded

    def rows(self, k: int, numbers: Numbers) -> Numbers:
        """Return the rows of dimension `k` at these numbers."""
        return numbers // self.factors[k] % len(self.dimensions[k])

    def columns(self, numbers: Numbers) -> dict[str, Column]:
        """Return the fields of the problems with these numbers, in the order of the problem's parameters."""
        found: dict[str, Column] = {}
        for k, dimension in enumerate(self.dimensions):
            rows = self.rows(k, numbers)
            found |= {name: values[rows] for name, values in dimension.columns.items()}
        return {name: found[name] for name in self.kind.parameters}

    def problem(self, number: int) -> Problem:
        """Return the problem with a number."""
        fields: dict[str, Any] = {}
        for dimension, factor in zip(self.dimensions, self.factors, strict=True):
            row = number // factor % len(dimension)
            fields |= {name: values.item(row) for name, values in dimension.columns.items()}
        return self.kind(**fields)

    def numbers(self, columns: Columns) -> Numbers:
        """Return the number of the problem in each row, excluded or not, or -1 if the grid lacks it.

        Args:
            columns: All fields of the problem.
        """
        found: Numbers = np.zeros(1, np.int64)
        for dimension, factor in zip(self.dimensions, self.factors, strict=True):
            rows = dimension.rows(columns)
            found = np.where((found < 0) | (rows < 0), -1, found + rows * factor)
        return found

    def meets(self, other: "Box") -> bool:
        """Return False only if no problem is in both boxes."""
        if self.kind is not other.kind:
            return False
        own, others = self.levels(), other.levels()
        return all(own[name].meets(others[name]) for name in own)

    def levels(self) -> dict[str, Levels]:
        """Return the distinct values of each field."""
        return {name: levels for dimension in self.dimensions for name, levels in dimension.levels.items()}


def _type(parameter: Parameter) -> Any:
    if isinstance(parameter, Real):
        return np.float64
    return np.int64 if isinstance(parameter, Integer) else object


def _python_rows(dimension: Dimension, count: int) -> Iterator[tuple[Any, ...]]:
    """Yield the first rows of a dimension as values of Python."""
    return zip(*(values[:count].tolist() for values in dimension.columns.values()), strict=True)


def _names(constraint: Constraint) -> set[str]:
    """Return the names of the fields, or properties, that a constraint reads."""
    return constraint.names | (_names(constraint.where) if constraint.where is not None else set())
