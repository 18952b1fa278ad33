"""The text of a sweep file, for messages that name the file, the line and the key of a mistake."""

import difflib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from privcore.errors import PrivsweepError


class SweepError(PrivsweepError):
    """A sweep cannot be read; the sentence names the file, the line if it is known, and the key."""


@dataclass(frozen=True)
class Reader:
    """The sweep file, for messages with the place of an error."""

    source: str
    text: str
    grid: int = 0

    def refuse(self, key: str, why: str) -> NoReturn:
        """Raise the error about a key."""
        line = self.line(key)
        place = [
            self.source,
            *([f"line {line}"] if line else []),
            *([f"grid {self.grid}"] if self.grid else []),
        ]
        raise SweepError(f"{', '.join(place)}: {key}: {why}")

    def line(self, key: str) -> int | None:
        """Return the line of a key such as `zip.sigma`, by a search in the text, or None."""
        lines, heads = _lines(self.text)
        here, last = 0, len(lines)
        found = None
        if 0 < self.grid <= len(heads):
            found = here = heads[self.grid - 1]
            last = heads[self.grid] if self.grid < len(heads) else last
        for part in key.split("."):
            match = _first(self.text, part, here, last)
            if match is not None:
                found = here = match
        return found + 1 if found is not None else None

    def known(self, table: Any, names: Collection[str], key: str = "") -> Mapping[str, Any]:
        """Return the table; reject a value that is not a table or has an unknown key."""
        if not isinstance(table, dict):
            self.refuse(key, f"Expected a table, got {shown(table)}.")
        for name in table:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                hint = f"did you mean {close[0]}?" if close else f"known keys are {', '.join(sorted(names))}."
                self.refuse(f"{key}.{name}".lstrip("."), f"Unknown key, {hint}")
        return table


@lru_cache(maxsize=1)
def _lines(text: str) -> tuple[list[str], list[int]]:
    """Return the lines of a file without comments, and the numbers of those that begin a grid."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    return lines, [i for i, line in enumerate(lines) if re.match(r"\s*\[\[\s*grid\s*\]\]", line)]


@lru_cache(maxsize=100)  # the same for all grids whose beginnings are not found
def _first(text: str, part: str, here: int, last: int) -> int | None:
    """Return the number of the first of some lines that has a key, or None."""
    pattern = re.compile(rf"(?:^|[\s,{{.\[\"']){re.escape(part)}[\"']?\s*(?:=|\]|\.)")
    lines = _lines(text)[0]
    return next((i for i in range(here, last) if pattern.search(lines[i])), None)


def shown(value: Any) -> str:
    """Return a value as text for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        return repr(value)[:60]
    except ValueError:
        return "a number with too many digits"
