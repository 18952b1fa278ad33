"""The result of a query as a file: CSV, Parquet, JSON, Markdown or LaTeX, never inside a store."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from flows.printing import DIGITS_OF_BOUNDS, as_csv, as_json, exactly, rounded_down, rounded_up
from privcore import DomainError
from privcore.errors import unknown
from storage.export import in_microseconds, parquet_bytes
from storage.located import outside_stores

Rows = Sequence[Sequence[Any]]

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~$&!^{}]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{letter: "\\" + letter for letter in "&%$#_{}"},
}


_ENDS = {"lower": rounded_down, "upper": rounded_up}
"""Rounding of the numbers in a column, by a word of its name."""


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names of columns; a repeated name gets its position as a suffix.

    Example:
        >>> distinct(["a", "a", "a_2", "b"])
        ['a', 'a_2', 'a_2_3', 'b']
    """
    found: list[str] = []
    for k, name in enumerate(names, 1):
        candidates = (name, *(f"{name}_{number}" for number in range(k, k + len(names))))
        found.append(next(candidate for candidate in candidates if candidate not in found))
    return found


def no_nan(cell: Any) -> Any:
    """Return null for NaN, at any depth: a query may produce it, and strict JSON lacks it.

    Example:
        >>> no_nan({"a": [math.nan, 1.0]})
        {'a': [None, 1.0]}
    """
    if isinstance(cell, Mapping):
        return {key: no_nan(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple):
        return [no_nan(value) for value in cell]
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def json_text(names: Sequence[str], rows: Rows) -> str:
    """Return a list of objects in strict JSON: NaN is null, infinity the string "inf"."""
    return as_json([dict(zip(distinct(names), map(no_nan, row), strict=True)) for row in rows]) + "\n"


def markdown(names: Sequence[str], rows: Rows) -> str:
    r"""Return a table in Markdown; no cell can end its column, start a link or pass for HTML.

    Example:
        >>> print(markdown(["sigma", "upper", "by"], [[1.5, 0.884791, "a|b"]]), end="")
        | sigma | upper | by |
        |---:|---:|---|
        | 1.5 | 0.8848 | a\|b |
    """
    marks = ["---:" if numeric else "---" for numeric in _numeric(len(names), rows)]
    lines = _for_readers(names, rows)
    text = ["| " + " | ".join(_MARKDOWN.sub(r"\\\1", cell) for cell in line) + " |" for line in lines]
    return "\n".join([text[0], f"|{'|'.join(marks)}|", *text[1:]]) + "\n"


def tex(names: Sequence[str], rows: Rows) -> str:
    r"""Return a table in LaTeX, for the package booktabs; every cell is text, never a command.

    Example:
        >>> print(tex(["sigma", "by"], [[1.5, "a_b"]]), end="")
        \begin{tabular}{rl}
        \toprule
        sigma & by \\
        \midrule
        1.5 & a\_b \\
        \bottomrule
        \end{tabular}
    """
    marks = "".join("r" if numeric else "l" for numeric in _numeric(len(names), rows))
    lines = [" & ".join(map(_in_tex, line)) + r" \\" for line in _for_readers(names, rows)]
    head = [rf"\begin{{tabular}}{{{marks}}}", r"\toprule", lines[0], r"\midrule"]
    return "\n".join([*head, *lines[1:], r"\bottomrule", r"\end{tabular}"]) + "\n"


def _for_readers(names: Sequence[str], rows: Rows) -> list[list[str]]:
    """Return names and cells as text: ends rounded outwards to four digits, everything else without loss.

    The ends are the floats in columns such as `lower`, `epsilon_upper` or `upper_0`.
    """
    rounding = [next((to for word, to in _ENDS.items() if word in name.split("_")), None) for name in names]
    return [
        list(map(exactly, names)),
        *(
            [
                to(cell, DIGITS_OF_BOUNDS)
                if to and isinstance(cell, float) and not math.isnan(cell)
                else exactly(cell)
                for cell, to in zip(row, rounding, strict=True)
            ]
            for row in rows
        ),
    ]


def _in_tex(text: str) -> str:
    # A bracket at the start of a line would be read as the argument of the \\ before it.
    escaped = "".join(_TEX.get(letter, letter) for letter in text)
    return "{}" + escaped if escaped.lstrip().startswith(("[", "*")) else escaped


def _numeric(count: int, rows: Rows) -> list[bool]:
    """Return, for each column, whether all of its cells are numbers."""
    return [bool(rows) and all(isinstance(row[k], int | float) for row in rows) for k in range(count)]


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a table, or of a batch of it, as Python objects, exact decimals as numbers.

    Raises:
        DomainError: A time is outside the range of Python.
    """
    columns = []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        try:
            cells = in_microseconds(column).to_pylist()
            columns.append([_number(cell) if isinstance(cell, Decimal) else cell for cell in cells])
        except (OverflowError, ValueError) as error:
            raise DomainError(
                f"Expected times in the years 1 to 9999, in microseconds, got other times in {name}; "
                "cast them to varchar."
            ) from error
    return list(zip(*columns, strict=True))


def _number(cell: Decimal) -> int | float | Decimal:
    """Return a decimal, the type of literals and of sums of integers in SQL, as a number if that is exact."""
    if cell == cell.to_integral_value():
        return int(cell)
    return float(cell) if Decimal(repr(float(cell))) == cell else cell


def _in_pieces(table: Any) -> Iterator[Rows]:
    """Yield all rows, some at a time: as Python objects, a large table would not fit into memory."""
    return map(rows_of, table.to_batches(max_chunksize=10_000))


def _csv(table: Any) -> bytes:
    head = as_csv(table.column_names, [])
    pieces = (as_csv(table.column_names, rows).removeprefix(head) for rows in _in_pieces(table))
    return b"".join([head.encode(), *(piece.encode() for piece in pieces)])


def _json(table: Any) -> bytes:
    pieces = (json_text(table.column_names, rows)[1:-2].encode() for rows in _in_pieces(table) if rows)
    return b"[" + b", ".join(pieces) + b"]\n"


def _as_text(write: Callable[[Sequence[str], Rows], str]) -> Callable[[Any], bytes]:
    return lambda table: write(table.column_names, rows_of(table)).encode()


FORMATS: Mapping[str, Callable[[Any], bytes]] = {
    "csv": _csv,
    "parquet": parquet_bytes,
    "json": _json,
    "md": _as_text(markdown),
    "tex": _as_text(tex),
}
"""Functions that turn a table from a store into the content of a file, by format."""


def chosen_format(name: str | None, out: Path | None) -> str:
    """Return the given format, else the format of the file's ending, else CSV.

    Raises:
        UnknownNameError: The format is unknown.
    """
    found = name or (out.suffix.removeprefix(".").lower() if out is not None else "") or "csv"
    if found not in FORMATS:
        raise unknown("format", found, list(FORMATS))
    return found


def target_of(out: Path) -> Path:
    """Return the file to write, with links resolved.

    Raises:
        DomainError: The path is inside a store, is the address of a bucket, which may only hold stores, or is
            not a regular file: writing would replace it, even `/dev/null`.
    """
    target = outside_stores(out, "file")
    if out.exists() and not out.is_file():
        raise DomainError(f"Expected a file, got the {'folder' if out.is_dir() else 'device or pipe'} {out}.")
    return target
