"""A snapshot without rows: its tables, views and macros, and the connection that fills it."""

from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa

from privcore import PROBLEMS
from privcore.problem import Problem
from privcore.registry import used_versions
from storage.macros import macros
from storage.schema import schema_for
from storage.views import fields_of, quote, sql_type, view_name, views

LIMIT_BYTES = 3_000_000_000  # of memory while building; DuckDB spills the rest to the disk


def schemas() -> dict[str, pa.Schema]:
    """Return the columns of each registered problem."""
    return {kind.name: schema_for(kind) for kind in PROBLEMS}


def connected(path: Path | None) -> duckdb.DuckDBPyConnection:
    """Return a connection that writes a file, or None for one in memory.

    A folder next to the file holds the data that exceed the memory.
    """
    settings: dict[str, str | bool | int | float | list[str]] = {
        "python_enable_replacements": "false",
        "memory_limit": f"{LIMIT_BYTES}B",
        "temp_directory": f"{path}.spill" if path else "",
    }
    return duckdb.connect(str(path.absolute()) if path else ":memory:", config=settings)  # `md:x` is a URL


@lru_cache(maxsize=1)
def _empty(_kinds: tuple[type[Problem], ...], _versions: tuple[tuple[str, int], ...]) -> list[bytes]:
    """Return a list for the file of a snapshot without rows, empty until the file has been built."""
    return []


def start(path: Path) -> None:
    """Write a snapshot without rows; later ones are copies, since its 200 statements take half a second."""
    built = _empty(tuple(PROBLEMS), tuple(used_versions().items()))
    if built:
        path.write_bytes(built[0])
        return
    with connected(path) as connection:
        create_empty(connection)
        connection.execute("checkpoint")
    built.append(path.read_bytes())


def create_empty(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables, views and macros of a snapshot without rows."""
    schema_of = schemas()
    connection.execute("begin; create schema brackets; create schema corners; create schema axes")
    for problem, schema in schema_of.items():
        add_table(connection, problem, schema)
        connection.execute(f'create table brackets."{view_name(problem)}" ({_bracket_columns(schema)})')
    connection.execute("create table imported (point_id varchar, source varchar)")
    connection.execute(";".join([*views(schema_of, ()), *macros(), "commit"]))


def _bracket_columns(schema: pa.Schema) -> str:
    """Return the columns of an empty table of brackets; a view would slow every query over `best`."""
    fields = [f"{quote(name)} {sql_type(schema.field(name).type)}" for name in fields_of(schema)]
    ends = ["lower double", "upper double"]
    sources = [f"{end}_{of} varchar" for of in ("method", "point") for end in ("lower", "upper")]
    return ", ".join(["problem_id varchar", "problem varchar", *fields, *ends, *sources])


def add_table(connection: duckdb.DuckDBPyConnection, problem: str, schema: pa.Schema) -> None:
    """Create the empty table of a problem's rows.

    Not by `create table as` from an empty query: DuckDB 2.0.0 can lose rows that are later inserted into it.
    """
    columns = ", ".join(f"{quote(field.name)} {sql_type(field.type)}" for field in schema)
    connection.execute(f'create table main."{view_name(problem)}" ({columns}, part varchar)')
