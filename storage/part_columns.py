"""The columns of a part, in the names, words and defaults of this release."""

from collections.abc import Sequence

import pyarrow as pa

from privcore import PROBLEMS, Problem
from privcore.parameter import Choice, Value
from storage.errors import DamagedError, StoreError
from storage.schema import schema_for


def conform(shown: str, of: str, table: pa.Table, wanted: Sequence[str] | None) -> pa.Table:
    """Return the rows of a part with the columns of this release.

    A problem unknown to this release keeps its columns. An unknown column is refused, since it could change
    the meaning of a row.

    Args:
        shown: Name of the part, for messages.
        of: Name of the problem.
        table: The rows, with the columns of the part.
        wanted: The columns to return, or None for all.

    Raises:
        DamagedError: A column is missing, of another type, or without a value.
        StoreError: A column is unknown to this release.
    """
    problem = PROBLEMS.get(of)
    if problem is None:
        return table
    schema = schema_for(problem)
    table = _without_former(table, problem)
    if wanted is not None:
        schema = pa.schema([schema.field(name) for name in wanted], metadata=schema.metadata)
    if table.schema == schema:
        return table
    for name in table.column_names:
        if name not in schema.names:
            raise StoreError(
                f"{shown} has the column {name[:60]}, which this release cannot read: update privsweep."
            )
    defaults = problem.defaults()
    columns = [_column(shown, table, field, defaults.get(field.name)) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def refuse_other_text(shown: str, table: pa.Table) -> None:
    """Raise `DamagedError` for a part with text that is not UTF-8."""
    if name := not_utf8(table):
        raise DamagedError(
            f"{shown} has text that is not UTF-8 in the column {name[:60]}; "
            "`privsweep repair` will quarantine it."
        )


def not_utf8(table: pa.Table) -> str:
    """Return the name of a column with text that is not UTF-8, or "".

    Parquet stores any bytes as text, but neither Python nor DuckDB can read bytes that are not UTF-8.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_primitive(column.type):  # numbers and times have no text
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                return str(name)
    return ""


def _without_former(table: pa.Table, problem: type[Problem]) -> pa.Table:
    """Return the table with the words of this release instead of those of earlier releases."""
    for place, field in enumerate(table.schema):
        parameter = problem.parameters.get(field.name)
        if isinstance(parameter, Choice) and parameter.former:
            former = dict(parameter.former)
            words = [former.get(word, word) for word in table.column(place).to_pylist()]
            table = table.set_column(place, field, pa.chunked_array([pa.array(words, field.type)]))
    return table


def _column(shown: str, table: pa.Table, field: pa.Field, default: Value | None) -> pa.ChunkedArray:
    """Return one column of this release; missing values of a field become its default.

    Parts older than the field lack the column, and tools that merge parts by name leave nulls.
    """
    if field.name in table.column_names:
        column = table[field.name]
        if column.type != field.type:
            raise DamagedError(
                f"{shown} has the column {field.name} as {str(column.type)[:60]}, expected {field.type}."
            )
    elif default is not None or field.nullable:
        column = pa.chunked_array([pa.nulls(len(table), field.type)])
    else:
        raise DamagedError(f"{shown} lacks the column {field.name}.")
    if default is not None:
        column = column.fill_null(pa.scalar(default, field.type))
    if column.null_count and not field.nullable:
        raise DamagedError(f"{shown} has rows without a value in the column {field.name}.")
    return column
