"""TOML of people, parsed only if its keys are shallow."""

import re
import tomllib
from typing import Any

DEEPEST = 20
"""Most parts of a key such as `grid.product.sigma`; a parser's time and memory grow with their square."""
_MARK = re.compile(r"""[.=,\n{}\[\]#"']""")
_ENDS = {'"': re.compile(r'["\\\n]'), '"""': re.compile(r'"""|\\'), "'": re.compile(r"['\n]")}
_ENDS |= {"'''": re.compile("'''"), "#": re.compile(r"\n")}


def parsed(content: bytes) -> dict[str, Any]:
    r"""Return the content of a TOML text.

    Args:
        content: The text, UTF-8.

    Raises:
        ValueError: It is not TOML in UTF-8, has numbers of thousands of digits, or is nested too deeply.

    Example:
        >>> parsed(b"a.b = 1")
        {'a': {'b': 1}}
        >>> parsed(b"a." * 20 + b"b = 1")
        Traceback (most recent call last):
        ValueError: Expected keys of at most 20 parts, got more on line 1
    """
    text = content.decode()
    if line := _deep_line(text):
        raise ValueError(f"Expected keys of at most {DEEPEST} parts, got more on line {line}")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("Expected TOML without deep nesting") from None


def _deep_line(text: str) -> int:
    """Return the line of the first key with too many parts, from 1, or 0; the time is linear in the text.

    Dots are counted between the other marks, outside comments and texts. A number has one, so only keys
    have many. What follows a mistake does not matter, since the parser stops there.
    """
    place = dots = 0
    while mark := _MARK.search(text, place):
        found, place = mark[0], mark.end()
        if found == ".":
            dots += 1
            if dots >= DEEPEST:
                return text.count("\n", 0, place) + 1
        elif found in "#\"'":
            place = _after(text, mark.start())
        else:
            dots = 0
    return 0


def _after(text: str, start: int) -> int:
    """Return the place after the comment or text that begins at a place."""
    sign = text[start]
    quote = 3 * sign if sign != "#" and text.startswith(3 * sign, start) else sign
    place = start + len(quote)
    while end := _ENDS[quote].search(text, place):
        place = end.end()
        if end[0] == "\\":
            place += 1  # the next character is escaped
        elif end[0] == "\n":
            return end.start()
        else:
            return place + (len(quote) == 3) * _own_quotes(text, place, sign)
    return len(text)


def _own_quotes(text: str, place: int, sign: str) -> int:
    """Return the number of quotes, 0 to 2, that follow the end of a long text, whose content they end."""
    return next((n for n in (2, 1) if text.startswith(n * sign, place)), 0)
