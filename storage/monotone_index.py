"""The monotone index: for each cell of the grid of stored values, the stored brackets with the best ends.

A lookup between grid points needs the best bracket among all stored problems whose truth is proved at least
as large (for upper ends) or at most as large (for lower ends). On ten million rows this search takes a tenth
of a second. Its result depends only on the cell, between stored values, that contains the question, so it is
tabulated once, by a running minimum along every axis.
"""

import math

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privcore.parameter import Choice, Text
from privcore.problem import LookupAxis, Problem, Trend
from storage.views import quoted_product, view_name

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
