"""Tables from Parquet, CSV, JSONL, NPY and NPZ files; the first bytes of a file determine its format."""

import json
import math
import re
import tokenize
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np

from privcore.errors import DomainError

_Arrays = dict[str, np.ndarray[Any, Any]]

MOST_ROWS = 10**8
"""Most rows of a file."""

_LONGEST = 1024  # bytes of a value of an array
_MOST_BYTES = 2e9  # of all values of an array
_MOST_TEXT = 4e9  # bytes of CSV or JSONL, after decompression
_MOST_COLUMNS = 10_000  # of text, since the parser needs some kB for each
_BLOCK = 1 << 24  # bytes of a block of text; Arrow refuses longer rows
_NESTED = 500  # brackets of a line of JSON that are not counted by depth
_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some editors write first
_LINE = re.compile(rb"[\r\n]*[^\r\n]*")  # the first one with content
_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_NONE: Mapping[str, str] = MappingProxyType({})


def read_table(path: Path, names: Sequence[str], refused: Mapping[str, str] = _NONE) -> Any:
    """Return an Arrow table with these columns, after checking that each exists once.

    Args:
        path: A Parquet, CSV, JSONL (one object per line), NPY or NPZ file. An NPY file has a structured
            array, or one plain column, which then has every single name; an NPZ file has one array for each
            column.
        names: Names of the columns.
        refused: For the name of a column that must not exist, the sentence that refuses the file.

    Raises:
        DomainError: A column is missing, listed twice or refused, or an array is not a column.
        OSError, RuntimeError, UnicodeError, pyarrow.ArrowException: The file cannot be read.
    """
    import pyarrow.json

    with path.open("rb") as file:
        start = file.read(64)
    if not start:
        raise DomainError(f"Expected 1 to {MOST_ROWS} rows in {path}, got an empty file.")
    if start.startswith((_NPY, _ZIP)):
        return _arrays(path, names, refused, zipped=start.startswith(_ZIP))
    if start.startswith(b"PAR1"):
        return _of_parquet(path, list(dict.fromkeys(names)), refused)
    if path.stat().st_size > _MOST_TEXT:
        raise DomainError(f"Expected at most {_MOST_TEXT / 1e9:g} GB of text, got more in {path}.")
    skipped = len(_MARK) if start.startswith(_MARK) else 0
    text = start[skipped:].lstrip()
    if text[:1] == b"[" and text[1:].lstrip()[:1] in (b"{", b"["):
        raise DomainError(f"Expected one JSON object on each line of {path}, got a JSON array.")
    if text.startswith(b"{"):
        _check_lines(path)
        with path.open("rb") as file:
            file.seek(skipped)
            table = pyarrow.json.read_json(file, pyarrow.json.ReadOptions(block_size=_BLOCK))
        _check_present(path, names, table.column_names, refused)
        return table
    _check_packed(path)
    return _of_csv(path, names, refused)


def _of_csv(path: Path, names: Sequence[str], refused: Mapping[str, str]) -> Any:
    """Return columns of a CSV file; the others are not kept."""
    import pyarrow as pa
    import pyarrow.csv

    with pa.input_stream(str(path), compression="detect") as stream:
        header = _LINE.match(stream.read(_BLOCK))
    if header is not None and header[0].count(b",") >= _MOST_COLUMNS:
        raise DomainError(f"Expected at most {_MOST_COLUMNS} columns in {path}, got more.")
    blocks = pyarrow.csv.ReadOptions(block_size=_BLOCK)
    with pyarrow.csv.open_csv(path, blocks) as reader:
        _check_present(path, names, reader.schema.names, refused)
    wanted = pyarrow.csv.ConvertOptions(include_columns=list(dict.fromkeys(names)))
    return pyarrow.csv.read_csv(path, blocks, convert_options=wanted)


def _of_parquet(path: Path, names: list[str], refused: Mapping[str, str]) -> Any:
    """Return columns of a Parquet file, after checks of its metadata; equal texts are kept once."""
    import pyarrow as pa
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(path)
    schema, rows = file.schema_arrow, file.metadata.num_rows
    _check_present(path, names, schema.names, refused)
    for name in names:
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise DomainError(f"Expected a column of values, but {name} of {path} is a {str(kind)[:40]}.")
        if pa.types.is_fixed_size_binary(kind) and rows * kind.byte_width > _MOST_BYTES:
            raise DomainError(f"Expected a column of at most {_MOST_BYTES:g} bytes, got {name} of {path}.")
    if not 1 <= rows <= MOST_ROWS:
        raise DomainError(f"Expected 1 to {MOST_ROWS} rows in {path}, got {rows}.")
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    places = [i for i in range(file.metadata.num_columns) if file.schema.column(i).path in names]
    if sum(group.column(i).total_uncompressed_size for group in groups for i in places) > _MOST_BYTES:
        raise DomainError(f"Expected columns of at most {_MOST_BYTES:g} bytes in {path}.")
    return pyarrow.parquet.ParquetFile(path, read_dictionary=names).read(columns=names)


def _check_packed(path: Path) -> None:
    """Measure compressed text, whose size says nothing about its rows."""
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        if stream.seekable():
            return
        rows = size = 0
        while block := stream.read(_BLOCK):
            rows, size = rows + block.count(b"\n"), size + len(block)
            if size > _MOST_TEXT:
                raise DomainError(f"Expected at most {_MOST_TEXT / 1e9:g} GB of text, got more in {path}.")
            if rows > MOST_ROWS + 1:
                raise DomainError(f"Expected 1 to {MOST_ROWS} rows in {path}, got more.")


def _check_lines(path: Path) -> None:
    """Refuse deeply nested JSON, which Arrow would parse until the stack overflows, and very many names."""
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(2 * _BLOCK), b""), start=1):
            if line.count(b"[") + line.count(b"{") <= _NESTED and line.count(b":") <= _MOST_COLUMNS:
                continue
            try:
                names = json.loads(line)
            except (ValueError, RecursionError):
                raise DomainError(
                    f"Expected one JSON object, not deeply nested, in line {number} of {path}."
                ) from None
            if len(names) > _MOST_COLUMNS:
                raise DomainError(f"Expected at most {_MOST_COLUMNS} names in line {number} of {path}.")


def _check_present(
    path: Path, names: Sequence[str], present: Sequence[str], refused: Mapping[str, str]
) -> None:
    for name in present:
        if name in refused:
            raise DomainError(refused[name])
    for name in names:
        if name not in present:
            raise DomainError(
                f"Expected a column named {name} in {path}; its columns are {', '.join(present)[:200]}."
            )
        if present.count(name) > 1:
            raise DomainError(f"Expected one column named {name} in {path}, got {present.count(name)}.")


def _arrays(path: Path, names: Sequence[str], refused: Mapping[str, str], *, zipped: bool) -> Any:
    """Return the columns of a file of numpy; Python objects are refused."""
    import pyarrow as pa

    try:
        columns = (_of_archive if zipped else _of_array)(path, names, refused)
    except DomainError:  # a ValueError, with its own sentence
        raise
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if zipped and not isinstance(error, ValueError):
            raise OSError("the archive is truncated or damaged") from None
        if not zipped and _is_truncated(path):
            raise OSError("the file is truncated") from None
        raise OSError(str(error) or "damaged file") from None
    for name, column in columns.items():
        if column.ndim != 1:
            raise DomainError(f"Expected a column of numbers, but {name} of {path} has shape {column.shape}.")
    # Arrow has values in the byte order of the machine only.
    native = {name: np.array(column, column.dtype.newbyteorder("=")) for name, column in columns.items()}
    return pa.table(native)


def _of_archive(path: Path, names: Sequence[str], refused: Mapping[str, str]) -> _Arrays:
    """Return arrays of an NPZ file."""
    with zipfile.ZipFile(path) as archive:
        present = [name.removesuffix(".npy") for name in archive.namelist()]
        _check_present(path, names, present, refused)
        return {name: _member(archive, name) for name in names}


def _of_array(path: Path, names: Sequence[str], refused: Mapping[str, str]) -> _Arrays:
    """Return fields of an NPY file; a plain array has one name only."""
    with path.open("rb") as file:
        _check_size(path.name, *_header(file))
    # A map of the file cannot be larger than the file, even if its header lies.
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    fields = array.dtype.names
    if fields is not None:
        _check_present(path, names, list(fields), refused)
    elif len(set(names)) > 1:
        raise DomainError(f"Expected an NPY file with named fields, but {path} has a plain array.")
    return {name: array if fields is None else array[name] for name in names}


def _is_truncated(path: Path) -> bool:
    """Return whether an NPY file ends within its header, or before its last value."""
    with path.open("rb") as file:
        try:
            shape, kind = _header(file)
        except ValueError:
            return not file.read(1)
        values = math.prod(float(side) for side in shape)
        return file.tell() + values * kind.itemsize > path.stat().st_size


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the type of an array from its header."""
    version = np.lib.format.read_magic(file)
    first = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    try:
        shape, _, kind = read(file)
    except (tokenize.TokenError, RecursionError, MemoryError):
        raise ValueError("the header is damaged") from None
    return shape, kind


def _check_size(name: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    values = math.prod(float(side) for side in shape)
    size = kind.itemsize
    if values > MOST_ROWS or not 1 <= size <= _LONGEST or values * size > _MOST_BYTES:
        raise ValueError(f"{name} has shape {str(shape)[:80]} and values of {size} bytes")


def _member(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    """Return one array of an NPZ file, after a check of the size that its header states."""
    with archive.open(f"{name}.npy") as file:
        _check_size(name, *_header(file))
    with archive.open(f"{name}.npy") as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
