"""The axis of what is known in a chart: where it begins and ends, and what lies beyond its edges."""

import math
import sys
from collections.abc import Sequence

from flows.reports.plot import Mark, Plot

LEAST = 1e-12
"""What is less than this part of the largest number is drawn at the lower edge of a logarithmic axis."""
_SPAN = 30.0
"""Ratio of what is shown from which on its axis is logarithmic."""


class Ends:
    """The axis of what is known: of each setting as far as its own numbers reach.

    Attributes:
        log: Whether it is logarithmic.
        edges: Where it begins and ends, by setting.
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
        """Return where the axis of some marks begins and ends; as usual where nothing finite is known."""
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
            # Of brackets that begin at or all but at 0 the axis shows a part alone.
            least = max(min(ends), 0.1 * min(_shown(marks), default=0.0), LEAST * max(ends))
            return 0.85 * least, min(1.15 * max(ends), sys.float_info.max)
        low, high = min(ends, default=usual[0]), max(ends, default=usual[1])
        room = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
        return (low if low == 0.0 else low - room), min(high + room, sys.float_info.max)

    def held(self, mark: Mark, end: float) -> float:
        """Return an end of a mark, or the edge that is next to it: a chart shows nothing beyond its edges."""
        floor, ceiling = self.edges[mark.setting]
        return min(max(end, floor), ceiling)


def _is_wide(marks: Sequence[Mark]) -> bool:
    shown = _shown(marks)
    return bool(shown) and min(shown) < max(shown) / _SPAN


def _shown(marks: Sequence[Mark]) -> list[float]:
    """Return what is shown of marks, where it has a place on a logarithmic axis."""
    return [mark.shown for mark in marks if 0.0 < mark.shown < math.inf]
