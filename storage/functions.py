"""Python functions of a query: SQL functions with named arguments, evaluated a block of rows at a time."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

_NUMBERS = itertools.count()
_ARROW = {"double": pa.float64(), "varchar": pa.string()}


@dataclass(frozen=True, kw_only=True)
class SqlFunction:
    """A function that queries can call, for example `certified_epsilon(sigma := 1, steps := 100)`.

    Attributes:
        name: Its name in SQL.
        arguments: SQL type by name; an argument that is left out is null.
        returns: SQL type by name of each field of its value, a struct: double or varchar.
        call: Function of a list of rows, each a mapping of all arguments, that returns a list of values.
    """

    name: str
    arguments: Mapping[str, str]
    returns: Mapping[str, str]
    call: Callable[[list[dict[str, Any]]], list[Any]]


@contextmanager
def registered(cursor: duckdb.DuckDBPyConnection, functions: Sequence[SqlFunction]) -> Iterator[None]:
    """Make functions known to a cursor while the block runs.

    Args:
        cursor: A cursor on a snapshot.
        functions: The functions.
    """
    names = []
    try:
        for function in functions:
            # Functions belong to the whole database, so the name is unique; macros belong to the cursor.
            names.append(name := f"{function.name}_{next(_NUMBERS)}")
            cursor.create_function(
                name,
                _on_rows(function),
                [_struct(function.arguments)],
                _struct(function.returns),
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )
            given = ", ".join(f"{argument} := null" for argument in function.arguments)
            cast = (f"{argument} := {argument}::{kind}" for argument, kind in function.arguments.items())
            macro = f"create or replace temp macro {function.name}({given}) as"
            cursor.execute(f"{macro} {name}(struct_pack({', '.join(cast)}))")
        yield
    finally:
        for name in names:
            cursor.remove_function(name)


def _struct(fields: Mapping[str, str]) -> str:
    """Return the SQL type of a struct."""
    return f"struct({', '.join(f'{name} {kind}' for name, kind in fields.items())})"


def _on_rows(function: SqlFunction) -> Callable[[pa.ChunkedArray], pa.Array]:
    """Return the function that DuckDB calls with a block of rows."""
    arrow = pa.struct([(name, _ARROW[kind]) for name, kind in function.returns.items()])

    def on_rows(rows: pa.ChunkedArray) -> pa.Array:
        return pa.array(function.call(rows.to_pylist()), type=arrow)

    return on_rows
