"""The window of a terminal: its width, its colours, and whether its lines can be replaced."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TextIO

Piece = tuple[str, str]
"""A text and its style: words such as `bold` and `dim`, and a colour such as `#0072b2`, or nothing."""


class Finished(str):
    """A text that is printed as it is: control characters are escaped, and no line may be broken."""

    __slots__ = ()


def escaped(text: str, kept: str = "") -> str:
    """Return a text with every character that is not printable escaped, except these."""
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


def width_of(stream: TextIO) -> int | None:
    """Return the number of columns of a terminal, or None if the stream is a pipe or a file."""
    if not stream.isatty():
        return None
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def moves_cursor(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which lines can be replaced."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown", ""}


def fresh_line(stream: TextIO) -> None:
    """Begin a new line of a terminal, which shows `^C` at the place of its cursor."""
    if stream.isatty():
        print("\r\x1b[2K" if moves_cursor(stream) else "\n", end="", file=stream, flush=True)


def shows(stream: TextIO, text: str) -> bool:
    """Return whether the encoding of a stream has all characters of a text."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def painted(pieces: Sequence[Piece], stream: TextIO | None = None) -> Finished:
    r"""Return pieces as one text, in their styles if the stream is a terminal with colours.

    This is the only source of control characters in our output: those in the pieces are escaped.

    Args:
        pieces: Texts and their styles.
        stream: The stream; standard output by default.

    Example:
        >>> import io
        >>> painted([("poisson", "bold"), (" 0.9\x1b[2J", "")], io.StringIO())
        'poisson 0.9\\x1b[2J'
    """
    stream = stream or sys.stdout
    if not moves_cursor(stream):
        return Finished("".join(escaped(text, "\n") for text, _ in pieces))
    return Finished("".join(_rendered(escaped(text, "\n"), style) for text, style in pieces))


@cache
def _styles() -> tuple[Callable[[str], Any], Any, bool]:
    """Return the reader of styles, the kind of the terminal's colours, and whether colour is unwanted."""
    from rich.color import ColorSystem
    from rich.console import Console
    from rich.style import Style

    console = Console(force_terminal=True)
    kinds = {
        "standard": ColorSystem.STANDARD,
        "256": ColorSystem.EIGHT_BIT,
        "truecolor": ColorSystem.TRUECOLOR,
    }
    return Style.parse, kinds.get(console.color_system or ""), console.no_color


def _rendered(text: str, style: str) -> str:
    if not style:
        return text
    parse, kind, without_colour = _styles()
    read = parse(style)
    return str((read.without_color if without_colour else read).render(text, color_system=kind))
