"""The lookup table: all answers of a store in one versioned Parquet file, for exchange and comparison."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from privcore import PROBLEMS, Problem
from storage import layout
from storage.catalog import Store
from storage.disk import write_atomically
from storage.errors import StoreError, reason
from storage.imported import sources_of
from storage.part_columns import not_utf8
from storage.parts import NUMBERS, ROW_GROUP
from storage.plausible import LAST
from storage.schema import BOOKKEEPING, RESULTS, SCHEMA_VERSION, VERSION_KEY, schema_for
from storage.views import current

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
    def imported(self) -> dict[str, int]:
        """Number of rows that the author of the table had imported, by their lookup table."""
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
                yield {"problem": kind.name, **row, "imported": table.version}
