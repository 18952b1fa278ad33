"""Output for people and scripts: ends rounded outwards, strict JSON, tables for a terminal or a pipe."""

import csv
import io
import json
import math
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape
from typing import Any, TextIO

from flows.tables import broken, fitted
from flows.terminal.lines import above_region
from flows.terminal.window import Finished, escaped, painted, width_of

DIGITS = 6
"""Significant digits of a printed end; JSON always has all of them."""

_TABLE = "color:inherit;border-collapse:collapse;font-variant-numeric:tabular-nums"
_CAPTION = "caption-side:top;text-align:left;font-weight:600;padding:0.3em 0;color:inherit"
_HEAD = "padding:0.25em 0.8em;border-bottom:1px solid #808080"
_CELL = "padding:0.25em 0.8em;border-bottom:1px solid #80808040"
"""Styles of tables in notebooks: no ground and no colour of text, so that those of the theme stay."""

_WIDTH, _INDENT = 110, 13
"""Widths of labelled text and of its column of labels, in characters."""

_LABEL = re.compile(r"(privsweep: )?\s*(\S+ {2,})?")
"""The label of a line, and the space before it."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


DIGITS_OF_BOUNDS = 4
"""The same where a reader compares many brackets: in pictures, and in tables for papers."""

WRONG = "bold red"
"""Style of the labels of errors, failures and findings."""

LONGEST_SENTENCE = 1_000  # characters of an error, which may name a text of any length


def say(
    *texts: object, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    """Print texts, with every character that is not printable escaped, except line breaks and tabs.

    Names of files, arguments and contents of files may have characters that move the cursor of a terminal,
    change its colours, or reverse the order of letters. On a terminal, lines are broken between words. Texts
    of `as_json` and of `flows.terminal.window.painted` are printed as they are.

    Args:
        texts: As for `print`, like the others.
        sep: Text between them.
        end: Text after them.
        file: The stream; standard output by default.
        flush: Whether to flush the stream.
    """
    stream = file or sys.stdout
    if not all(isinstance(text, Finished) for text in texts):
        whole = escaped(sep.join(map(str, texts)), "\n\t")
        width = width_of(stream)
        texts = (whole if width is None else "\n".join(_fitted(line, width) for line in whole.split("\n")),)
    with above_region():
        print(*texts, sep=sep, end=end, file=stream, flush=flush)


def _fitted(line: str, width: int) -> str:
    """Return a line that is broken between words; further lines begin below the text next to a label."""
    label = _LABEL.match(line)
    indent = len(label.group()) if label and len(label.group()) <= width // 2 else 0
    return "\n".join(broken(line, width, " " * indent))


def marked(label: str, text: str, *, style: str = "dim", file: TextIO | None = None) -> None:
    """Print a text behind a label that has a style on a terminal with colours.

    Args:
        label: The label, with the space behind it.
        text: The text.
        style: As in `flows.terminal.window.Piece`.
        file: The stream; standard output by default.
    """
    stream = file or sys.stdout
    label, whole, width = escaped(label), escaped(label + text, "\n"), width_of(stream)
    if width is not None:
        whole = "\n".join(_fitted(line, width) for line in whole.split("\n"))
    say(painted([(label, style), (whole[len(label) :], "")], stream), file=stream, flush=True)


def note(*sentences: str, style: str = "") -> None:
    """Print sentences to standard error, each behind the name of the program, as one printable paragraph.

    Args:
        sentences: The sentences.
        style: Style of the name of the program, such as `WRONG`.
    """
    for sentence in sentences:
        marked("privsweep:", f" {escaped(sentence)}", style=style, file=sys.stderr)


def printable(text: object) -> str:
    """Return a text as one printable line of limited length: foreign names may have any characters."""
    return escaped(str(text))[:LONGEST_SENTENCE]


def rounded_up(x: float, digits: int = DIGITS) -> str:
    """Return the smallest decimal with this number of significant digits that is at least x.

    Args:
        x: An upper end: any float except NaN.
        digits: Significant digits, 1 to 17.

    Returns:
        Text that is never below x as an exact decimal.

    Raises:
        ValueError: x is NaN, which is never printed.

    Example:
        >>> rounded_up(0.06059921), rounded_up(0.1), rounded_up(0.5), rounded_up(math.inf)
        ('0.0605993', '0.100001', '0.5', 'inf')
    """
    return _rounded(x, digits, ROUND_CEILING)


def rounded_down(x: float, digits: int = DIGITS) -> str:
    """Return the largest decimal with this number of significant digits that is at most x.

    Example:
        >>> rounded_down(0.06029687), rounded_down(1.23456789e-30), rounded_down(0.0)
        ('0.0602968', '1.23456e-30', '0')
    """
    return _rounded(x, digits, ROUND_FLOOR)


def _rounded(x: float, digits: int, rounding: str) -> str:
    if math.isnan(x):
        raise ValueError("Expected a number to print, got NaN.")
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    context = Context(prec=digits, rounding=rounding)
    # Decimal(x) is the float exactly, so this rounding is the only one; normalize drops zeros at the end.
    rounded = Decimal(x).normalize(context)
    if not rounded:
        return "0"
    return f"{rounded:f}" if -5 <= rounded.adjusted() <= 6 else f"{rounded:e}"


def exactly(value: object) -> str:
    """Return a parameter as people write it, without loss: the shortest text that reads back the same.

    Example:
        >>> exactly(1e-08), exactly(1.0), exactly(10_000), exactly(1e22), exactly("add-remove")
        ('1e-8', '1', '10000', '1e22', 'add-remove')
    """
    if value is None:
        return ""
    if not isinstance(value, float):
        return "".join(letter if letter.isprintable() else " " for letter in str(value))
    mantissa, _, exponent = float.__repr__(value).partition("e")
    return mantissa.removesuffix(".0") + (f"e{int(exponent)}" if exponent else "")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in singular or plural.

    Example:
        >>> counted(1, "point"), counted(2, "point")
        ('1 point', '2 points')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(fields: Mapping[str, object]) -> str:
    """Return fields as they are typed on the command line: `sigma=1 steps=10000`."""
    return " ".join(f"{name}={exactly(value)}" for name, value in fields.items())


def as_json(content: Any, *, indent: int | None = None) -> Finished:
    """Return strict JSON: all digits of every float, infinity as the string "inf", never NaN.

    Raises:
        ValueError: There is a NaN in the content.

    Example:
        >>> as_json({"lower": 0.1, "upper": math.inf})
        '{"lower": 0.1, "upper": "inf"}'
    """
    text = json.dumps(_strict(content), allow_nan=False, indent=indent)
    return Finished(text.replace("\x7f", "\\u007f"))  # the only control character that json leaves


def _strict(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(key): _strict(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_strict(value) for value in content]
    if isinstance(content, float) and math.isinf(content):
        return "inf" if content > 0 else "-inf"
    if isinstance(content, Decimal):  # SQL returns decimals for literals and for sums of integers
        if content == content.to_integral_value():
            return int(content)
        return float(content) if Decimal(repr(float(content))) == content else str(content)
    return content if content is None or isinstance(content, str | int | float) else str(content)


class _Lines(io.StringIO):
    """Text whose lines end in a line feed alone."""

    def write(self, line: str, /) -> int:
        return super().write(line.removesuffix("\r\n") + "\n")


def as_csv(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return CSV with all digits; text that a spreadsheet would run as a formula gets a quote in front."""
    target = _Lines()
    writer = csv.writer(target, lineterminator="\r\n")  # so that cells with either character are quoted
    writer.writerow([_harmless(name) for name in names])
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return target.getvalue()


def _harmless(cell: object) -> object:
    if cell is None or isinstance(cell, int):
        return cell
    if isinstance(cell, float):
        return repr(cell)
    text = str(cell)
    return "'" + text if text.startswith(_FORMULA) and not isinstance(cell, Decimal) else text


def show(
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str = "",
    heading: str = "",
    below: str = "",
    continued: bool = False,
) -> None:
    """Print a table to standard output: fitted to the width of a terminal, a line for each row elsewhere.

    Columns in which every cell is a number are aligned to the right. Nothing is ever cut short, since a
    number without its last digits would be another number.

    Args:
        names: Names of the columns.
        rows: Cells.
        title: Text above the table.
        heading: Column that a narrow terminal shows above the rows with the same value.
        below: Column that a narrow terminal shows below each row.
        continued: Whether the rows follow those of the last call; only a terminal prints the names again.
    """
    # Those of a query, and cells with texts of a store, may have characters that move the cursor.
    names, cells = list(map(exactly, names)), [list(map(exactly, row)) for row in rows]
    if (width := width_of(sys.stdout)) is None:
        text = as_text(names, cells, title)
        text = text.partition("\n")[2] if continued else text
    else:
        table = fitted(names, cells, _numeric(names, cells), width, heading=heading, below=below)
        text = "\n".join([title, *table] if title else table)
    say(text, flush=True)


def as_text(names: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Return a table as aligned text without rules, numbers to the right."""
    return plain(names, rows, _numeric(names, rows), title)


def _numeric(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bool]:
    """Return, for each column, whether all of its cells are numbers."""
    return [all(_is_number(row[k]) for row in rows) and bool(rows) for k in range(len(names))]


def plain(names: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], title: str) -> str:
    """Return a table as aligned text without rules, for pipes and files."""
    lines = [list(names), *(list(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(names))]
    text = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([title, *text] if title else text)


def html_table(names: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> str:
    """Return a table in HTML for a notebook, light or dark; every cell is text, numbers stand to the right.

    Args:
        names: Names of the columns; none for a list of facts, whose first cells are their names.
        rows: Cells.
        title: Text above the table.

    Example:
        >>> "<i>" in html_table(["sigma"], [["<i>"]])
        False
    """
    texts = [list(map(exactly, row)) for row in rows]
    right = _numeric(names, texts) if names else [False] * max(map(len, texts), default=0)
    head = [("th", _HEAD, list(names))] if names else []
    lines = (
        "".join(
            f'<{tag} style="text-align:{"right" if flush else "left"};{style}">{escape(text)}</{tag}>'
            for text, flush in zip(line, right, strict=True)
        )
        for tag, style, line in [*head, *(("td", _CELL, line) for line in texts)]
    )
    above = f'<caption style="{_CAPTION}">{escape(title)}</caption>' if title else ""
    return f'<table style="{_TABLE}">{above}{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


def labelled(label: str, text: str, indent: int = _INDENT) -> str:
    """Return a label with a text next to it, broken into lines; formulas keep their own lines.

    Args:
        label: Name of the text.
        text: Paragraphs, with an empty line between them.
        indent: Width of the column of labels.
    """
    lines = []
    width = min(_WIDTH, width_of(sys.stdout) or _WIDTH)
    for paragraph in text.split("\n\n"):
        wrapped = textwrap.wrap(
            paragraph, max(width - indent, indent), break_long_words=False, break_on_hyphens=False
        )
        lines += paragraph.splitlines() if "$$" in paragraph else wrapped
    first, *rest = lines or [""]
    return "\n".join([f"{label:<{indent}}{first}", *(" " * indent + line for line in rest)]).rstrip()


def _is_number(cell: str) -> bool:
    try:
        float(cell.removesuffix("%").removeprefix("<"))
    except ValueError:
        return not cell
    return True
