"""Construction of a snapshot: rows, brackets, their monotone index, views and macros."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa

from privcore import PROBLEMS
from privcore.problem import Problem
from privcore.registry import used_versions
from storage.errors import StoreError
from storage.manifest import Manifest
from storage.parts import ROW_GROUP, problem_of, read_part
from storage.place.folder import Folder
from storage.schema import IMPORTED_ROWS, IMPORTS, schema_for
from storage.sql.lookup import add_monotone_index
from storage.sql.macros import macros
from storage.sql.views import (
    CHOICE,
    best_of_one,
    best_of_several,
    comments,
    fields_of,
    quote,
    quoted,
    rigorous,
    sql_type,
    superseded_rows,
    view_name,
    views,
)

# A snapshot without rows: its tables, views and macros, and the connection that fills it.

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
    connection.execute(f"create table {IMPORTS} (point_id varchar, source varchar)")
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


LAYOUT = f"12-{hashlib.blake2b(''.join(macros()).encode(), digest_size=8).hexdigest()}"
"""Version of the layout of a snapshot: a number that is increased with every change, also of the checks of
parts, since a snapshot may have rows that are now refused; and a hash of the macros. The macros change with
trends, domains and defaults of problems, so no cache outlives a proof that is withdrawn.
"""


def build(path: Path, place: Folder, parts: Sequence[Path], sweeps: Sequence[Manifest]) -> None:
    """Write a snapshot: every part is read once, and its hash is compared on the way.

    Args:
        path: The file to write; a folder next to it holds the data that do not fit into memory.
        place: The store.
        parts: Its parts.
        sweeps: Its manifests.

    Raises:
        StoreError: A part is damaged; the sentence names it.
        duckdb.Error: The disk or the memory is full; the file is incomplete.
    """
    start(path)
    with connected(path) as connection:
        _fill(connection, place, parts, sweeps)
        connection.execute("checkpoint")  # closing does this too, but does not report a full disk


def extend(
    path: Path, place: Folder, parts: Sequence[Path], new: Sequence[Path], sweeps: Sequence[Manifest]
) -> None:
    """Add the rows of more parts to a snapshot: only the tables of their problems are made again.

    One row of each point was kept, and rows are preferred in a total order, so the row that is kept of it and
    of the new rows is the row that would be kept of all.

    Args:
        path: A copy of a snapshot.
        place: The store.
        parts: Its parts, all of problems of this release.
        new: The parts that the snapshot lacks.
        sweeps: All manifests of the store.

    Raises:
        StoreError: A part is damaged; the sentence names it.
        duckdb.Error: The disk or the memory is full; the file is incomplete.
    """
    schema_of = schemas()
    with connected(path) as connection:
        for problem, files in _by_problem(new).items():
            view = view_name(problem)
            connection.execute(f'drop table brackets."{view}"')
            connection.execute(f'drop table if exists axes."{view}"; drop table if exists corners."{view}"')
            _add(connection, problem, files, place, schema_of[problem])
        connection.execute("drop table sweeps")
        _finish(connection, schema_of, parts, sweeps)
        connection.execute("checkpoint")


def build_in_memory(
    place: Folder, parts: Sequence[Path], sweeps: Sequence[Manifest]
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a snapshot that needs no disk.

    Args:
        place: The store.
        parts: Its parts.
        sweeps: Its manifests.

    Raises:
        StoreError: A part is damaged; the sentence names it.
        duckdb.Error: The memory is full.
    """
    connection = connected(None)
    try:
        create_empty(connection)
        _fill(connection, place, parts, sweeps)
    except BaseException:
        connection.close()
        raise
    return connection


def _fill(
    connection: duckdb.DuckDBPyConnection, place: Folder, parts: Sequence[Path], sweeps: Sequence[Manifest]
) -> None:
    """Add the rows of all parts to a snapshot without rows."""
    schema_of = schemas()
    for problem, files in _by_problem(parts).items():
        if problem in schema_of:
            connection.execute(f'drop table brackets."{view_name(problem)}"')
        else:
            schema_of[problem] = _joint_schema(place, files)
            add_table(connection, problem, schema_of[problem])
        _add(connection, problem, files, place, schema_of[problem])
    _finish(connection, schema_of, parts, sweeps)


def _by_problem(parts: Sequence[Path]) -> dict[str, list[Path]]:
    of_problem: dict[str, list[Path]] = {}
    for part in parts:
        of_problem.setdefault(problem_of(part), []).append(part)
    return of_problem


def _add(
    connection: duckdb.DuckDBPyConnection, problem: str, files: list[Path], place: Folder, schema: pa.Schema
) -> None:
    """Add the rows of parts of a problem, and make the tables of its brackets and of their index."""
    view = view_name(problem)
    _load(connection, problem, files, place)
    _drop_duplicates(connection, view)
    _add_brackets(connection, view, fields_of(schema))
    if kind := PROBLEMS.get(problem):
        add_monotone_index(connection, kind)


def _finish(
    connection: duckdb.DuckDBPyConnection,
    schema_of: Mapping[str, pa.Schema],
    parts: Sequence[Path],
    sweeps: Sequence[Manifest],
) -> None:
    """Add the tables and views that depend on all problems."""
    _load_sweeps(connection, sweeps)
    statements = [*views(schema_of, set(map(problem_of, parts))), *comments()]
    connection.execute(";".join(["begin", *statements, "commit"]))  # one transaction is faster
    connection.execute(f"create or replace table {IMPORTED_ROWS}")
    connection.execute(f"create or replace table superseded as {superseded_rows()}")


def _joint_schema(place: Folder, files: list[Path]) -> pa.Schema:
    """Return all columns in the parts of a problem that only another release has."""
    return pa.unify_schemas([read_part(place, file).schema for file in files])


def _load(connection: duckdb.DuckDBPyConnection, problem: str, files: list[Path], place: Folder) -> None:
    """Fill the table of a problem with the rows of these parts."""
    table = f'main."{view_name(problem)}"'
    read = _count(connection, table)
    for chunk in _in_chunks(files, place):
        connection.register("rows", chunk)
        connection.execute(f"insert into {table} by name from rows")
        read += len(chunk)
    connection.unregister("rows")
    kept = _count(connection, table)
    if kept != read:
        raise StoreError(f"DuckDB {duckdb.__version__} kept only {kept} of {read} rows; use another version.")


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    """Return the number of rows; the condition forces a scan, since a bare count comes from statistics."""
    return int(connection.execute(f"select count(*) from {table} where point_id <> ''").fetchall()[0][0])


def _in_chunks(files: list[Path], place: Folder) -> Iterator[pa.Table]:
    """Yield the rows of all parts, many small parts together, since each insertion has a fixed cost."""
    waiting: list[pa.Table] = []
    for file in files:
        table = read_part(place, file)
        name = pa.repeat(str(file.relative_to(place.data)), len(table)).dictionary_encode()
        waiting.append(table.append_column("part", name))
        if sum(map(len, waiting)) >= ROW_GROUP or file == files[-1]:
            yield pa.concat_tables(waiting, promote_options="default").combine_chunks()
            waiting = []


def _drop_duplicates(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    """Keep one row of each point; sorting only the points with several rows is faster."""
    connection.execute(
        f"""
        create or replace temp table several as
        select point_id from main."{view}" group by point_id having count(*) > 1
        """
    )
    if _is_empty(connection, "several"):
        return
    connection.execute(
        f"""
        delete from main."{view}" where rowid in (
            select rowid from main."{view}" where point_id in (from several)
            qualify row_number() over (partition by point_id order by {CHOICE}) > 1
        )
        """
    )


def _add_brackets(connection: duckdb.DuckDBPyConnection, view: str, fields: list[str]) -> None:
    """Create the table of best brackets, sorted by the fields so that DuckDB finds rows by its statistics."""
    connection.execute(
        f"""
        create or replace temp table several as
        select problem_id from main."{view}" where {rigorous()} group by problem_id having count(*) > 1
        """
    )
    compared = f'(from main."{view}" semi join several using (problem_id))'
    alone = f'(from main."{view}" anti join several using (problem_id))'
    query = (
        best_of_one(f'main."{view}"', fields)
        if _is_empty(connection, "several")
        else f"{best_of_one(alone, fields)} union all ({best_of_several(compared, fields)})"
    )
    connection.execute(f'create table brackets."{view}" as from ({query}) order by {quoted(fields)}')


def _is_empty(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    return not connection.execute(f"from {table} limit 1").fetchall()


def _load_sweeps(connection: duckdb.DuckDBPyConnection, sweeps: Sequence[Manifest]) -> None:
    connection.execute(
        """
        create table sweeps (
            name varchar, digest varchar, status varchar, started_at timestamptz, finished_at timestamptz,
            git_commit varchar, schema_version bigint, parts bigint, counts varchar, spec varchar
        )
        """
    )
    for m in sweeps:
        values = [m.name, m.digest, m.status, m.started_at, m.finished_at, m.git_commit, m.schema_version]
        values += [len(m.parts), json.dumps(m.counts), json.dumps(m.spec, sort_keys=True)]
        connection.execute(f"insert into sweeps values ({', '.join('?' * len(values))})", values)
