"""Axes of a chart: the field of each axis, its scale, and the edges beyond which nothing is drawn."""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from flows.reports.plot import Mark, Plot
from privcore.parameter import Value

MOST_WORDS = 8
"""Most words that are distinguished by colours."""
LEAST = 1e-12
"""Fraction of the largest number below which a number is drawn at the lower edge of a logarithmic axis."""
_SPAN = 30.0
"""Least ratio of the largest to the smallest number shown for a logarithmic axis."""


@dataclass(frozen=True, kw_only=True)
class Axes:
    """The roles of the fields of problems in a chart.

    Attributes:
        x: The field of the horizontal axis.
        series: The field that distinguishes curves, or "".
        rest: Fields that are fixed at a time; the reader selects one combination.
        implied: Fields that are determined by one of the others, with the name of this field.
    """

    x: str
    series: str
    rest: tuple[str, ...]
    implied: Mapping[str, str]


def axes(fields: Sequence[Mapping[str, Value]]) -> Axes | None:
    """Return the roles of the fields, or None if no field varies; the axis gets the most varied number.

    Args:
        fields: The fields of each problem.
    """
    values = {name: {row[name] for row in fields} for name in (fields[0] if fields else {})}
    varied = sorted((name for name in values if len(values[name]) > 1), key=lambda name: -len(values[name]))
    if not varied:
        return None
    x = next((name for name in varied if _are_numbers(values[name])), varied[0])
    kept, implied = [x], dict[str, str]()
    for name in varied:
        if name != x:
            leader = next((k for k in kept if len(pairs(fields, k, name)) == len(values[k])), None)
            if leader is None:
                kept.append(name)
            else:
                implied[name] = leader
    series = next((n for n in kept[1:] if _are_numbers(values[n]) or len(values[n]) <= MOST_WORDS), "")
    rest = tuple(name for name in kept[1:] if name != series)
    return Axes(x=x, series=series, rest=rest, implied=implied)


def pairs(fields: Sequence[Mapping[str, Value]], one: str, other: str) -> set[tuple[Value, Value]]:
    """Return the pairs of values of two fields."""
    return {(row[one], row[other]) for row in fields}


def is_geometric(values: Iterable[Value]) -> bool:
    """Return whether values are positive, and spaced like powers rather than like multiples.

    Example:
        >>> is_geometric([1, 10, 100]), is_geometric([1, 2, 3]), is_geometric([0, 10, 100])
        (True, False, False)
    """
    found = sorted(_finite(values))
    if len(found) < 2 or found[0] <= 0.0 or found[-1] < 4.0 * found[0]:
        return False
    middle = (
        found[len(found) // 2]
        if len(found) % 2
        else math.sqrt(found[len(found) // 2 - 1] * found[len(found) // 2])
    )
    arithmetic, geometric = 0.5 * (found[0] + found[-1]), math.sqrt(found[0] * found[-1])
    return middle < math.sqrt(arithmetic * geometric)


def _finite(values: Iterable[Value]) -> Iterator[float]:
    return (float(value) for value in set(values) if not isinstance(value, str) and math.isfinite(value))


def _are_numbers(values: Iterable[Value]) -> bool:
    return not any(isinstance(value, str) for value in values)


class Ends:
    """The axis of the brackets; for each setting, it covers the numbers of the setting.

    Attributes:
        log: Whether the axis is logarithmic.
        edges: First and last number on the axis, by setting.
    """

    def __init__(self, plot: Plot) -> None:
        of: dict[str, list[Mark]] = {}
        for mark in plot.marks:
            of.setdefault(mark.setting, []).append(mark)
        self.log = any(_is_wide(marks) for marks in of.values()) and not any(
            mark.bracket.lower < 0 for mark in plot.marks
        )
        everything = self._edges(plot.marks, (0.1, 1.0))
        self.edges = {setting: self._edges(marks, everything) for setting, marks in of.items()}

    def _edges(self, marks: Sequence[Mark], usual: tuple[float, float]) -> tuple[float, float]:
        """Return the edges of the axis for some marks; the `usual` edges if no number is finite."""
        ends = [
            e
            for mark in marks
            for e in (mark.bracket.lower, mark.bracket.upper, mark.shown)
            if math.isfinite(e)
        ]
        if self.log:
            ends = [e for e in ends if e > 0.0]
            if not ends:
                return usual
            # If brackets begin at or near 0, the axis shows only a part of them.
            least = max(min(ends), 0.1 * min(_shown(marks), default=0.0), LEAST * max(ends))
            return 0.85 * least, min(1.15 * max(ends), sys.float_info.max)
        low, high = min(ends, default=usual[0]), max(ends, default=usual[1])
        room = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
        return (low if low == 0.0 else low - room), min(high + room, sys.float_info.max)

    def held(self, mark: Mark, end: float) -> float:
        """Return an end of a mark, moved to the nearest edge if it lies beyond the edges."""
        floor, ceiling = self.edges[mark.setting]
        return min(max(end, floor), ceiling)


def _is_wide(marks: Sequence[Mark]) -> bool:
    shown = _shown(marks)
    return bool(shown) and min(shown) < max(shown) / _SPAN


def _shown(marks: Sequence[Mark]) -> list[float]:
    """Return the shown numbers of marks that are positive and finite."""
    return [mark.shown for mark in marks if 0.0 < mark.shown < math.inf]
