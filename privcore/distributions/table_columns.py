"""Columns of CSV, JSONL, NPY and NPZ files, exactly as written: nothing is guessed from a value."""

import contextlib
import csv
import io
import itertools
import json
import math
import re
import tokenize
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from privcore.distributions.table_formats import BLOCK, MOST_ROWS, Format, no_rows, places
from privcore.errors import DomainError

Values = np.ndarray[Any, Any]

MOST_BYTES = 2e9
"""Most bytes of all values of a column."""
_NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE | re.ASCII)
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
        _check_values(path, *_array_header(file))
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
            shape, kind = _array_header(file)
        except ValueError:
            return not file.read(1)
        values = math.prod(float(side) for side in shape)
        return file.tell() + values * kind.itemsize > path.stat().st_size


def _array_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
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
        _check_values(path, *_array_header(file))
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


_SEPARATORS = (",", ";", "\t", "|")
_SEPARATOR_LINE = re.compile(r'"?sep=([!-~\t])"?\s*', re.IGNORECASE)
_IN_ORDER = (("score",), ("score", "included"), ("fpr", "tpr"))
"""Columns that a file without a header may have, in this order."""
_MOST_COLUMNS = 10_000  # since the parser needs some kB for each
_MISSING = (
    *("", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "NULL", "null", "Null", "None"),
    *("<NA>", "#N/A", "#NA", "\\N"),
)  # but not Na and none, which are answers


def read_csv(path: Path, found: Format, names: Sequence[str], refused: Mapping[str, str]) -> list[Any]:
    """Return columns of a CSV file as Arrow arrays of texts without missing values; the others are not kept.

    The separator is a comma, a semicolon, a tab or |, named by a first line such as `sep=;` or found by the
    wanted names in the header. A first row of numbers alone is not a header if it has as many of them as
    columns are wanted, one or two: the columns are then in the order of the names. Text that is not UTF-8 is
    read byte by byte (Latin-1), which keeps different texts different.

    Raises:
        DomainError: A column or a value is missing, or a row does not have the columns of the header.
        OSError, UnicodeError, pyarrow.ArrowException: The file cannot be read.
    """
    import pyarrow as pa

    columns = _bytes(path, found, names, refused)
    try:
        texts = [column.cast(pa.large_string()) for column in columns]
    except pa.ArrowInvalid:  # not UTF-8
        latin = Format(kind=found.kind, packed=found.packed, encoding="latin-1")
        texts = [column.cast(pa.large_string()) for column in _bytes(path, latin, names, refused)]
    for name, column in zip(names, texts, strict=True):
        _check_missing(path, name, column)
    return texts


def _bytes(path: Path, found: Format, names: Sequence[str], refused: Mapping[str, str]) -> list[Any]:
    """Return columns as texts in bytes."""
    import pyarrow as pa
    import pyarrow.csv

    separator, header, skipped = _header(path, found, names)
    alone = len(header) == 1
    hint = ", separated by neither commas, semicolons, tabs nor |" if alone else ""
    wanted = [f"f{place}" for place in places(path, names, header, refused, hint)]
    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    def read(*, threads: bool) -> Any:
        return pyarrow.csv.read_csv(
            found.utf8(path),
            pyarrow.csv.ReadOptions(
                block_size=BLOCK,
                skip_rows=skipped,
                column_names=[f"f{place}" for place in range(len(header))],
                use_threads=threads,
            ),
            pyarrow.csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse
            ),
            pyarrow.csv.ConvertOptions(
                include_columns=list(dict.fromkeys(wanted)), column_types=dict.fromkeys(wanted, pa.binary())
            ),
        )

    try:
        table = read(threads=True)
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise no_rows(path, 0) from None
        if wrong and wrong[-1].number is None:
            with contextlib.suppress(pa.ArrowInvalid):
                read(threads=False)  # only then do rows have numbers
        if wrong:
            raise DomainError(
                f"Expected as many values in each row of {path} as in its header, {len(header)}, got "
                f"{wrong[-1].actual_columns} in row {wrong[-1].number - skipped}; put values with "
                f"{separator!r} in quotation marks, and write decimal points."
            ) from None
        raise
    _check_lines(path, found, separator, skipped, table.num_rows, alone=alone)
    return [table.column(name) for name in wanted]


def _header(path: Path, found: Format, names: Sequence[str]) -> tuple[str, list[str], int]:
    """Return the separator, the names of the columns, and the number of lines before the rows."""
    with found.utf8(path) as stream:
        text = stream.read(BLOCK).decode("utf-8", "replace").removeprefix("\ufeff")
    lines = io.StringIO(text, newline=None)
    separators: Sequence[str] = _SEPARATORS
    before, first = 0, ""
    for line in lines:
        named = _SEPARATOR_LINE.fullmatch(line)
        if named is None and line.strip():
            first = line
            break
        separators, before = (named[1],) if named else separators, before + 1
    if not first:
        raise no_rows(path, 0)
    start, read = lines.tell(), []
    for separator in separators:
        lines.seek(start)
        reader = csv.reader(itertools.chain([first], lines), delimiter=separator, skipinitialspace=True)
        with contextlib.suppress(csv.Error):  # of other separators, a header may be too long
            header = next(reader)
            here = {name.strip() for name in header}
            read.append(
                (all(name in here for name in names), len(header), separator, header, reader.line_num)
            )
    if not read:
        raise _unquoted(path, "the header")
    _, columns, separator, header, number = max(read, key=lambda each: each[:2])
    cells = {name.strip() for name in header}
    numbers = not cells & set(names) and all(map(_NUMERAL.fullmatch, cells))
    if numbers and columns == len(names) and tuple(names) in _IN_ORDER:
        if [name.strip() for name in header] == [str(place) for place in range(columns)]:
            raise DomainError(
                f"Expected a header in {path}, or none; its first row is {separator.join(header)}, the "
                "numbers of columns that pandas writes: write names, or header=False."
            )
        return separator, list(names), before
    if columns > _MOST_COLUMNS:
        raise DomainError(f"Expected at most {_MOST_COLUMNS} columns in {path}, got more.")
    return separator, header, before + number


def _check_lines(path: Path, found: Format, separator: str, skipped: int, rows: int, *, alone: bool) -> None:
    """Compare rows with lines; read the file again, strictly, if a quotation mark may have joined lines.

    A quotation mark that is never closed would make one value of all rows after it. In a file with one
    column, an empty line before the last row is a missing value.
    """
    ends = [0, 0]
    with found.utf8(path) as stream:
        while block := stream.read(BLOCK):
            ends = [ends[0] + block.count(b"\n"), ends[1] + block.count(b"\r")]
    if rows - (max(ends) - skipped) in (0, 1):  # the last line may have no end
        return
    row, empty = 0, 0
    with io.TextIOWrapper(io.BufferedReader(found.utf8(path)), "utf-8", "replace", newline="") as text:
        for _ in range(skipped):
            text.readline()
        try:
            for values in csv.reader(text, delimiter=separator, strict=True):
                if not values:
                    empty = empty or row + 1
                    continue
                row += 1
                if alone and empty:
                    raise DomainError(f"Expected a value in each row of {path}; row {empty} is empty.")
        except csv.Error:
            raise _unquoted(path, f"row {row + 1}") from None


def _unquoted(path: Path, where: str) -> DomainError:
    return DomainError(
        f"Expected closed quotation marks in {path}, but one in {where} is never closed, or text follows it; "
        'write "" for a quotation mark within a value.'
    )


def _check_missing(path: Path, name: str, column: Any) -> None:
    """Refuse missing values: empty ones, and the words that statistical software writes for them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column
    if pc.any(pc.match_substring(column, " ")).as_py():
        text = pc.utf8_trim_whitespace(column)
    row = pc.index(pc.is_in(text, pa.array(_MISSING, text.type)), value=True).as_py()
    if row < 0:
        return
    cell = text[row].as_py()
    word = f", but the word {cell!r}: remove the row, or rename a category of this name" if cell else ""
    raise DomainError(
        f"Expected a value in each row of the column {name} of {path}; row {row + 1} has no value{word}."
    )


_CHUNK = 100_000  # rows of a chunk


class _Number(str):
    """Digits of a number, exactly as written."""

    __slots__ = ()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose names differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


_parsed = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_Number).raw_decode
_checked = json.JSONDecoder(object_pairs_hook=_once).decode


def read_json(path: Path, found: Format, names: Sequence[str], refused: Mapping[str, str]) -> list[Any]:
    """Return columns of a JSONL file as Arrow arrays of texts; texts are in quotation marks, numbers are not.

    Raises:
        DomainError: A line is not an object, or has no value, an array or an object for a name.
        OSError, UnicodeError, pyarrow.ArrowException: The file cannot be read.
    """
    import pyarrow as pa

    chunks: list[list[Any]] = [[] for _ in names]
    cells: list[list[str]] = [[] for _ in names]

    def put_away() -> None:
        for done, filled in zip(chunks, cells, strict=True):
            done.append(pa.array(filled, pa.large_string()))
            filled.clear()

    row = 0
    for row, record in enumerate(_records(path, found, names), start=1):
        if row == 1 or refused:
            places(path, names if row == 1 else (), list(record), refused)
        if row > MOST_ROWS:
            raise no_rows(path, row)
        for name, filled in zip(names, cells, strict=True):
            filled.append(_cell(path, name, row, record))
        if row % _CHUNK == 0:
            put_away()
    if not row:
        raise no_rows(path, 0)
    put_away()
    return [pa.chunked_array(done, pa.large_string()) for done in chunks]


def _records(path: Path, found: Format, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Return the objects of a file, in order."""
    words = [json.dumps(name) for name in names]
    with io.TextIOWrapper(io.BufferedReader(found.utf8(path)), "utf-8-sig", "surrogateescape") as lines:
        for number, line in enumerate(iter(lambda: lines.readline(2 * BLOCK), ""), start=1):
            text = line.strip()
            if not text:
                continue
            try:
                record, end = _parsed(text)
                for word in words:
                    if text.count(word) > 1:
                        _checked(text)
            except (ValueError, RecursionError):
                record, end = None, 0
            if end < len(text) or not isinstance(record, dict):
                raise DomainError(
                    f"Expected one JSON object in line {number} of {path}: names and texts in double "
                    "quotation marks, no name twice, not deeply nested."
                )
            yield record


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes that are not UTF-8, or half of a character
        return False
    return True


def _cell(path: Path, name: str, row: int, record: Mapping[str, Any]) -> str:
    """Return the text of a value; texts are in quotation marks, so that "1" is not 1."""
    value = record.get(name)
    if value is None:  # its name may have blanks around it
        value = next((each for other, each in record.items() if other.strip() == name), None)
    if type(value) is str:
        if not value.isascii() and not _is_unicode(value):
            raise DomainError(f"Expected Unicode in the column {name} of {path}; row {row} has other bytes.")
        return f'"{value}"'
    if type(value) is _Number and value != "NaN":
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        raise DomainError(
            f"Expected a value in each row of the column {name} of {path}; row {row} has no value."
        )
    kind = "an array" if isinstance(value, list) else "an object"
    raise DomainError(f"Expected values in the column {name} of {path}; row {row} has {kind}.")
