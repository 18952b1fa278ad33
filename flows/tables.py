"""Layout of tables for a terminal: no line is wider than the terminal, and no word is cut short.

Rich, which prints the help, shortens or breaks the words of a table that is too wide.
"""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

GAP = "  "
"""Space between two columns."""

LONGEST_WORD = 40
"""Letters of a word that is never broken in a cell."""

_INDENT = " " * 4

Row = Sequence[str]


def fitted(
    names: Row, rows: Sequence[Row], right: Sequence[bool], width: int, *, heading: str = "", below: str = ""
) -> Iterator[str]:
    """Yield the lines of a table that fits a terminal; a table that cannot fit becomes a list of records.

    Args:
        names: Names of the columns.
        rows: Cells, which may be broken between words.
        right: For each column, whether its cells are aligned to the right.
        width: Columns of the terminal.
        heading: Column that is printed as a line above the rows with the same value, if the table fits only
            without it.
        below: Column that is printed below each row, if the table fits only with broken cells.
    """
    columns = [[name, *(row[k] for row in rows)] for k, name in enumerate(names)]
    wide = _total([max(map(len, cells)) for cells in columns]) > width
    if not (below in names and wide) and (widths := _widths(columns, width)) is not None:
        return _table(names, rows, right, widths)
    apart = below if below in names else heading
    kept = [k for k, name in enumerate(names) if name != apart]
    if len(kept) == len(names) or (widths := _widths([columns[k] for k in kept], width)) is None:
        return _records(names, rows, width)
    cells = columns[list(names).index(apart)][1:]
    if apart == heading:
        lasts = [None, *cells]
        above = [[f"{apart} {cell}"] if cell != lasts[k] else [] for k, cell in enumerate(cells)]
        aside = {"above": above}
    else:
        aside = {"below": [broken(_INDENT + cell, width, _INDENT) if cell else [] for cell in cells]}
    rest = [[row[k] for k in kept] for row in rows]
    return _table([names[k] for k in kept], rest, [right[k] for k in kept], widths, **aside)


def broken(text: str, width: int, indent: str = "", *, fold: bool = False) -> list[str]:
    """Return the lines of a text that is broken between words.

    Args:
        text: One paragraph.
        width: Letters of a line.
        indent: Spaces before every line but the first.
        fold: Whether to break words that are longer than a line.
    """
    if len(text) <= width:
        return [text]
    return textwrap.wrap(
        text,
        max(width, len(indent) + 1),
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=fold,
    )


def _total(widths: Sequence[int]) -> int:
    """Return the width of a table."""
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _widths(columns: Sequence[Row], width: int) -> list[int] | None:
    """Return widths that fit, the widest columns giving way first; None if the words do not fit."""
    most = [max(map(len, cells)) for cells in columns]
    words = [[len(word) for cell in cells for word in cell.split()] for cells in columns]
    least = [min(max(lengths, default=1), LONGEST_WORD) for lengths in words]
    for cap in range(max(most, default=0), -1, -1):
        widths = [min(m, max(n, cap)) for m, n in zip(most, least, strict=True)]
        if _total(widths) <= width:
            return widths
    return None


def _table(
    names: Row,
    rows: Sequence[Row],
    right: Sequence[bool],
    widths: Sequence[int],
    *,
    above: Sequence[Row] = (),
    below: Sequence[Row] = (),
) -> Iterator[str]:
    """Yield the names of the columns, a rule, and the rows with the lines above and below them."""
    yield from _line(names, right, widths)
    yield GAP.join("-" * width for width in widths)
    for before, row, after in zip_longest(above, rows, below, fillvalue=()):
        yield from before
        yield from _line(row, right, widths)
        yield from after


def _line(cells: Row, right: Sequence[bool], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of one row."""
    lines = [broken(cell, width, fold=True) for cell, width in zip(cells, widths, strict=True)]
    for parts in zip_longest(*lines, fillvalue=""):
        padded = [
            part.rjust(width) if flush else part.ljust(width)
            for part, width, flush in zip(parts, widths, right, strict=True)
        ]
        yield GAP.join(padded).rstrip()


def _records(names: Row, rows: Sequence[Row], width: int) -> Iterator[str]:
    """Yield a line for each cell that is not empty, and an empty line between two rows."""
    label = max(map(len, names)) + len(GAP)
    if not rows:
        yield from broken(GAP.join(names), width)
    for k, row in enumerate(rows):
        if k:
            yield ""
        for name, cell in zip(names, row, strict=True):
            if cell:
                yield from broken(f"{name:<{label}}{cell}", width, " " * label)
