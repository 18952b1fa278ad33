"""Lookup of the bracket that the store proves for a problem, on or off the grid, without interpolation."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privcore.answer import Interval, attributed, tables_of
from privcore.numerics.profile_chord import epsilon_above, epsilon_below
from privcore.parameter import Choice, Text, Value
from privcore.problem import LookupAxis, Problem, Trend
from storage.errors import ContradictionError
from storage.schema import IMPORTS, import_text
from storage.sql.views import quoted, quoted_product, remedy, view_name

# Ends that follow from two stored problems, by the convexity of the privacy profile between their deltas.

NEAREST = 4
"""Stored values on each side of a question whose corners are combined."""


class Corner(NamedTuple):
    """An end of a stored bracket, its method, the fields of its problem, and the id of its row, if any."""

    bound: float
    method: str | None = None
    fields: dict[str, Value] | None = None
    point: str | None = None


NOTHING = {"lower": Corner(0.0), "upper": Corner(math.inf)}
"""The trivial ends, without a stored bracket."""


Ends = dict[str, tuple[Corner, ...]]
"""For `lower` and `upper`, the corner that gives the end; or, by convexity, two, the first with the end."""


def neighbours(stored: Sequence[Any], value: Any) -> list[Any]:
    """Return the nearest stored values on both sides of a value; none if the value itself is stored.

    Args:
        stored: Stored values in order.
        value: The value of the question.

    Example:
        >>> neighbours([1e-8, 1e-6, 1e-5], 3e-6), neighbours([1e-8, 1e-6, 1e-5], 1e-6)
        ([1e-08, 1e-06, 1e-05], [])
    """
    place = bisect_left(stored, value)
    if place != bisect_right(stored, value):
        return []
    return [*stored[max(0, place - NEAREST) : place], *stored[place : place + NEAREST]]


def best_ends(problem: Problem, own: tuple[Corner, Corner], others: Sequence[tuple[Corner, Corner]]) -> Ends:
    """Return the best ends of a question: those of its corners, or better ones by convexity.

    A corner of the question with another delta bounds the question's other fields at the delta of the corner
    itself, so its own delta is used.

    Args:
        problem: The question.
        own: The corners below and above of the question.
        others: For each neighbouring delta in order, the corners below and above of the question at it.
    """
    found: Ends = {"lower": own[:1], "upper": own[1:]}
    for name in problem.exp_convex:
        asked = getattr(problem, name)
        lowers = [(float(low.fields[name]), low) for low, _ in others if low.fields is not None]
        uppers = [(float(high.fields[name]), high) for _, high in others if high.fields is not None]
        for at, near in uppers:
            for further, far in uppers:
                if at < asked < further:
                    bound = epsilon_above(asked, (at, near.bound), (further, far.bound))
                    if bound < found["upper"][0].bound:
                        found["upper"] = (near._replace(bound=bound), far)
        for at, near in lowers:
            for further, far in uppers:
                if asked < at < further or further < at < asked:
                    bound = epsilon_below(asked, (at, near.bound), (further, far.bound))
                    if bound > found["lower"][0].bound:
                        found["lower"] = (near._replace(bound=bound), far)
    return found


# The monotone index: for each cell of the grid of stored values, the stored brackets with the best ends.
#
# A lookup between grid points needs the best bracket among all stored problems whose truth is proved at
# least as large (for upper ends) or at most as large (for lower ends). On ten million rows this search
# takes a tenth of a second. Its result depends only on the cell, between stored values, that contains the
# question, so it is tabulated once, by a running minimum along every axis.

SPARSE = 2.0
"""Most cells for each stored problem: a sparser grid is not tabulated, and lookups search the brackets."""
SMALL = 2_000_000
"""Number of cells up to which a grid is tabulated even if it is sparse."""
LARGEST_AXIS = 2_000
"""Most values of a field for which a grid is tabulated, since a lookup reads all of them."""

Integers = npt.NDArray[np.int64]
Column = npt.NDArray[np.generic]


def add_monotone_index(connection: duckdb.DuckDBPyConnection, kind: type[Problem]) -> None:
    """Tabulate the best corners of a problem's stored brackets, which are sorted in `brackets.<problem>`.

    `axes.<problem>` gets the stored values of every axis. `corners.<problem>` gets a row for each cell of
    their product, the last axis fastest: `lower_row` and `upper_row` are row numbers of brackets, or -1.
    Both tables stay empty if no axis has a proved trend, or the grid is too sparse.
    """
    view = view_name(kind.name)
    connection.execute(f'create table axes."{view}" (field varchar, number double, word varchar)')
    connection.execute(f'create table corners."{view}" (lower_row integer, upper_row integer)')
    count = connection.execute(f'select count(*) from brackets."{view}"').fetchall()[0][0]
    if not count or not kind.monotone:
        return
    axes = kind.lookup_axes()
    lengths = ", ".join(f"approx_count_distinct({quoted_product(axis)})" for axis in axes)
    about = connection.execute(f'select {lengths} from brackets."{view}"').fetchall()[0]
    if max(about) > 2 * LARGEST_AXIS:
        return
    for axis in axes:
        column = "word" if _is_word(kind, axis) else "number"
        connection.execute(
            f"""
            insert into axes."{view}" (field, {column})
            select distinct '{axis.name}', {quoted_product(axis)} from brackets."{view}" order by 2
            """
        )
    shape = tuple(len(_values(connection, kind, axis)) for axis in axes)
    if max(shape) > LARGEST_AXIS or math.prod(shape) > max(SMALL, SPARSE * count):
        connection.execute(f'delete from axes."{view}"')
        return
    cell = _cells(connection, kind, shape)
    lower = _best(connection, kind, shape, cell, "lower")
    upper = _best(connection, kind, shape, cell, "upper")
    connection.register("rows", pa.table({"lower_row": lower, "upper_row": upper}))
    connection.execute(f'insert into corners."{view}" select lower_row, upper_row from rows')
    connection.unregister("rows")


def relation(axis: LookupAxis, end: str) -> str:
    """Return the relation of a corner to the question on this axis: `=`, `<=` or `>=`.

    The truth at a corner above is at least as large as at the question.

    Args:
        axis: The quantity that is compared.
        end: `upper` for corners above, `lower` for corners below.
    """
    if axis.monotone is None:
        return "="
    grows = axis.monotone.trend is Trend.INCREASING
    return ">=" if grows == (end == "upper") else "<="


def _is_word(kind: type[Problem], axis: LookupAxis) -> bool:
    """Return whether the values on an axis are strings."""
    return isinstance(kind.parameters[axis.factors[0]], Choice | Text)


def _column(connection: duckdb.DuckDBPyConnection, query: str) -> Column:
    return connection.sql(query).to_arrow_table().column(0).to_numpy()  # type: ignore[no-any-return]


def _values(connection: duckdb.DuckDBPyConnection, kind: type[Problem], axis: LookupAxis) -> Column:
    """Return the stored values on an axis, sorted."""
    column = "word" if _is_word(kind, axis) else "number"
    query = f"select {column} from axes.\"{view_name(kind.name)}\" where field = '{axis.name}' order by 1"
    return _column(connection, query)


def _cells(connection: duckdb.DuckDBPyConnection, kind: type[Problem], shape: tuple[int, ...]) -> Integers:
    """Return the cell number of every bracket, in the order of the rows."""
    cell: Integers = np.zeros(1, np.int64)
    for axis, length in zip(kind.lookup_axes(), shape, strict=True):
        values = _values(connection, kind, axis)
        query = f'select {quoted_product(axis)} from brackets."{view_name(kind.name)}" order by rowid'
        stored = _column(connection, query)
        cell = cell * length + np.searchsorted(values, stored)
    return cell


def _best(
    connection: duckdb.DuckDBPyConnection,
    kind: type[Problem],
    shape: tuple[int, ...],
    cell: Integers,
    end: str,
) -> npt.NDArray[np.int32]:
    """Return, for every cell, the row of the bracket with the best end."""
    sign = 1.0 if end == "upper" else -1.0
    signed = f"if({end}_method is null, 'inf', {sign} * {end})"
    query = f'select {signed} from brackets."{view_name(kind.name)}" order by rowid'
    ends: npt.NDArray[np.float64] = _column(connection, query).astype(np.float64)
    order = np.arange(len(cell))
    if kind.products or kind.irrelevant:  # a cell may have several rows: the best is written last,
        order = np.lexsort((-order, -ends))  # and of rows with equal ends, the first
    best = np.full(math.prod(shape), np.inf)
    best[cell[order]] = ends[order]
    row = np.full(math.prod(shape), -1, np.int32)
    row[cell[order]] = np.where(np.isinf(ends[order]), -1, order)
    best, row = best.reshape(shape), row.reshape(shape)
    for number, axis in enumerate(kind.lookup_axes()):
        if axis.monotone is None:
            continue
        # The corners for the upper end of a cell lie in the direction of larger truth.
        larger_first = relation(axis, end) == ">="
        ends_along, rows_along = np.moveaxis(best, number, 0), np.moveaxis(row, number, 0)
        if larger_first:
            ends_along, rows_along = ends_along[::-1], rows_along[::-1]
        for k in range(1, len(ends_along)):
            better = ends_along[k - 1] < ends_along[k]  # strictly: on a tie, the cell's own bracket stays
            # The ellipsis keeps an array if the problem has a single field.
            np.copyto(ends_along[k, ...], ends_along[k - 1], where=better)
            np.copyto(rows_along[k, ...], rows_along[k - 1], where=better)
    return row.ravel()


@dataclass(frozen=True, kw_only=True)
class Found(Interval):
    """A rigorous bracket from the store.

    Attributes:
        exact: Whether the problem itself is stored.
        lower_from: Fields of the stored problem that gave the lower end, or None.
        upper_from: Fields of the stored problem that gave the upper end, or None.
        lower_method: Method that gave the lower end, attributed to published tables of its rows; or None.
        upper_method: Method that gave the upper end, in the same way.
        lower_also: If the lower end follows by convexity from two stored problems, the fields of the second
            one, whose upper end is used; else None.
        upper_also: The same for the upper end.
        lower_also_method: Method that gave the upper end of the second problem, or None.
        upper_also_method: The same for the upper end.
        assumed: Assumption behind the question, if it takes a column of a file as a distribution; else empty.
        neighbours: Neighbouring relation of an audit, such as `add-remove`; else empty.
    """

    exact: bool
    lower_from: Mapping[str, Value] | None
    upper_from: Mapping[str, Value] | None
    lower_method: str | None
    upper_method: str | None
    lower_also: Mapping[str, Value] | None = None
    upper_also: Mapping[str, Value] | None = None
    lower_also_method: str | None = None
    upper_also_method: str | None = None
    assumed: str = ""
    neighbours: str = ""

    @property
    def tables(self) -> tuple[str, ...]:
        """Published tables with rows that gave the ends, as a column of the macros."""
        return tuple(sorted(tables_of(self.lower_method, self.upper_method)))


def lookup(connection: duckdb.DuckDBPyConnection, problem: Problem) -> Found | None:
    """Return the best bracket that follows from stored brackets and proved monotonicity, or None.

    The axes of a problem are its fields, and products of fields that alone matter. A stored problem is a
    corner above if every axis with a proved trend gives a truth at least as large, and every other axis is
    equal; its upper bound then holds for the question too. Corners below give the lower bound. Of equal
    bounds, that of the question itself is taken. Between stored values of a field in which the exponential of
    the truth is proved to be convex, two corners together give better ends (`storage.sql.lookup`).

    Args:
        connection: Connection to a snapshot.
        problem: The question.

    Raises:
        ContradictionError: Two stored brackets contradict one another, so neither can be trusted.
    """
    try:
        used = _ends(connection, problem)
    except duckdb.CatalogException:  # the problem has no method, and no row
        return None
    if all(each.fields is None for each, *_ in used.values()):
        return None
    fields = problem.as_fields()
    exact = all(each.fields == fields for each, *_ in used.values())
    if not exact and (own := _bracket(connection, problem, f"where {_equal(problem)}", [*fields.values()])):
        exact = True
        for end, (first, *_) in used.items():
            if first.fields is not None and own[end].bound == first.bound:
                used[end] = (own[end],)
    lower, upper = (each.bound for each, *_ in used.values())
    tables = _tables(connection, [each.point for several in used.values() for each in several])
    origin: dict[str, Any] = {}
    for end, (near, *others) in used.items():
        by = near.method and attributed(near.method, *(tables.get(each.point) for each in used[end]))
        origin |= {f"{end}_from": near.fields, f"{end}_method": by}
        for far in others:
            origin |= {f"{end}_also": far.fields, f"{end}_also_method": far.method}
    if lower > upper:
        below, above = (
            f"{by}{import_text(tables_of(by), ' ({})')}"
            for by in (origin["lower_method"], origin["upper_method"])
        )
        raise ContradictionError(
            f"contradicts itself about {problem.name}: {below} has at least {lower!r} "
            f"for {_place(used['lower'])}, but {above} at most {upper!r} for {_place(used['upper'])}",
            f"see the view conflicts; {remedy(tables.values())}",
        )
    return Found(
        lower=lower,
        upper=upper,
        exact=exact,
        assumed=problem.assumption(),
        neighbours=problem.relation(),
        **origin,
    )


def _tables(connection: duckdb.DuckDBPyConnection, points: Sequence[str | None]) -> dict[str | None, str]:
    """Return the published tables of those rows that came from one, by the ids of the rows."""
    query = f"select point_id, source from {IMPORTS} where list_contains(?, point_id)"
    return dict(connection.execute(query, [[each for each in points if each]]).fetchall())


def _place(corners: Sequence[Corner]) -> str:
    """Return the stored problems behind an end, in words."""
    near, *far = (each.fields for each in corners)
    return f"a point between {near} and {far[0]}, by convexity" if far else str(near)


def _ends(connection: duckdb.DuckDBPyConnection, problem: Problem) -> Ends:
    """Return the best ends, also those by convexity between corners at other deltas."""
    values = _stored_values(connection, problem)
    questions = [problem]
    for name in problem.exp_convex:
        stored = values[name] if values else _distinct(connection, problem, name)
        questions += [
            replace(problem, **{name: value}) for value in neighbours(stored, getattr(problem, name))
        ]
    if values:
        own, *others = _tabulated(connection, values, questions)
    else:
        own, *others = (_searched(connection, question) for question in questions)
    return best_ends(problem, own, others)


def _stored_values(connection: duckdb.DuckDBPyConnection, problem: Problem) -> dict[str, list[Value]]:
    """Return the stored values on every axis in order; empty if the monotone index was not built."""
    values: dict[str, list[Value]] = {}
    query = f'select field, number, word from axes."{view_name(problem.name)}"'
    for field, number, word in connection.execute(query).fetchall():
        values.setdefault(field, []).append(number if word is None else word)
    return values


def _distinct(connection: duckdb.DuckDBPyConnection, problem: Problem, name: str) -> list[Any]:
    """Return the stored values of a field in order."""
    query = f'select distinct "{name}" from brackets."{view_name(problem.name)}" order by 1'
    return [value for (value,) in connection.execute(query).fetchall()]


def _tabulated(
    connection: duckdb.DuckDBPyConnection, values: Mapping[str, Sequence[Any]], questions: Sequence[Problem]
) -> list[tuple[Corner, Corner]]:
    """Return the best corners below and above of several questions from the monotone index.

    A question beyond the stored values, or between the values of an axis without a proved trend, has no
    corner.
    """
    view = view_name(questions[0].name)
    cells = [tuple(_cell(question, values, end) for end in ("lower", "upper")) for question in questions]
    rows: dict[int | None, tuple[int, int]] = {None: (-1, -1)}
    if wanted := sorted({cell for pair in cells for cell in pair if cell is not None}):
        each = (
            f'select {cell}, lower_row, upper_row from corners."{view}" where rowid = {cell}'
            for cell in wanted
        )
        for cell, lower, upper in connection.execute(" union all ".join(each)).fetchall():
            rows[cell] = lower, upper
    pairs = [(rows[below][0], rows[above][1]) for below, above in cells]
    found = {
        row: _bracket(connection, questions[0], f"where rowid = {row}")
        for row in sorted({row for pair in pairs for row in pair} - {-1})
    }
    return [
        ((found.get(lower) or NOTHING)["lower"], (found.get(upper) or NOTHING)["upper"])
        for lower, upper in pairs
    ]


def _cell(problem: Problem, values: Mapping[str, Sequence[Any]], end: str) -> int | None:
    """Return the number of the cell of a question for one end, or None."""
    cell = 0
    fields = problem.as_fields()
    for axis in problem.lookup_axes():
        stored, value = values[axis.name], axis.value(fields)
        at_most = relation(axis, end) == "<="
        index = bisect_right(stored, value) - 1 if at_most else bisect_left(stored, value)
        if not 0 <= index < len(stored) or (axis.monotone is None and stored[index] != value):
            return None
        cell = cell * len(stored) + index
    return cell


def _searched(connection: duckdb.DuckDBPyConnection, problem: Problem) -> tuple[Corner, Corner]:
    """Return the best corners below and above by a search of all brackets."""
    found = []
    axes, given = problem.lookup_axes(), problem.as_fields()
    values = [*(axis.value(given) for axis in axes), *given.values()]
    for end in ("lower", "upper"):
        corner = " and ".join(f"{quoted_product(axis)} {relation(axis, end)} ?" for axis in axes)
        order = f"{end} {'asc' if end == 'upper' else 'desc'}, ({_equal(problem)}) desc"
        fields = quoted(problem.parameters)
        condition = f"where {corner} and {end}_method is not null order by {order}, {fields} limit 1"
        found.append((_bracket(connection, problem, condition, values) or NOTHING)[end])
    return found[0], found[1]


def _bracket(
    connection: duckdb.DuckDBPyConnection, problem: Problem, condition: str, values: Sequence[Value] = ()
) -> Mapping[str, Corner] | None:
    """Return the ends of the first stored bracket under a condition, or None."""
    ends = "lower, lower_method, lower_point, upper, upper_method, upper_point"
    query = (
        f'select {ends}, {quoted(problem.parameters)} from brackets."{view_name(problem.name)}" {condition}'
    )
    if (row := connection.execute(query, values).fetchone()) is None:
        return None
    fields = dict(zip(problem.parameters, row[6:], strict=True))
    return {
        end: Corner(bound=bound, method=method, fields=fields, point=point)
        for end, (bound, method, point) in (("lower", row[:3]), ("upper", row[3:6]))
    }


def _equal(problem: Problem) -> str:
    return " and ".join(f'"{name}" = ?' for name in problem.parameters)
