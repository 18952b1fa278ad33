"""The result of a query as a file or a text, and facts about its rows that it does not show."""

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from flows.printing import DIGITS_OF_BOUNDS, as_csv, as_json, exactly, rounded_down, rounded_up
from privcore import DomainError
from privcore.errors import unknown
from storage import Store
from storage.export import in_microseconds, write_parquet
from storage.place.located import outside_stores
from storage.schema import IMPORTS, origin_text
from storage.sql.macros import COMPARED, SHORT
from storage.sql.views import view_name

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


def markdown(names: Sequence[str], rows: Rows) -> str:
    r"""Return a table in Markdown; no cell can end its column, start a link or pass for HTML.

    Example:
        >>> print(markdown(["sigma", "upper", "by"], [[1.5, 0.884791, "a|b"]]), end="")
        | sigma | upper | by |
        |---:|---:|---|
        | 1.5 | 0.8848 | a\|b |
    """
    return "".join(_markdown(names, iter([rows])))


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
    return "".join(_tex(names, iter([rows])))


def _markdown(names: Sequence[str], pieces: Iterator[Rows]) -> Iterator[str]:
    for k, rows in enumerate(pieces):
        if k == 0:
            marks = ["---:" if numeric else "---" for numeric in _numeric(len(names), rows)]
            yield _markdown_line(map(exactly, names)) + f"|{'|'.join(marks)}|\n"
        yield "".join(map(_markdown_line, _for_readers(names, rows)))


def _markdown_line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_MARKDOWN.sub(r"\\\1", cell) for cell in cells) + " |\n"


def _tex(names: Sequence[str], pieces: Iterator[Rows]) -> Iterator[str]:
    for k, rows in enumerate(pieces):
        if k == 0:
            marks = "".join("r" if numeric else "l" for numeric in _numeric(len(names), rows))
            head = _tex_line(map(exactly, names))
            yield f"\\begin{{tabular}}{{{marks}}}\n\\toprule\n{head}\\midrule\n"
        yield "".join(map(_tex_line, _for_readers(names, rows)))
    yield "\\bottomrule\n\\end{tabular}\n"


def _tex_line(cells: Iterable[str]) -> str:
    return " & ".join(map(_in_tex, cells)) + " \\\\\n"


def _for_readers(names: Sequence[str], rows: Rows) -> Iterator[list[str]]:
    """Yield cells as text: ends rounded outwards to four digits, everything else without loss.

    The ends are the floats in columns such as `lower`, `epsilon_upper` or `upper_0`.
    """
    rounding = [next((to for word, to in _ENDS.items() if word in name.split("_")), None) for name in names]
    for row in rows:
        yield [
            to(cell, DIGITS_OF_BOUNDS)
            if to and isinstance(cell, float) and not math.isnan(cell)
            else exactly(cell)
            for cell, to in zip(row, rounding, strict=True)
        ]


def _in_tex(text: str) -> str:
    # A bracket at the start of a line would be read as the argument of the \\ before it.
    escaped = "".join(_TEX.get(letter, letter) for letter in text)
    return "{}" + escaped if escaped.lstrip().startswith(("[", "*")) else escaped


def _numeric(count: int, rows: Rows) -> list[bool]:
    """Return, for each column, whether all of its cells are numbers."""
    return [bool(rows) and all(isinstance(row[k], int | float) for row in rows) for k in range(count)]


LARGEST_QUERY = 10**6
"""Largest size of a file with a query, in bytes."""


def query_in(query: str | Path) -> str:
    """Return a query, also from a file, or from standard input for `-`.

    Args:
        query: The query itself, or the path of a file whose name ends with `.sql`.

    Raises:
        DomainError: The file cannot be read.
    """
    text = str(query).strip()
    try:
        if text == "-":
            return sys.stdin.read(LARGEST_QUERY)
        if isinstance(query, Path) or (text.lower().endswith(".sql") and len(text.split()) == 1):
            with Path(text).expanduser().open(encoding="utf-8-sig") as file:
                return file.read(LARGEST_QUERY)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DomainError(f"Cannot read the query {text[:100]}: {why}.") from None
    return text


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


def _csv(names: Sequence[str], pieces: Iterator[Rows]) -> Iterator[str]:
    yield (head := as_csv(names, []))
    for rows in pieces:
        yield as_csv(names, rows).removeprefix(head)


def _json(names: Sequence[str], pieces: Iterator[Rows]) -> Iterator[str]:
    """Yield a list of objects in strict JSON: NaN is null, infinity the string "inf"."""
    keys, start = distinct(names), "["
    for rows in filter(None, pieces):
        yield start + as_json([dict(zip(keys, map(no_nan, row), strict=True)) for row in rows])[1:-1]
        start = ", "
    yield "[]\n" if start == "[" else "]\n"


Write = Callable[[Iterator[Any], BinaryIO], None]


def _as_text(texts: Callable[[Sequence[str], Iterator[Rows]], Iterator[str]]) -> Write:
    """Return the function that writes a table as the texts of its names and of pieces of its rows."""

    def write(pieces: Iterator[Any], file: BinaryIO) -> None:
        first = next(pieces)
        for text in texts(first.column_names, map(rows_of, chain([first], pieces))):
            file.write(text.encode())

    return write


FORMATS: Mapping[str, Write] = {
    "csv": _as_text(_csv),
    "parquet": write_parquet,
    "json": _as_text(_json),
    "md": _as_text(_markdown),
    "tex": _as_text(_tex),
}
"""Functions that write the pieces of a table from a store into a file, by format."""


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


_SHARED = ("results", "best", "conflicts", "query", "query_table")
"""Views over all problems whose rows have bounds, and functions that may read them by another name."""


def assumed_in(query: str, store: Store) -> str:
    """Return a note on rows that take a column of a file as a distribution; "" if a query reads none of them.

    Args:
        query: Query that ran; it reads a view, table or macro of a problem only if it names it.
        store: The store that it read.
    """
    counted = "select problem, count(*) as n, any_value(assumed) as assumed from assumptions group by problem"
    found = store.sql(f"{counted} order by problem").to_pylist()
    read = [row for row in found if _mentions(query, row["problem"])]
    if not read:
        return ""
    count = sum(row["n"] for row in read)
    problems = "1 stored problem takes" if count == 1 else f"{count} stored problems take"
    return (
        f"{problems} a column of a file as a distribution, so their bounds are proved for its values alone: "
        f"{exactly(read[0]['assumed'])}; the view assumptions lists them."
    )


def tables_in(query: str, store: Store) -> str:
    """Return a note on rows of lookup tables; "" if a query reads none of them.

    Args:
        query: Query that ran.
        store: The store that it read.
    """
    if not store.sql(f"from {IMPORTS} limit 1").num_rows:
        return ""
    marked = f"from {IMPORTS} join results using (point_id) group by all order by all"
    found = store.sql(f"select problem, source, count(*) as n {marked}").to_pylist()
    read = [row for row in found if _mentions(query, row["problem"])]
    if not read:
        return ""
    count, tables = sum(row["n"] for row in read), dict.fromkeys(row["source"] for row in read)
    rows = "1 stored row is " if count == 1 else f"{count} stored rows are "
    return origin_text(tables, rows, f"; the view {IMPORTS} lists them.")


def superseded_in(query: str, store: Store) -> str:
    """Return a note on rows of superseded versions; "" if a query reads none of them.

    The brackets leave them out, so only views of rows show them.

    Args:
        query: Query that ran.
        store: The store that it read.
    """
    counted = "select problem, method, count(*) as n from superseded group by all order by all"
    shown = r'(?<!brackets\.)(?<!brackets\.")\b(?:results|query|query_table|{})\b'
    read = [
        row
        for row in store.sql(counted).to_pylist()
        if re.search(shown.format(view_name(row["problem"])), query, re.IGNORECASE)
    ]
    if not read:
        return ""
    count, methods = sum(row["n"] for row in read), ", ".join(sorted({row["method"] for row in read}))
    rows = "1 stored row is" if count == 1 else f"{count} stored rows are"
    return (
        f"{rows} of a superseded version of {methods}, whose numbers may be false; best and lookups "
        "leave these rows out, and the view superseded lists them."
    )


def _mentions(query: str, problem: str) -> bool:
    """Return whether a query names a view over all problems, or a view, table or macro of a problem."""
    view = view_name(problem)
    short = [name for name, macro in SHORT.items() if macro in {f"{view}_at", f"{view}_noise"}]
    compared = ["compare"] if problem in COMPARED else []
    names = "|".join([*_SHARED, *short, *compared, f"{view}(?:_at|_noise)?"])
    return re.search(rf"\b(?:{names})\b", query, re.IGNORECASE) is not None
