"""The text of a sweep file, for messages that name the file, the line and the key of a mistake."""

import difflib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from privcore.errors import PrivsweepError


class SweepError(PrivsweepError):
    """A sweep cannot be read; the sentence names the file, the line where it is known, and the key."""


@dataclass(frozen=True)
class Reader:
    """The file that is read, for messages that say where a mistake stands."""

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
        """Return the line on which a key stands, by a plain search; None where it is not found."""
        lines = [line.partition("#")[0] for line in self.text.splitlines()]
        heads = [i for i, line in enumerate(lines) if re.match(r"\s*\[\[\s*grid\s*\]\]", line)]
        first = heads[self.grid - 1] if 0 < self.grid <= len(heads) else 0
        last = next((i for i in heads if i > first), len(lines)) if self.grid else len(lines)
        for part in reversed(key.split(".")):
            pattern = re.compile(rf"(?:^|[\s,{{.\[\"']){re.escape(part)}[\"']?\s*(?:=|\]|\.)")
            for i in range(first, last):
                if pattern.search(lines[i]):
                    return i + 1
        return first + 1 if heads and self.grid else None

    def known(self, table: Any, names: Collection[str], key: str = "") -> Mapping[str, Any]:
        """Return the table, or refuse what is none or has a key that is not known."""
        if not isinstance(table, dict):
            self.refuse(key, f"Expected a table, got {shown(table)}.")
        for name in table:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(names))}."
                self.refuse(f"{key}.{name}".lstrip("."), f"Unknown key, {hint}")
        return table


def shown(value: Any) -> str:
    """Return a value as it may stand in a message."""
    if value is None:
        return "nothing"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        return repr(value)[:60]
    except ValueError:
        return "a monstrous number"
