"""Exports of a store: tables as Parquet or Python objects, and `store.sql` with views for plain DuckDB."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, clear_overloads, overload

import pyarrow as pa
import pyarrow.parquet as pq

from privcore import PROBLEMS
from privcore.errors import unknown
from privcore.extras import require
from privcore.parameter import Choice, Parameter, Value
from privcore.problem import Problem
from privcore.registry import find_problem
from storage.errors import QueryError
from storage.parts import parts, problem_of
from storage.place import layout
from storage.place.folder import Folder
from storage.schema import IMPORTED_ROWS, PROBLEM_KEY, SCHEMA_VERSION, VERSION_KEY, schema_for
from storage.sql.macros import COMPARED, literal, macros
from storage.sql.views import (
    best_of_one,
    best_of_several,
    chosen,
    current,
    fields_of,
    quote,
    sql_type,
    superseded_rows,
    view_name,
    views,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


# Results of queries as frames of Arrow, pandas or polars, with exact types.

_NAME = re.compile(r"\w[\w-]*(\.\w[\w-]*)?")


def query_of(query: str) -> str:
    """Return a query; the name of a view or of a problem is the query for all of its rows.

    Example:
        >>> query_of("allocation-epsilon"), query_of("brackets.poisson_delta"), query_of("select 1")
        ('from "allocation_epsilon"', 'from "brackets"."poisson_delta"', 'select 1')
    """
    if _NAME.fullmatch(query) is None:
        return query
    return "from " + ".".join(quote(view_name(part)) for part in query.split("."))


def converter(kind: str) -> Callable[[pa.Table], Any]:
    """Return the function that makes a frame of a table.

    Args:
        kind: `arrow`, `pandas` or `polars`; its package must be installed.

    Raises:
        UnknownNameError: The kind is unknown.
        MissingPackageError: The package is not installed.
    """
    if kind not in _CONVERTERS:
        raise unknown("kind of frame", kind, list(_CONVERTERS))
    if kind != "arrow":
        require(kind, f"A frame of {kind}")
    return _CONVERTERS[kind]


def to_arrow(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return columns as a table of Arrow."""
    return pa.table(dict(columns))


def _as_pandas(table: pa.Table) -> Any:
    """Return a frame whose columns keep the types of Arrow.

    Those of numpy have no null: integers with a null would become floats, and lose their last digits.
    """
    import pandas as pd

    _check_names(table)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _as_polars(table: pa.Table) -> Any:
    import polars as pl

    _check_names(table)
    for field in table.schema:
        for kind in _types_in(field.type):
            if pa.types.is_interval(kind) or pa.types.is_union(kind):
                raise QueryError(f"Polars has no type for {kind} in {field.name}; cast it to varchar.")
    return pl.DataFrame(table)


def _check_names(table: pa.Table) -> None:
    if len(set(table.column_names)) < len(table.column_names):
        raise QueryError(f"Expected columns with different names, got {', '.join(table.column_names)}.")


def _types_in(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield a type and the types within it."""
    yield kind
    for k in range(kind.num_fields):
        yield from _types_in(kind.field(k).type)


_CONVERTERS: Mapping[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "pandas": _as_pandas,
    "polars": _as_polars,
}


class Framed:
    """The methods of a store that give frames; they use its method `sql`."""

    def sql(self, query: str, *, limit_seconds: float = 60.0) -> pa.Table:
        """Return the result of one SELECT."""
        raise NotImplementedError

    @overload
    def frame(self, query: str, kind: Literal["arrow"] = ..., *, limit_seconds: float = ...) -> pa.Table: ...

    @overload
    def frame(self, query: str, kind: Literal["pandas"], *, limit_seconds: float = ...) -> "pd.DataFrame": ...

    @overload
    def frame(self, query: str, kind: Literal["polars"], *, limit_seconds: float = ...) -> "pl.DataFrame": ...

    def frame(self, query: str, kind: str = "arrow", *, limit_seconds: float = 60.0) -> Any:
        """Return the result of one SELECT, or all rows of a view, as a frame with exact types.

        Args:
            query: As for `sql`; or the name of a view, such as `best`, or of a problem, whose stored points
                are the rows.
            kind: `arrow`, `pandas` or `polars`. The columns of a frame of pandas have Arrow's types
                (`pandas.ArrowDtype`), which keep nulls, decimals and large integers as they are.
            limit_seconds: Time limit of the query in seconds.

        Raises:
            UnknownNameError: The kind is unknown.
            MissingPackageError: The package of this kind is not installed.
            QueryError: The query is not one valid SELECT, or the kind lacks the type of a column.
            LimitError: The query took too long, needed too much memory, or returned too many bytes.
            StoreError: A part is missing, damaged or foreign; the sentence names it.
        """
        convert = converter(kind)
        return convert(self.sql(query_of(query), limit_seconds=limit_seconds))

    @overload
    def best(self, problem: str, kind: Literal["arrow"] = ..., *, limit_seconds: float = ...) -> pa.Table: ...

    @overload
    def best(
        self, problem: str, kind: Literal["pandas"], *, limit_seconds: float = ...
    ) -> "pd.DataFrame": ...

    @overload
    def best(
        self, problem: str, kind: Literal["polars"], *, limit_seconds: float = ...
    ) -> "pl.DataFrame": ...

    def best(self, problem: str, kind: str = "arrow", *, limit_seconds: float = 60.0) -> Any:
        """Return the best rigorous brackets of one problem, with the fields of this problem only.

        Args:
            problem: Name of the problem, such as `allocation-epsilon`.
            kind: As for `frame`.
            limit_seconds: Time limit of the query in seconds.

        Returns:
            The rows of the view `brackets.<problem>`: the truth of each is proved to be at least `lower` and
            at most `upper`. Without stored brackets, it has no rows, but all columns.

        Raises:
            UnknownNameError: The problem or the kind is unknown.
            MissingPackageError: The package of this kind is not installed.
            LimitError: The query took too long, needed too much memory, or returned too many bytes.
            StoreError: A part is missing, damaged or foreign; the sentence names it.
        """
        convert = converter(kind)
        try:
            rows = self.sql(f"from brackets.{quote(view_name(problem))}", limit_seconds=limit_seconds)
        except QueryError:
            find_problem(problem)
            raise
        return convert(rows)


NAME = "store.sql"

GROUP_BYTES = 32_000_000
"""Bytes in memory of a row group of an exported file."""

_HEAD = """\
-- The views and macros of this store for DuckDB 2 or later, without privsweep. Start DuckDB in this folder:
--     .read store.sql
-- In another folder, first run: set file_search_path = '<this folder>';
-- Every run of a sweep rewrites this file. The views also include parts that are added later, except the
-- first parts of a problem.
--
-- DuckDB does not detect a flipped bit or a missing part; `privsweep verify` does. This file refuses parts
-- that the views would misread: parts of a newer release, and columns of another type.
-- Every query reads the parts. For many queries, a table is faster: create table r as from results;
"""

_MICROSECONDS = {
    "time64[ns]": pa.time64("us"),
    "timestamp[ns]": pa.timestamp("us"),
    "duration[ns]": pa.duration("us"),
}
_PHYSICAL = {"double": "DOUBLE", "bigint": "INT64", "timestamptz": "INT64", "boolean": "BOOLEAN"}


def write_parquet(pieces: Iterable[pa.Table], file: BinaryIO) -> None:
    """Write the pieces of a table as a Parquet file, with its types; a row group holds some tens of MB.

    Raises:
        QueryError: Two columns have the same name, or a column has a type that Parquet lacks.
    """
    rest = iter(pieces)
    first = next(rest)
    if len(set(first.column_names)) < len(first.column_names):
        raise QueryError(f"Expected columns with different names, got {', '.join(first.column_names)}.")
    try:
        with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
            held = [first]
            for piece in rest:
                held.append(piece)
                if sum(each.nbytes for each in held) > GROUP_BYTES:
                    writer.write_table(pa.concat_tables(held))
                    held = []
            if held:
                writer.write_table(pa.concat_tables(held))
    except pa.ArrowException as error:
        raise QueryError(
            f"Parquet cannot hold this table: {str(error).splitlines()[0].rstrip('.')}."
        ) from error


def columns_as_parquet(columns: Mapping[str, Sequence[object]]) -> bytes:
    """Return columns of equal length as a Parquet file; the same columns give the same bytes.

    Ends and ids of rows are stored without dictionaries: their values rarely repeat.

    Example:
        >>> columns_as_parquet({"steps": [10, 100], "lower_method": ["poisson.certified", None]})[:4]
        b'PAR1'
    """
    sink = pa.BufferOutputStream()
    repeated = [name for name in columns if name not in ("lower", "upper") and not name.endswith("_point")]
    pq.write_table(pa.table(dict(columns)), sink, compression="zstd", use_dictionary=repeated)
    return bytes(sink.getvalue())


def in_microseconds(column: pa.Array) -> pa.Array:
    """Return a column with times in microseconds, as Python has them; other columns as they are.

    With pandas installed, pyarrow gives nanoseconds as objects of pandas, or drops their last digits.

    Raises:
        ValueError: A time is not a whole number of microseconds.
    """
    target = _MICROSECONDS.get(str(column.type))
    return column if target is None else column.cast(target)


def write_store_sql(place: Folder) -> Path:
    """Write `store.sql` into a store, for readers without privsweep; return its path.

    A link or a pipe in its place is replaced. A folder there is left alone: `verify` reports it.

    Raises:
        StoreError: The store cannot be read, or the disk refused.
    """
    path = place.root / NAME
    content = store_sql(place).encode()
    try:
        same = layout.content_of(path) == content
    except OSError:
        same = path.is_dir() and not path.is_symlink()
    if not same:
        place.write(path, content)
    return path


def store_sql(place: Folder) -> str:
    """Return the statements that create views and macros over a store's parts, with relative paths.

    Args:
        place: The store; problems without parts are left out, except those of the macro `compare`.

    Raises:
        StoreError: A file is not part of the store.
    """
    held = {problem_of(path) for path in parts(place)}
    kinds = [kind for kind in PROBLEMS if kind.name in {*held, *COMPARED}]  # of this release
    known = {kind.name: schema_for(kind) for kind in PROBLEMS}
    statements = ["create schema if not exists brackets"]
    if listed := [kind for kind in kinds if kind.name in held]:
        statements.append(_check(listed))
    for kind in kinds:
        view = view_name(kind.name)
        rows = chosen(f"({_rows(kind, has_parts=kind.name in held)})")
        best = best_of_several if kind.name in held else best_of_one  # shorter, and equal without rows
        brackets = best(f"main.{quote(view)}", fields_of(known[kind.name]))
        statements += [
            f"create or replace view main.{quote(view)} as {rows}",
            f"create or replace view brackets.{quote(view)} as {brackets}",
        ]
    has_sweeps = any(path.suffix == ".json" for path in place.entries(layout.SWEEPS))
    statements += [_sweeps(has_sweeps), *views(known, held)]
    statements.append(f"create or replace view {IMPORTED_ROWS}")
    statements.append(f"create or replace view superseded as {superseded_rows()}")
    statements += macros(kinds)
    # The longest condition of all views is a macro, and lines are not indented: a third of the file.
    newest = f"create or replace macro is_current(method, method_version) as ({current()})"
    short = (each.replace(current(), "is_current(method, method_version)") for each in statements)
    lines = (re.sub(r"\n\s+", "\n", each.strip()) for each in (newest, *short))
    return _HEAD + "".join(f"\n{each};\n" for each in lines)


def _rows(kind: type[Problem], *, has_parts: bool) -> str:
    """Return the query for all rows of a problem; a column that a part lacks is null or has its default."""
    schema, defaults = schema_for(kind), kind.defaults()
    lacking = [field for field in schema if not (has_parts and _is_required(kind, field))]
    typed = ", ".join(f"null::{sql_type(field.type)} as {quote(field.name)}" for field in lacking)
    rows = f"(select {typed}, null::varchar as part where false)"
    if has_parts:
        # The union with an empty query adds columns that all parts lack.
        rows += f"""
            union all by name from read_parquet('{layout.DATA}/problem={kind.name}/*.parquet',
            union_by_name = true, hive_partitioning = false, filename = 'part')"""
    columns = ", ".join(_column(name, defaults.get(name), kind.parameters.get(name)) for name in schema.names)
    return f"select {columns}, regexp_extract(r.part, 'problem=[^/]*/[^/]*$') as part from ({rows}) as r"


def _column(name: str, default: Value | None, parameter: Parameter | None) -> str:
    """Return a column with its default instead of null, and words of this release instead of former ones."""
    column = f"r.{quote(name)}"
    if isinstance(parameter, Choice):
        for old, new in parameter.former:
            column = f"case when {column} = {literal(old)} then {literal(new)} else {column} end"
    if default is not None:
        column = f"coalesce({column}, {literal(default)})"
    return column if column == f"r.{quote(name)}" else f"{column} as {quote(name)}"


def _is_required(kind: type[Problem], field: pa.Field) -> bool:
    """Return whether every part of a problem has a column."""
    return not field.nullable and field.name not in kind.defaults()


def _check(kinds: Sequence[type[Problem]]) -> str:
    """Return the statement that raises an error, naming the part, if the views would misread a part."""
    expected: dict[str, list[str]] = {}
    for kind in kinds:
        for field in schema_for(kind):
            physical = _PHYSICAL.get(sql_type(field.type), "BYTE_ARRAY")
            described = f"'{field.name}', '{physical}', {str(_is_required(kind, field)).lower()}"
            expected.setdefault(described, []).append(f"'{kind.name}'")
    every = [f"'{kind.name}'" for kind in kinds]
    columns = ", ".join(
        f"({'null' if names == every else '[' + ', '.join(names) + ']'}, {each})"
        for each, names in expected.items()
    )
    files = ", ".join(f"'{layout.DATA}/problem={kind.name}/*.parquet'" for kind in kinds)
    problem = "regexp_extract(file_name, 'problem=([^/]*)/[^/]*$', 1)"
    return f"""
set variable privsweep_checked = (
    with expected as (
        select unnest(coalesce(problems, [{", ".join(every)}])) as problem, name, type, required
        from (values {columns}) as columns(problems, name, type, required)
    ),
    found as (
        select file_name, {problem} as problem, name, type from parquet_schema([{files}])
        where num_children is null
    ),
    described as (
        select file_name, {problem} as problem, decode(key) as key, decode(value) as value
        from parquet_kv_metadata([{files}])
    ),
    complaints as (
        select file_name || ' has schema version ' || value || ', not {SCHEMA_VERSION}' as complaint
        from described where key = '{VERSION_KEY.decode()}' and value::bigint > {SCHEMA_VERSION}
        union all
        select file_name || ' holds rows of ' || value from described
        where key = '{PROBLEM_KEY.decode()}' and value <> problem
        union all
        select file_name || ' has the column ' || name || ', which store.sql does not list'
        from found anti join expected using (problem, name)
        union all
        select file_name || ' has ' || name || ' as ' || found.type || ', expected ' || expected.type
        from found join expected using (problem, name) where found.type <> expected.type
        union all
        select file_name || ' lacks the column ' || name
        from (select distinct file_name, problem from found) join expected using (problem)
        anti join found using (file_name, name) where required
    )
    select case when count(*) > 0 then error(min(complaint) || '.') end from complaints
)"""


def _sweeps(has_sweeps: bool) -> str:
    columns = {
        **dict.fromkeys(("name", "digest", "status"), "varchar"),
        **dict.fromkeys(("started_at", "finished_at"), "timestamptz"),
        "git_commit": "varchar",
        "schema_version": "bigint",
        "parts": "varchar[]",
        **dict.fromkeys(("counts", "spec"), "json"),
    }
    shown = [f"null::{kind} as {name}" for name, kind in columns.items()]
    listed = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
    rows = f"read_json('{layout.SWEEPS}/*.json', columns = {{{listed}}})"
    return f"""
create or replace view sweeps as
select r.* replace (len(r.parts) as parts, r.counts::varchar as counts, r.spec::varchar as spec)
from {rows if has_sweeps else f"(select {', '.join(shown)} where false)"} as r"""


# Their list would keep DuckDB alive until Python ends, and DuckDB then prints a hundred lines about it.
clear_overloads()
