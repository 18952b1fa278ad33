"""The lookup table: all answers of a store in one versioned Parquet file, for exchange and comparison."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from privcore import PROBLEMS, Answer, Direction, Point, Problem, Status, find, find_problem
from privcore.answer import attributed
from privcore.errors import PrivsweepError
from privcore.point import canonical, hashed
from storage.catalog import Store
from storage.compaction import named
from storage.errors import StoreError, reason
from storage.manifest import replacements
from storage.parts import LAST, NUMBERS, ROW_GROUP, parts, problem_of, publish, read_part, too_late
from storage.place import layout
from storage.place.disk import write_atomically
from storage.place.folder import Folder
from storage.schema import (
    BOOKKEEPING,
    RESULTS,
    SCHEMA_VERSION,
    VERSION_KEY,
    not_utf8,
    object_in,
    problem_id,
    schema_for,
)
from storage.sql.views import current, marked, remedy, rigorous, source_of, sources_of

KEY = b"privsweep.lookup_table"
"""Metadata key of the version, by which a lookup table differs from other Parquet files."""

_TEXTS = ("problem", "method", "knobs", "detail", "sweep", "git_commit", "versions", "host")
ANSWER = ("point_id", "lower", "upper", "value", "confidence")
"""Columns that the version of a table hashes."""

_LEVEL = 19  # the file is written once, and a fifth smaller than at the default level
_PATIENCE = 600.0  # seconds to read all rows of a store
_LARGEST = 1e9  # bytes of a file
_MOST_VALUES = 1e9  # rows times columns; ten million answers
_MOST_TEXT = 1e9  # bytes of the unpacked file, and of the texts of a column, which it may repeat


@dataclass(frozen=True, kw_only=True)
class LookupTable:
    """A lookup table.

    Attributes:
        version: The day of its last answer and eight digits of a hash of all answers; equal answers give
            equal versions.
        rows: One row for each answer, with provenance; fields that a problem lacks are null.
    """

    version: str
    rows: pa.Table

    @property
    def sources(self) -> dict[str, int]:
        """Number of rows that the author of the table had taken from other tables, by their lookup table."""
        return sources_of(self.rows["versions"])


def lookup_table(store: Store) -> LookupTable:
    """Return the table of all answers of a store, except superseded ones, which may be false.

    Raises:
        StoreError: A part is damaged, or the store has no answers.
    """
    columns, order = "* exclude (part)", "problem, problem_id, point_id"
    query = f"select {columns} from results where status = 'ok' and {current()} order by {order}"
    rows = store.sql(query, limit_seconds=_PATIENCE)
    if not len(rows):
        raise StoreError(f"{store.name} has no answers, so no lookup table can be made from it.")
    return LookupTable(version=_version(rows), rows=rows)


def _version(rows: pa.Table) -> str:
    """Return the day of the last answer and a hash of all answers in any order."""
    lines = (
        "|".join(repr(value) for value in answer)
        for answer in zip(*(rows[name].to_pylist() for name in ANSWER), strict=True)
    )
    digest = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    return f"{pc.max(rows['finished_at']).as_py():%Y.%m.%d}-{digest[:8]}"


def write_lookup_table(table: LookupTable, path: Path) -> None:
    """Write a lookup table as one Parquet file, atomically.

    Raises:
        StoreError: The disk refused.
    """
    write_atomically(path, to_parquet(table))


def to_parquet(table: LookupTable) -> bytes:
    """Return a lookup table as a Parquet file."""
    metadata = {KEY: table.version.encode(), VERSION_KEY: str(SCHEMA_VERSION).encode()}
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.rows.replace_schema_metadata(metadata),
        sink,
        row_group_size=ROW_GROUP,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[name for name in table.rows.column_names if name not in RESULTS],
        use_byte_stream_split=[name for name in RESULTS if _is_double(table.rows, name)],
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())


def _is_double(rows: pa.Table, name: str) -> bool:
    """Return whether the rows have this column of doubles."""
    return name in rows.column_names and pa.types.is_float64(rows.schema.field(name).type)


def read_lookup_table(path: Path) -> LookupTable:
    """Return a lookup table, after comparing its rows with its version.

    Raises:
        StoreError: The file cannot be read, is not a lookup table, is of a newer release, or was changed.
    """
    if path.is_char_device() or path.is_block_device() or path.is_fifo():
        raise StoreError(f"Expected a lookup table, a Parquet file, got {path}, a device or a pipe.")
    try:
        if path.stat().st_size > _LARGEST:
            raise StoreError(
                f"Expected a lookup table of at most {_LARGEST / 1e9:g} GB, got {path} of "
                f"{path.stat().st_size / 1e9:.3g} GB."
            )
        content = path.read_bytes()  # Arrow itself would also accept folders and addresses
        schema = pq.read_schema(pa.BufferReader(content))
        texts = [field.name for field in schema if field.type == pa.string()]
        file = pq.ParquetFile(
            pa.BufferReader(content), page_checksum_verification=True, read_dictionary=texts
        )
        rows = file.read() if _is_flat(schema) and _fits(file) else None
        if rows is not None and (name := not_utf8(rows)):
            raise StoreError(f"{path} has text that is not UTF-8 in the column {name[:60]}.")
    except (OSError, ValueError, pa.ArrowException) as error:
        why = reason(error).splitlines()[0][:200].rstrip(".")
        told = (
            f"Cannot read {path}"
            if getattr(error, "filename", None)
            else f"{path} is not a readable Parquet file"
        )
        raise StoreError(f"{told}: {why}.") from error
    metadata = schema.metadata or {}
    version = metadata.get(KEY, b"").decode(errors="replace")
    if not version:
        raise StoreError(f"{path} is not a lookup table: its metadata has no version.")
    layout.refuse_newer(layout.version_in(metadata), path)
    if rows is None or any(_text_size(rows[name]) > _MOST_TEXT for name in texts):
        raise StoreError(
            f"Expected distinct columns of numbers and text, with at most {_MOST_VALUES:g} values and "
            f"{_MOST_TEXT / 1e9:g} GB of text in a column, got {path} of {_values(file)} values."
        )
    for name in texts:
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(pa.string()))
    if not _are_answers(rows) or _version(rows) != version:
        raise StoreError(f"{path} was changed: its rows do not match its version, {version[:60]}.")
    return LookupTable(version=version, rows=rows)


def _is_flat(schema: pa.Schema) -> bool:
    """Return whether the columns of every answer exist, and all have distinct names and numbers or text."""
    kinds = all(pa.types.is_primitive(kind) or kind == pa.string() for kind in schema.types)
    distinct = set(schema.names)
    return kinds and len(distinct) == len(schema.names) and distinct >= {*ANSWER, "problem", "status"}


def _fits(file: pq.ParquetFile) -> bool:
    """Return whether the rows of a file, unpacked, and the texts in its dictionaries need little memory."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    return _values(file) <= _MOST_VALUES and sum(each.total_byte_size for each in groups) <= _MOST_TEXT


def _values(file: pq.ParquetFile) -> int:
    return int(file.metadata.num_rows * file.metadata.num_columns)


def _text_size(column: pa.ChunkedArray) -> int:
    """Return the bytes of the texts of a column with dictionaries."""
    sizes = (pc.take(pc.binary_length(chunk.dictionary), chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(each).as_py() or 0 for each in sizes)


def _are_answers(rows: pa.Table) -> bool:
    """Return whether the rows are distinct answers, in the columns of `lookup_table`."""
    for field in schema_for(PROBLEMS[0]):
        if field.name not in BOOKKEEPING:
            continue
        if field.name not in rows.column_names:
            return False
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        column = rows[field.name]
        if column.type != kind or (column.null_count and not field.nullable):
            return False
    return (
        set(rows["status"].to_pylist()) == {"ok"}
        and all(text.isprintable() for name in _TEXTS for text in pc.unique(rows[name]).to_pylist() if text)
        and pc.count_distinct(rows["point_id"]).as_py() == len(rows)
        and not any(pc.any(pc.is_nan(rows[name])).as_py() for name in NUMBERS)
        and all(0 <= end.as_py() < LAST for end in pc.min_max(rows["finished_at"].cast(pa.int64())).values())
    )


def rows_of(table: LookupTable, kind: type[Problem]) -> pa.Table:
    """Return the rows of one problem class, with its columns and types.

    Fields that the problem did not have when the table was published have their defaults, as in parts.

    Raises:
        ArrowException: A value is not of the type of its column.
        KeyError: A column is missing.
    """
    schema = schema_for(kind)
    rows = table.rows.filter(pc.equal(table.rows["problem"], kind.name))
    for name, default in kind.defaults().items():
        column = rows[name] if name in rows.column_names else pa.nulls(len(rows))
        column = column.cast(schema.field(name).type).fill_null(default)
        rows = rows.drop_columns([name] if name in rows.column_names else []).append_column(name, column)
    return rows.select(schema.names).cast(schema)


def _sound_rows(table: LookupTable, kind: type[Problem]) -> pa.Table:
    """Return the rows of one problem class; a StoreError says which of its columns are missing or wrong."""
    try:
        return rows_of(table, kind)
    except (pa.ArrowException, LookupError, ValueError, TypeError) as error:
        why = " ".join(str(error).split()).rstrip(".")[:200]
        raise StoreError(f"Cannot read {kind.name} of version {table.version}: {why}.") from error


def answered_rows(table: LookupTable) -> Iterator[dict[str, Any]]:
    """Yield the rows of a lookup table whose problem this release has, with their origin.

    Args:
        table: The table.
    """
    for kind in PROBLEMS:
        if pc.any(pc.equal(table.rows["problem"], kind.name)).as_py():
            rows = _sound_rows(table, kind)
            columns = [
                "point_id",
                "method",
                "method_version",
                "knobs",
                *kind.parameters,
                *ANSWER[1:],
                "versions",
            ]
            for row in rows.select(columns).to_pylist():
                yield {"problem": kind.name, **row, "method": attributed(row["method"], table.version)}


# Differences of brackets and answers between two lookup tables.


@dataclass(frozen=True, kw_only=True)
class Moved:
    """Changes of the brackets of one problem class between two tables, as numbers of problems.

    Attributes:
        problem: Name of the class.
        same: Problems with equal brackets.
        added: Problems only in the new table.
        removed: Problems only in the old table.
        tighter: Problems whose new bracket lies within the old bracket.
        wider: Problems whose new bracket contains the old bracket.
        shifted: Problems with one tighter and one wider end.
        disjoint: Problems whose brackets contradict one another, or themselves: one of the tables is wrong.
        answers: Single answers, proved or not, that differ or are only in one table. If no bracket changed,
            they explain why the versions differ.
    """

    problem: str
    same: int
    added: int
    removed: int
    tighter: int
    wider: int
    shifted: int
    disjoint: int
    answers: int


_BECAME = tuple(name for name in Moved.__dataclass_fields__ if name != "problem")


def compare(old: LookupTable, new: LookupTable) -> list[Moved]:
    """Compare the best proved brackets of two tables.

    Args:
        old: The first table.
        new: The second table, usually a later one.

    Returns:
        The changes of each problem class of either table, sorted by name.
    """
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        for name, table in (("old", old), ("new", new)):
            connection.register(f"{name}_rows", table.rows)
            connection.execute(
                f"create view {name}_answers as select problem, {', '.join(ANSWER)} from {name}_rows"
            )
            connection.execute(
                f"""
                create table {name} as
                select problem_id, any_value(problem) as problem, max(lower) as lower, min(upper) as upper
                from {name}_rows where {rigorous()} group by problem_id
                """
            )
        counted = connection.execute(
            """
            select coalesce(o.problem, n.problem) as problem,
                   case when o.problem_id is null then 'added'
                        when n.problem_id is null then 'removed'
                        when greatest(o.lower, n.lower) > least(o.upper, n.upper) then 'disjoint'
                        when o.lower = n.lower and o.upper = n.upper then 'same'
                        when n.lower >= o.lower and n.upper <= o.upper then 'tighter'
                        when n.lower <= o.lower and n.upper >= o.upper then 'wider'
                        else 'shifted' end as became,
                   count(*)
            from old as o full join new as n using (problem_id)
            group by 1, 2
            union all
            select problem, 'answers', count(distinct point_id)
            from ((from old_answers except from new_answers)
                  union all (from new_answers except from old_answers))
            group by 1
            order by 1
            """
        ).fetchall()
    numbers: dict[str, dict[str, int]] = {}
    for problem, became, count in counted:
        numbers.setdefault(problem, dict.fromkeys(_BECAME, 0))[became] = count
    return [Moved(problem=problem, **counts) for problem, counts in numbers.items()]


# Import of a lookup table into a store: every row is checked, and marked with its source.

_LACKS = {Direction.UPPER: "lower end", Direction.LOWER: "upper end", Direction.ESTIMATE: "ends"}
_ENDS = ("lower", "upper")
_POINT = ("problem_id", "method", "method_version", "knobs")


def import_lookup_table(table: LookupTable, place: Folder, *, checked: bool = True) -> list[Path]:
    """Publish the rows of a lookup table as parts of a store; importing it again changes nothing.

    The rows are marked with the version of the table. Points that the store computed itself are left out.

    Args:
        table: The table.
        place: The store; it is created if it does not exist.
        checked: Whether to check and mark the rows. The shipped table is neither, as a part of the release.

    Returns:
        The parts.

    Raises:
        StoreError: A problem or method is of another release, a row is not an answer, does not match its id,
            has a time to come, or contradicts a row of the store, or the disk refused; parts published before
            the error stay.
    """
    if checked and (late := too_late(table.rows)):
        raise StoreError(
            f"Cannot import version {table.version}: its {late}; correct the clock or the table."
        )
    new = list(_parts(table, checked))
    place.refresh()  # a part that the bucket has lost is published again
    if checked:
        new = [rows for rows in (_without_own(rows, place, table.version) for rows in new) if len(rows)]
    replaced = [name for each in replacements(place) for name in each.old]
    # Equal bytes have equal names, and a part whose name was replaced before would be deleted.
    return [publish(place, named(rows, replaced) if replaced else rows) for rows in new]


def _without_own(rows: pa.Table, place: Folder, version: str) -> pa.Table:
    """Return the rows of points that the store did not compute itself.

    Raises:
        StoreError: A bracket of the store and a new one contradict one another.
    """
    new = {row["point_id"]: row for row in rows.select(["point_id", *_ENDS, "confidence"]).to_pylist()}
    own = set()
    for stored in _answers(place, rows["problem"][0].as_py()):
        row, source = new.get(stored["point_id"]), source_of(stored["versions"])
        if row is None:
            continue
        apart = row["lower"] > stored["upper"] or stored["lower"] > row["upper"]
        if apart and row["confidence"] == 1.0:
            one, other = (f"[{each['lower']!r}, {each['upper']!r}]" for each in (row, stored))
            kept = f"computed {other}"
            if source:
                kept = f"has {other} from the lookup table {source}; {remedy([source])}"
            its_row = f"its row {row['point_id']} is {one}, but {place.name} {kept}"
            raise StoreError(f"Cannot import version {version}: {its_row}.")
        if not source:
            own.add(row["point_id"])
    return rows.filter(pa.array([point not in own for point in rows["point_id"].to_pylist()]))


def _answers(place: Folder, problem: str) -> Iterator[dict[str, Any]]:
    """Yield the stored answers of a problem class."""
    for path in parts(place):
        if problem_of(path) == problem:
            stored = read_part(place, path, ["point_id", "status", *_ENDS, "versions"]).to_pylist()
            yield from (row for row in stored if row["status"] == Status.OK)


def _parts(table: LookupTable, checked: bool) -> Iterator[pa.Table]:
    """Yield the rows of each problem class, with the columns and types of the class."""
    for name in sorted(set(table.rows["problem"].to_pylist())):
        try:
            kind = find_problem(name)
            rows = rows_of(table, kind)
            if checked:
                _check(kind, rows)
                rows = marked(rows, table.version)
        except (PrivsweepError, pa.ArrowException, LookupError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise StoreError(f"Cannot import {name} of version {table.version}: {reason}.") from error
        for start in range(0, len(rows), ROW_GROUP):
            yield rows.slice(start, ROW_GROUP)


def _check(kind: type[Problem], rows: pa.Table) -> None:
    """Raise an error for a row that is not an answer, or whose ids do not match its problem and method."""
    for row in rows.select([*kind.parameters, *_POINT, *ANSWER]).to_pylist():
        problem = kind.from_fields({name: row[name] for name in kind.parameters})
        point = canonical(problem, row["method"], row["method_version"], object_in(row["knobs"]))
        if (row["problem_id"], row["point_id"]) != (problem_id(problem), hashed(point)):
            raise StoreError(f"the id of row {row['point_id']} does not match its fields, {point}")
        Answer(**{name: row[name] for name in ("lower", "upper", "value", "confidence")})
        method = find(row["method"]).from_knobs(object_in(row["knobs"]))
        if not 1 <= row["method_version"] <= method.version:
            raise StoreError(f"row {row['point_id']} has {method.name} of version {row['method_version']}")
        # The claim of an older version is unknown, and its ends are not relied on.
        current, (lower, upper) = row["method_version"] == method.version, (row["lower"], row["upper"])
        if current and not method.direction.allows(lower, upper, kind.largest):
            lacks = f"{method.name} gives no {_LACKS[method.direction]}"
            raise StoreError(f"row {row['point_id']} has the ends [{lower!r}, {upper!r}], but {lacks}")
        Point(problem=problem, method=method)
