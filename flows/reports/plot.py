"""A chart before it is drawn: brackets along an axis, in series, one setting seen at a time."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from privcore.parameter import Value

MOST_MARKS = 12_000
"""Marks of a chart: a browser is quick with as many."""


MOST_NAMED = 12
"""Numbers in a legend; more become a scale of colours."""


LEAST = 1e-12
"""What is less than this part of the largest number is drawn at the lower edge of a logarithmic axis."""


class Form(StrEnum):
    """What is known at a place."""

    BRACKET = "proved bracket"
    LEAST = "proved lower bound"
    MOST = "proved upper bound"
    DOUBTFUL = "confidence below 1"
    """Simulated, or from data: it holds with its confidence."""
    ESTIMATE = "estimate without proof"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What is known at one place of a chart.

    Attributes:
        x: Place on the horizontal axis; of intervals, the line they stand in.
        series: Which curve it belongs to.
        setting: What is the same in all that is seen at a time, in words.
        lower: Lower end.
        upper: Upper end.
        method: Who says so.
        value: Estimate, or None.
        confidence: Of the ends; 1 is a proof.
        largest: What no truth exceeds: an upper end there says nothing.
        more: Further fields for whoever points at it.
    """

    x: Value
    series: Value
    setting: str = ""
    lower: float
    upper: float
    method: str
    value: float | None = None
    confidence: float = 1.0
    largest: float = math.inf
    more: Mapping[str, Value] = field(default_factory=dict)

    @property
    def has_lower(self) -> bool:
        """Whether its lower end says something."""
        return self.lower > 0.0

    @property
    def has_upper(self) -> bool:
        """Whether its upper end says something."""
        return self.upper < self.largest or self.lower == self.upper < math.inf

    @property
    def form(self) -> Form | None:
        """What is known, or None where it is nothing."""
        if not self.has_lower and not self.has_upper:
            return None if self.value is None else Form.ESTIMATE
        if self.confidence < 1.0:
            return Form.DOUBTFUL
        if not self.has_upper:
            return Form.LEAST
        return Form.MOST if self.lower <= 0.0 < self.upper else Form.BRACKET

    @property
    def shown(self) -> float:
        """The number that is drawn: the end on the safe side, or the estimate."""
        if self.form is Form.ESTIMATE or (self.form is Form.DOUBTFUL and self.has_lower and self.has_upper):
            return 0.5 * (self.lower + self.upper) if self.value is None else self.value
        return self.upper if self.has_upper else self.lower


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

    @property
    def captions(self) -> list[str]:
        """What is said below it: how to read it, then its notes."""
        said = []
        if not self.intervals and Form.BRACKET in self.forms:
            said.append(
                "Bands reach from the lower to the upper end, and their lines are upper ends; they are "
                "proved at the dots, between which they guide the eye."
            )
        if Form.LEAST in self.forms or Form.MOST in self.forms:
            said.append(
                "A triangle that points up is a lower bound alone, one that points down an upper bound alone."
            )
        if Form.DOUBTFUL in self.forms:
            said.append(
                "Diamonds are no proofs: simulated or from data, they hold with a confidence below 1."
            )
        if Form.ESTIMATE in self.forms:
            said.append("Crosses are estimates that rest on an assumption, without any proof.")
        largest = max(mark.shown for mark in self.marks)
        if any(0.0 < mark.shown < LEAST * largest for mark in self.marks):
            said.append(f"What is less than {LEAST:g} of the largest number is drawn at the lower edge.")
        return [*said, *self.notes]

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


def drawable(marks: Iterable[Mark]) -> tuple[list[Mark], list[str]]:
    """Return the marks that can be drawn, whole settings of them, and what is left out in sentences."""
    known = [mark for mark in marks if mark.form is not None]
    placed = [mark for mark in known if not (isinstance(mark.x, float) and math.isinf(mark.x))]
    notes = (
        ["Infinite values of the horizontal axis are in the table alone."] if len(placed) < len(known) else []
    )
    settings: dict[str, list[Mark]] = {}
    for mark in placed:
        settings.setdefault(mark.setting, []).append(mark)
    kept: list[Mark] = []
    for drawn, some in enumerate(settings.values()):
        if kept and len(kept) + len(some) > MOST_MARKS:
            notes.append(f"Drawn are the first {drawn} of {len(settings)} settings.")
            break
        kept += some
    return kept, notes


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What the fields of problems become in a chart.

    Attributes:
        x: The field along the axis.
        series: The field that tells curves apart, or nothing.
        rest: Fields of which one combination is seen at a time.
        implied: Fields that follow from these.
    """

    x: str
    series: str
    rest: tuple[str, ...]
    implied: tuple[str, ...]


def axes(fields: Sequence[Mapping[str, Value]]) -> Axes | None:
    """Return which fields go where, the most varied number along the axis; None where nothing varies.

    Args:
        fields: Of each problem.
    """
    values = {name: {row[name] for row in fields} for name in (fields[0] if fields else {})}
    varied = sorted((name for name in values if len(values[name]) > 1), key=lambda name: -len(values[name]))
    if not varied:
        return None
    x = next((name for name in varied if _are_numbers(values[name])), varied[0])
    kept, implied = [x], list[str]()
    for name in varied:
        if name != x:
            follows = any(len({(row[k], row[name]) for row in fields}) == len(values[k]) for k in kept)
            (implied if follows else kept).append(name)
    series = kept[1] if len(kept) > 1 else ""
    return Axes(x=x, series=series, rest=tuple(kept[2:]), implied=tuple(implied))


def is_geometric(values: Iterable[Value]) -> bool:
    """Return whether values are positive and spread like powers rather than like multiples.

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
