"""A chart before it is drawn: brackets along an axis, in series, one setting seen at a time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from privcore import Bracket
from privcore.parameter import Value

MOST_MARKS = 12_000
"""Marks of a chart: a browser is quick with as many."""


MOST_NAMED = 12
"""Numbers in a legend; more become a scale of colours."""


class Form(StrEnum):
    """What is known at a place."""

    BRACKET = "proved bracket"
    LEAST = "proved lower bound"
    MOST = "proved upper bound"
    DOUBTFUL = "confidence below 1"
    """Simulated, or from data: it holds with its confidence."""
    DOUBTFUL_LEAST = "lower bound, confidence below 1"
    DOUBTFUL_MOST = "upper bound, confidence below 1"
    ESTIMATE = "estimate without proof"
    CONFLICT = "contradiction"
    """One method proved more than another one allows: one of them is wrong, and nobody knows which."""


DOUBTFUL = (Form.DOUBTFUL, Form.DOUBTFUL_LEAST, Form.DOUBTFUL_MOST)
"""What holds with a confidence below 1."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What is known at one place of a chart.

    Attributes:
        x: Place on the horizontal axis; of intervals, the line they stand in.
        series: Which curve it belongs to.
        setting: What is the same in all that is seen at a time, in words.
        bracket: Both ends, with the methods that gave them.
        value: Estimate, or None.
        largest: What no truth exceeds: an upper end there says nothing.
        more: Further fields for whoever points at it.
    """

    x: Value
    series: Value
    setting: str = ""
    bracket: Bracket
    value: float | None = None
    largest: float = math.inf
    more: Mapping[str, Value] = field(default_factory=dict)

    @property
    def has_lower(self) -> bool:
        """Whether its lower end says something."""
        return self.bracket.lower > 0.0

    @property
    def has_upper(self) -> bool:
        """Whether its upper end says something."""
        bracket = self.bracket
        return bracket.upper < self.largest or bracket.lower == bracket.upper < math.inf

    @property
    def form(self) -> Form | None:
        """What is known, or None where it is nothing."""
        if not self.has_lower and not self.has_upper:
            return None if self.value is None else Form.ESTIMATE
        if self.bracket.confidence < 1.0:
            if self.has_lower and self.has_upper:
                return Form.DOUBTFUL
            return Form.DOUBTFUL_LEAST if self.has_lower else Form.DOUBTFUL_MOST
        if self.bracket.crossed:
            return Form.CONFLICT
        if not self.has_upper:
            return Form.LEAST
        return Form.MOST if self.bracket.lower <= 0.0 < self.bracket.upper else Form.BRACKET

    @property
    def shown(self) -> float:
        """The number that is drawn: the end on the safe side, or the estimate."""
        lower, upper = self.bracket.lower, self.bracket.upper
        if self.form in (Form.ESTIMATE, Form.DOUBTFUL):
            return 0.5 * (lower + upper) if self.value is None else self.value
        return max(lower, upper) if self.has_upper else lower


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A chart before it is drawn.

    Attributes:
        name: Of its files, and of its place in the document.
        title: One line above it.
        x_name: What the horizontal axis shows; of intervals, what tells their lines apart.
        y_name: What is known.
        series_name: What tells the curves apart; nothing where there is one.
        marks: All of them.
        notes: Sentences below it.
        intervals: Whether the marks lie one below another, as when methods are compared.
    """

    name: str
    title: str
    x_name: str
    y_name: str
    series_name: str
    marks: Sequence[Mark]
    notes: Sequence[str] = ()
    intervals: bool = False

    @cached_property
    def settings(self) -> list[str]:
        """What can be chosen to be seen, in the order of the marks."""
        return list(dict.fromkeys(mark.setting for mark in self.marks))

    @cached_property
    def forms(self) -> list[Form]:
        """Which forms occur."""
        found = {mark.form for mark in self.marks}
        return [form for form in Form if form in found]

    @cached_property
    def series(self) -> list[Value]:
        """The values of the series: numbers sorted, words in the order of the marks."""
        found = list(dict.fromkeys(mark.series for mark in self.marks))
        if any(isinstance(value, str) for value in found):
            return found
        return sorted(found, key=float)

    @cached_property
    def is_scaled(self) -> bool:
        """Whether the series are so many numbers that their colours form a scale."""
        return len(self.series) > MOST_NAMED and not any(
            isinstance(s, str) or math.isinf(s) for s in self.series
        )


def shown(title: str, setting: str) -> str:
    """Return what one setting of a chart shows, in a line.

    Example:
        >>> shown("Epsilon over sigma", "delta=1e-5"), shown("Epsilon over sigma", "")
        ('Epsilon over sigma: delta=1e-5', 'Epsilon over sigma')
    """
    return f"{title}: {setting}" if setting else title


def drawable(marks: Iterable[Mark]) -> tuple[list[Mark], list[str]]:
    """Return the marks that can be drawn, whole settings of them, and what is left out in sentences."""
    known = [mark for mark in marks if mark.form is not None]
    placed = [mark for mark in known if not (isinstance(mark.x, float) and math.isinf(mark.x))]
    notes = (
        ["Infinite values of the horizontal axis are only in the table."] if len(placed) < len(known) else []
    )
    settings: dict[str, list[Mark]] = {}
    for mark in placed:
        settings.setdefault(mark.setting, []).append(mark)
    kept: list[Mark] = []
    for drawn, some in enumerate(settings.values()):
        if kept and len(kept) + len(some) > MOST_MARKS:
            notes.append(f"Only the first {drawn} of {len(settings)} settings are drawn.")
            break
        kept += some
    return kept, notes
