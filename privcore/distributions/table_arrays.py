"""Columns of NPY and NPZ files; Python objects are refused, and sizes are checked before anything is read."""

import math
import tokenize
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from privcore.distributions.table_formats import MOST_ROWS, Format, places
from privcore.errors import DomainError

Values = np.ndarray[Any, Any]

MOST_BYTES = 2e9
"""Most bytes of all values of a column."""
_LONGEST = 1024  # bytes of a value of an array


def read_arrays(path: Path, found: Format, names: Sequence[str], refused: Mapping[str, str]) -> list[Any]:
    """Return columns of an NPY or NPZ file as Arrow arrays.

    Raises:
        DomainError: An array is missing, damaged, too large or not a column of values.
        OSError: The file cannot be read.
    """
    import pyarrow as pa

    zipped = found.kind == "npz"
    try:
        columns = (_of_archive if zipped else _of_array)(path, names, refused)
    except DomainError:  # a ValueError, with its own sentence
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, NotImplementedError):
        damaged = "the archive is" if zipped else "the file is"
        damage = "truncated" if not zipped and _is_truncated(path) else "truncated or damaged"
        raise DomainError(f"Cannot read arrays from {path}: {damaged} {damage}.") from None
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1:
            raise DomainError(f"Expected a column of values, but {name} of {path} has shape {column.shape}.")
    # Arrow has values in the byte order of the machine only.
    native = [np.array(column, column.dtype.newbyteorder("=")) for column in columns]
    try:
        return [pa.chunked_array([pa.array(column)]) for column in native]
    except (pa.ArrowException, ValueError):
        kinds = " and ".join(str(column.dtype)[:40] for column in native)
        raise DomainError(f"Expected numbers or texts in {path}, got {kinds}.") from None


def _of_archive(path: Path, names: Sequence[str], refused: Mapping[str, str]) -> list[Values]:
    """Return arrays of an NPZ file."""
    with zipfile.ZipFile(path) as archive:
        members = archive.namelist()
        arrays = [name.removesuffix(".npy") for name in members]
        return [_member(archive, path, members[place]) for place in places(path, names, arrays, refused)]


def _of_array(path: Path, names: Sequence[str], refused: Mapping[str, str]) -> list[Values]:
    """Return fields of an NPY file; a plain array has one name only."""
    with path.open("rb") as file:
        _check_values(path, *_header(file))
    # A map of the file cannot be larger than the file, even if its header lies.
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    fields = array.dtype.names
    if fields is not None:
        return [array[fields[place]] for place in places(path, names, fields, refused)]
    if len(set(names)) > 1:
        raise DomainError(f"Expected an NPY file with named fields, but {path} has a plain array.")
    return [array for _ in names]


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


def _check_values(path: Path, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    """Refuse Python objects, and arrays that are too large, by the header of an array."""
    if kind.hasobject:
        raise DomainError(
            f"Expected numbers or texts in {path}, got Python objects; write an array of texts."
        )
    values, size = math.prod(float(side) for side in shape), kind.itemsize
    if values > MOST_ROWS or not 1 <= size <= _LONGEST or values * size > MOST_BYTES:
        raise DomainError(
            f"Expected an array of at most {MOST_ROWS} values in {path}, but it has shape {str(shape)[:80]} "
            f"and values of {size} bytes."
        )


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> Values:
    """Return one array of an NPZ file, after a check of the size that its header states."""
    with archive.open(name) as file:
        _check_values(path, *_header(file))
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
