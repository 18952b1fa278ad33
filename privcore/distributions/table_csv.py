"""Columns of CSV files as texts, exactly as written; nothing is guessed from a value."""

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privcore.distributions.table_formats import BLOCK, Format, no_rows, places
from privcore.errors import DomainError

_SEPARATORS = (",", ";", "\t", "|")
_SEPARATOR_LINE = re.compile(r'"?sep=([!-~\t])"?\s*', re.IGNORECASE)
_MOST_COLUMNS = 10_000  # since the parser needs some kB for each
_MISSING = (
    *("", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "NULL", "null", "Null", "None"),
    *("<NA>", "#N/A", "#NA", "\\N"),
)  # but not Na and none, which are answers


def read_csv(path: Path, found: Format, names: Sequence[str], refused: Mapping[str, str]) -> list[Any]:
    """Return columns of a CSV file as Arrow arrays of texts without missing values; the others are not kept.

    The separator is a comma, a semicolon, a tab or |, named by a first line such as `sep=;` or found by the
    wanted names in the header. Text that is not UTF-8 is read byte by byte (Latin-1),
    which keeps different texts different.

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
