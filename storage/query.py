"""One SELECT of a user on a snapshot, within limits of time and memory."""

import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait

import duckdb
import pyarrow as pa

from privcore.errors import LimitError
from storage.errors import QueryError

LIMIT_BYTES = 2_000_000_000
_AROUND = re.compile(r"^Invalid Input Error: Python exception occurred while executing the UDF: \w+: ")
_READING = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


def run_query(cursor: duckdb.DuckDBPyConnection, query: str, limit_seconds: float) -> pa.Table:
    """Return the result of one SELECT.

    Args:
        cursor: A cursor on a snapshot that nothing else uses, since the time limit interrupts it.
        query: The SQL.
        limit_seconds: Time limit in seconds; infinity means no limit.

    Raises:
        QueryError: The query is not one valid SELECT, or the limit is negative or NaN.
        LimitError: The query took too long, needed too much memory, or returned too many bytes.
    """
    if not limit_seconds >= 0:
        raise QueryError(f"Expected a limit of at least 0 seconds, got {limit_seconds:g}.")
    _refuse_all_but_select(cursor, query)
    # In a separate thread, because DuckDB would delay Ctrl-C until the end of the query.
    with ThreadPoolExecutor(max_workers=1) as thread:
        running = thread.submit(_fetch, cursor, query)
        try:
            wait([running], timeout=min(limit_seconds, threading.TIMEOUT_MAX))
        finally:
            in_time = _stop(cursor, running)
    if not in_time:
        raise LimitError(f"The query took longer than {limit_seconds:g} s.")
    return running.result()


def _stop(cursor: duckdb.DuckDBPyConnection, running: Future[pa.Table]) -> bool:
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
    if statements[0].type not in _READING:
        raise QueryError(f"Expected one SELECT, got {statements[0].type.name}.")


def _fetch(cursor: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """Return the whole result; its bytes are counted, since DuckDB's memory limit does not include them."""
    batches, size = [], 0
    try:
        reader = cursor.sql(query).to_arrow_reader(100_000)
        for batch in reader:
            size += batch.nbytes
            if size > LIMIT_BYTES:
                raise LimitError(
                    f"The result exceeds {LIMIT_BYTES / 1e9:g} GB; select fewer rows or columns."
                )
            batches.append(batch)
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # at the start or in the middle of a result
        if "Out of Memory" in str(error):
            raise LimitError(f"The query needs too much memory: {_sentence(error)}") from error
        raise QueryError(_sentence(error)) from error
    return pa.Table.from_batches(batches, schema=reader.schema)


def _sentence(error: Exception) -> str:
    """Return the first line of an error as a sentence, without the words around an error of a function."""
    line = _AROUND.sub("", str(error).splitlines()[0])
    return f"{line.rstrip('.!')}."
