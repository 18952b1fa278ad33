"""Columns of Parquet, CSV, JSONL, NPY and NPZ files; the first bytes of a file determine its format."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from privcore.distributions.table_columns import MOST_BYTES, read_arrays, read_csv, read_json
from privcore.distributions.table_formats import MOST_ROWS, Format, format_of, no_rows, places
from privcore.errors import DomainError

_NONE: Mapping[str, str] = MappingProxyType({})


def read_table(path: Path, names: Sequence[str], what: str, refused: Mapping[str, str] = _NONE) -> list[Any]:
    """Return columns of a file as Arrow arrays without missing values.

    Columns of CSV and JSONL are texts, exactly as written: 01 is not 1, 250.0 is not 250.00.
    Those of JSONL keep the quotation marks of texts, so that "1" is not 1. Other formats have types.

    Args:
        path: A Parquet, CSV, JSONL (one object per line), NPY or NPZ file. An NPY file has a structured
            array, or one plain column, which then has every single name; an NPZ file has one array for each
            column. CSV and JSONL may be compressed (gzip, bz2, zstd, lz4) under any name, and may
            be in UTF-8 or UTF-16.
        names: Names of the columns.
        what: Content of the columns, such as `probabilities`, for the messages.
        refused: For the name of a column that must not exist, the sentence that refuses the file.

    Raises:
        DomainError: The file cannot be read, a column is missing, listed twice, refused or no column of
            values, or a row has no value.
    """
    import pyarrow as pa

    if not path.is_file():
        raise DomainError(f"Expected a file with a column of {what}, but {path} is not a file.")
    found = Format(kind="unknown")
    try:
        found = format_of(path)
        read = {"csv": read_csv, "json": read_json, "parquet": _of_parquet}.get(found.kind, read_arrays)
        columns: list[Any] = read(path, found, names, refused)
        for name, column in zip(names, columns, strict=True):
            _check_rows(path, name, column)
    except (pa.ArrowException, OSError, RuntimeError, UnicodeError) as error:
        listed = ("column ", "columns ")[len(names) > 1] + " and ".join(names)
        raise DomainError(
            f"Cannot read {what} from the {listed} of {path}: {_reason(error, found)}."
        ) from None
    return columns


def _check_rows(path: Path, name: str, column: Any) -> None:
    """Refuse columns with too few or too many rows, or with a missing value."""
    import pyarrow.compute as pc

    if not 1 <= len(column) <= MOST_ROWS:
        raise no_rows(path, len(column))
    row = pc.index(column.is_null(nan_is_null=True), value=True).as_py()
    if row >= 0:
        raise DomainError(
            f"Expected a value in each row of the column {name} of {path}; row {row + 1} has no value."
        )


def _of_parquet(path: Path, found: Format, names: Sequence[str], refused: Mapping[str, str]) -> list[Any]:
    """Return columns of a Parquet file, after checks of its metadata; equal texts are kept once."""
    import pyarrow as pa
    import pyarrow.parquet

    assert found.kind == "parquet"
    file = pyarrow.parquet.ParquetFile(path)
    schema, rows = file.schema_arrow, file.metadata.num_rows
    wanted = [schema.names[place] for place in places(path, names, schema.names, refused)]
    for name in wanted:
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise DomainError(f"Expected a column of values, but {name} of {path} is a {str(kind)[:40]}.")
        if pa.types.is_fixed_size_binary(kind) and rows * kind.byte_width > MOST_BYTES:
            raise DomainError(f"Expected a column of at most {MOST_BYTES:g} bytes, got {name} of {path}.")
    if not 1 <= rows <= MOST_ROWS:
        raise no_rows(path, rows)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    leaves = [i for i in range(file.metadata.num_columns) if file.schema.column(i).path in wanted]
    if sum(group.column(i).total_uncompressed_size for group in groups for i in leaves) > MOST_BYTES:
        raise DomainError(f"Expected columns of at most {MOST_BYTES:g} bytes in {path}.")
    table = pyarrow.parquet.ParquetFile(path, read_dictionary=wanted).read(
        columns=list(dict.fromkeys(wanted))
    )
    return [table.column(name) for name in wanted]


def _reason(error: Exception, found: Format) -> str:
    """Return the reason why a file cannot be read, in our words: a library's sentence may hold its bytes."""
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]  # such as: permission denied
    if "straddling object" in str(error):
        return "a row is longer than 16 MB"
    if isinstance(error, UnicodeError):
        return f"its text is not valid {found.encoding.upper()}"
    if found.packed or found.kind == "unknown":
        return "its compressed data are truncated or damaged"
    return "the file is truncated or damaged"
