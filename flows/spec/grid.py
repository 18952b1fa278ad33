"""Grids of points: counted without being expanded, expanded lazily."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from random import Random

from flows.spec.condition import Condition
from flows.spec.fields import problem_fields
from privcore.errors import DomainError
from privcore.method import Method
from privcore.parameter import Integer, Parameter, Value
from privcore.point import Point
from privcore.problem import Problem

DIGITS = 12
"""Significant digits of generated values: machines may differ in the last bit of a logarithm."""
KEPT = 100_000
"""Largest number of values of an axis that are kept: an inner axis is used again and again."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The values that one parameter takes: listed, or generated on demand.

    Attributes:
        parameter: The parameter.
        rule: `list`, `linear`, `geometric` or `range`.
        numbers: The values of a list; [first, last, count] of linear and geometric; [first, last, step]
            of range. Both ends belong to the axis (a range stops before it would pass its end).
    """

    parameter: Parameter
    rule: str
    numbers: tuple[Value, ...]

    @property
    def size(self) -> int:
        """Number of values, exact at any size."""
        if self.rule == "list":
            return len(self.numbers)
        if self.rule == "range":
            first, last, step = (_exact(x) for x in self.numbers)
            return math.floor((last - first) / step) + 1
        return int(self.numbers[2])

    def __iter__(self) -> Iterator[Value]:
        """Yield the values in order, each rounded to 12 significant digits and checked."""
        if self.rule == "list":
            return iter(self.numbers)
        return iter(self._kept) if self.size <= KEPT else self._generated()

    @cached_property
    def _kept(self) -> tuple[Value, ...]:
        return tuple(self._generated())

    def __getitem__(self, index: int) -> Value:
        """Return one value, rounded and checked in the same way."""
        if self.rule == "list":
            return self.numbers[index]
        return self._value(index)

    def _generated(self) -> Iterator[Value]:
        """Yield the values of a rule."""
        return map(self._value, itertools.takewhile(self.size.__gt__, itertools.count()))

    @cached_property
    def _line(self) -> tuple[int, int, int]:
        """Whole numbers a, b and c: value i is (a + b i) / c; on a geometric axis, only the ends are."""
        first, last, third = (_exact(x) for x in self.numbers)
        step = third if self.rule == "range" else (last - first) / (third - 1)
        scale = math.lcm(first.denominator, step.denominator)
        return int(first * scale), int(step * scale), scale

    def _value(self, i: int) -> Value:
        if self.rule == "geometric" and 0 < i < self.size - 1:  # the ends are as written
            first, last, count = map(float, self.numbers)
            x = first * (last / first) ** (i / (count - 1.0))
        else:
            start, step, scale = self._line
            x = (start + step * i) / scale  # rounded once
        rounded = float(f"{x:.{DIGITS}g}")
        whole = isinstance(self.parameter, Integer)
        return self.parameter.check(round(rounded) if whole else rounded)


def _exact(number: Value) -> Fraction:
    """Return the decimal number as it was written: 0.1 is a tenth."""
    return Fraction(str(number))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All combinations of the axes of `product` with the joint axis of `zip` that satisfy the condition.

    Attributes:
        problem: The kind of problem.
        methods: The methods that answer each of its problems.
        product: Axes that are combined with one another.
        zip: Axes that advance together.
        where: Condition on the points, or None.
        origin: File and line of the grid, for messages.
    """

    problem: type[Problem]
    methods: tuple[Method, ...]
    product: Mapping[str, Axis]
    zip: Mapping[str, Axis] = field(default_factory=dict)
    where: Condition | None = None
    origin: str = "grid"

    @property
    def candidates(self) -> int:
        """Number of points before `where`, without making one."""
        together = min((axis.size for axis in self.zip.values()), default=1)
        return math.prod(axis.size for axis in self.product.values()) * together * len(self.methods)

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of the grid, the first axis slowest.

        Raises:
            DomainError: Parameters contradict one another at a point that `where` does not exclude.
        """
        names = (*self.product, *self.zip)
        for values in _combinations(tuple(self.product.values())):
            for more in zip(*self.zip.values(), strict=True) if self.zip else ((),):
                problem = self.problem_of(dict(zip(names, (*values, *more), strict=True)))
                if problem is not None:
                    yield problem

    def drawn(self, tried: int, *, seed: int) -> Iterator[Problem]:
        """Yield the problems among this number of combinations, drawn with replacement.

        Raises:
            DomainError: As `problems` does.
        """
        random = Random(seed)
        together = min((axis.size for axis in self.zip.values()), default=1)
        for _ in range(tried):
            place = random.randrange(together)
            fields = {name: axis[random.randrange(axis.size)] for name, axis in self.product.items()}
            fields |= {name: axis[place] for name, axis in self.zip.items()}
            problem = self.problem_of(fields)
            if problem is not None:
                yield problem

    def problem_of(self, fields: Mapping[str, Value]) -> Problem | None:
        """Return the problem of a combination, or None if the condition excludes it.

        Args:
            fields: A value of each axis.

        Raises:
            DomainError: Parameters contradict one another.
        """
        try:
            if self.where is not None and "batch_size" in fields and self.where.excludes(fields):
                return None  # before sizes that contradict one another are refused
            own = problem_fields(self.problem, fields)
            every = {**self.problem.defaults(), **fields, **own}
            if self.where is not None and not self.where.holds(every):
                return None
            return self.problem(**own)
        except DomainError as error:
            raise DomainError(
                f"{self.origin}: {error} A condition `where` can exclude these points."
            ) from None


def _combinations(axes: Sequence[Axis]) -> Iterator[tuple[Value, ...]]:
    """Yield all combinations without holding an axis in memory, as `itertools.product` would."""
    if not axes:
        yield ()
        return
    for value in axes[0]:
        for rest in _combinations(axes[1:]):
            yield (value, *rest)


def count(grids: Sequence[Grid]) -> int:
    """Return the number of points of all grids before `where` and before duplicates are removed."""
    return sum(grid.candidates for grid in grids)


def expand(grids: Sequence[Grid]) -> Iterator[Point]:
    """Yield every point once, lazily; a point of several grids comes at its first occurrence.

    Raises:
        DomainError: Parameters contradict one another somewhere, or a grid has no point at all.
    """
    seen: set[bytes] = set()
    for grid in grids:
        empty = True
        for problem in grid.problems():
            empty = False
            for method in grid.methods:
                point = Point(problem=problem, method=method)
                key = bytes.fromhex(point.id)  # a third of the memory of the text
                if key not in seen:
                    seen.add(key)
                    yield point
        if empty:
            raise DomainError(
                f"{grid.origin}: Expected a condition `where` that leaves points, got an empty grid."
            )
