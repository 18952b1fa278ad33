"""Columns of JSONL files, with one object on each line, as texts: numbers keep all of their digits."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from privcore.distributions.table_formats import BLOCK, MOST_ROWS, Format, no_rows, places
from privcore.errors import DomainError

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
