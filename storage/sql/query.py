"""One SELECT of a user on a snapshot, within limits of time and memory, and the functions that it calls."""

import itertools
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from privcore.errors import LimitError
from storage.errors import QueryError

# Python functions of a query: SQL functions with named arguments, evaluated a block of rows at a time.

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


LIMIT_BYTES = 2_000_000_000
ROWS = 10_000
"""Least number of rows in a piece of a result; Python objects for twice as many fit into memory."""
_AROUND = re.compile(r"^Invalid Input Error: Python exception occurred while executing the UDF: \w+: ")
_DESCRIBING = re.compile(r"\s*describe\b", re.IGNORECASE)
_COMMENT = "(select any_value(c.comment) from duckdb_columns() as c where c.column_name = d.column_name)"
_READING = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


def run_query(cursor: duckdb.DuckDBPyConnection, query: str, limit_seconds: float) -> pa.Table:
    """Return the result of one SELECT, whose bytes DuckDB's memory limit does not include.

    Args:
        cursor: As for `pieces`.
        query: The SQL.
        limit_seconds: Time limit in seconds; infinity means no limit.

    Raises:
        QueryError: The query is not one valid SELECT, or the limit is negative or NaN.
        LimitError: The query took too long, needed too much memory, or returned too many bytes.
    """
    found, size = [], 0
    with closing(pieces(cursor, query, limit_seconds)) as results:
        for piece in results:
            size += piece.nbytes
            if size > LIMIT_BYTES:
                raise LimitError(
                    f"The result exceeds {LIMIT_BYTES / 1e9:g} GB; select fewer rows or columns."
                )
            found.append(piece)
    return pa.concat_tables(found)


def pieces(
    cursor: duckdb.DuckDBPyConnection, query: str, limit_seconds: float
) -> Generator[pa.Table, None, None]:
    """Yield the result of one SELECT while DuckDB computes it; there is a piece also without rows.

    The limit counts the time of DuckDB and the processor time of the caller between two pieces. It does not
    count the time in which a pager or another reader of a pipe makes the caller wait.

    Args:
        cursor: A cursor on a snapshot that nothing else uses, since the time limit interrupts it.
        query: The SQL.
        limit_seconds: Time limit in seconds; infinity means no limit.

    Raises:
        QueryError: The query is not one valid SELECT, or the limit is negative or NaN.
        LimitError: The query took too long, or needed too much memory.
    """
    if not limit_seconds >= 0:
        raise QueryError(f"Expected a limit of at least 0 seconds, got {limit_seconds:g}.")
    _refuse_all_but_select(cursor, query)
    if _DESCRIBING.match(query):  # DuckDB's table lacks the comments
        query = f"select d.*, {_COMMENT} as comment from (\n{_bare(query)}\n) as d"
    left = limit_seconds
    opened: list[pa.RecordBatchReader] = []  # the cursor runs nothing else until it is closed
    # In a separate thread, because DuckDB would delay Ctrl-C until the end of the query.
    with ThreadPoolExecutor(max_workers=1) as thread:

        def in_time(step: Callable[[], Any]) -> Any:
            nonlocal left
            start, running = time.monotonic(), thread.submit(_explained, step)
            try:
                wait([running], timeout=min(max(left, 0.0), threading.TIMEOUT_MAX))
            finally:
                done = _stop(cursor, running)
            left -= time.monotonic() - start
            if not done:
                raise LimitError(f"The query took longer than {limit_seconds:g} s.")
            return running.result()

        try:
            in_time(lambda: opened.append(cursor.sql(query).to_arrow_reader(ROWS)))
            (reader,) = opened
            held: list[pa.RecordBatch] = []
            begun = False
            while (batch := in_time(lambda: next(reader, None))) is not None:
                held.append(batch)
                if sum(each.num_rows for each in held) >= ROWS:
                    used = time.thread_time()
                    yield pa.Table.from_batches(held)
                    left -= time.thread_time() - used
                    held, begun = [], True
            if held or not begun:
                yield pa.Table.from_batches(held, schema=reader.schema)
        finally:
            for each in opened:
                each.close()


def _stop(cursor: duckdb.DuckDBPyConnection, running: Future[Any]) -> bool:
    """Return whether the query ended in time; if not, interrupt it until it ends."""
    in_time = running.done()
    while not running.done():
        cursor.interrupt()
        wait([running], timeout=0.1)
    return in_time


def _refuse_all_but_select(cursor: duckdb.DuckDBPyConnection, query: str) -> None:
    try:
        query.encode()
        statements = cursor.extract_statements(query)
    except UnicodeEncodeError as error:  # a byte on the command line that is not UTF-8
        raise QueryError(
            f"Expected text in UTF-8, got an invalid byte at character {error.start + 1}."
        ) from error
    except duckdb.Error as error:
        raise QueryError(_sentence(error)) from error
    if len(statements) != 1:
        raise QueryError(f"Expected one SELECT, got {len(statements)} statements.")
    (statement,) = statements
    if statement.type is duckdb.StatementType.MULTI:  # its first statement collects the columns of a PIVOT
        with suppress(duckdb.Error):  # only queries can be in parentheses
            if len(cursor.extract_statements(f"from (\n{_bare(statement.query)}\n)")) == 1:
                return
        raise QueryError("Expected one SELECT, got another statement around a PIVOT.")
    if statement.type not in _READING:
        raise QueryError(f"Expected one SELECT, got {statement.type.name}.")


def _bare(query: str) -> str:
    """Return a statement without its semicolon."""
    return query.strip("; \t\r\n")


def _explained(step: Callable[[], Any]) -> Any:
    """Return the value of a step of DuckDB; its errors, also in the middle of a result, are sentences."""
    try:
        return step()
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if "Out of Memory" in str(error):
            raise LimitError(f"The query needs too much memory: {_sentence(error)}") from error
        raise QueryError(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    """Return the first line of an error as a sentence, without the words around an error of a function."""
    line = _AROUND.sub("", str(error).splitlines()[0])
    return f"{line.rstrip('.!')}."
