"""A chart before it is drawn: brackets along an axis, in series, for one setting at a time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from flows.printing import exactly
from privcore import Bracket
from privcore.parameter import Value

MOST_MARKS = 12_000
"""Most marks of a chart, which a browser still draws quickly."""


MOST_NAMED = 12
"""Most numbers in a legend; more numbers become a scale of colours."""


class Form(StrEnum):
    """The kind of bounds at one point of a chart."""

    BRACKET = "proved bracket"
    LEAST = "proved lower bound"
    MOST = "proved upper bound"
    DOUBTFUL = "confidence below 1"
    """From a simulation or from data: both ends hold with the confidence."""
    DOUBTFUL_LEAST = "lower bound, confidence below 1"
    DOUBTFUL_MOST = "upper bound, confidence below 1"
    IMPORTED = "imported and not recomputed"
    """With any confidence; also an estimate."""
    ESTIMATE = "estimate without proof"
    CONFLICT = "contradiction"
    """The lower bound of one method exceeds the upper bound of another method: one of the two is wrong."""


_DOUBTFUL = {
    (True, True): Form.DOUBTFUL,
    (True, False): Form.DOUBTFUL_LEAST,
    (False, True): Form.DOUBTFUL_MOST,
}
"""Forms by the ends that are not trivial."""

DOUBTFUL = tuple(_DOUBTFUL.values())
"""Forms of bounds with a confidence below 1."""

UNPROVED = (*DOUBTFUL, Form.IMPORTED)
"""Forms of bounds that are drawn as dashed lines, apart from proofs."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The bounds at one point of a chart.

    Attributes:
        x: Position on the horizontal axis; for intervals, the name of the row.
        series: Name or number of its curve.
        setting: The fields that are fixed in the visible chart, as text.
        bracket: Both ends, with the methods that gave them.
        value: Estimate, or None.
        largest: Largest possible truth; an upper end there is trivial.
        more: Further fields for the tooltip.
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
        """Whether the lower end is not trivial."""
        return self.bracket.lower > 0.0

    @property
    def has_upper(self) -> bool:
        """Whether the upper end is not trivial."""
        bracket = self.bracket
        return bracket.upper < self.largest or bracket.lower == bracket.upper < math.inf

    @property
    def is_estimate(self) -> bool:
        """Whether both ends are trivial, so that only an estimate can be drawn."""
        return not self.has_lower and not self.has_upper

    @property
    def form(self) -> Form | None:
        """The kind of bounds, or None if there are no bounds and no estimate."""
        if self.is_estimate and self.value is None:
            return None
        if self.bracket.crossed or self.bracket.imported:
            return Form.CONFLICT if self.bracket.crossed else Form.IMPORTED
        if self.is_estimate:
            return Form.ESTIMATE
        if self.bracket.confidence < 1.0:
            return _DOUBTFUL[self.has_lower, self.has_upper]
        if not self.has_upper:
            return Form.LEAST
        return Form.MOST if self.bracket.lower <= 0.0 < self.bracket.upper else Form.BRACKET

    @property
    def shown(self) -> float:
        """The number that is drawn: the end on the safe side, or the estimate."""
        lower, upper = self.bracket.lower, self.bracket.upper
        if self.is_estimate or (self.has_lower and self.has_upper and self.bracket.confidence < 1.0):
            return 0.5 * (lower + upper) if self.value is None else self.value
        return max(lower, upper) if self.has_upper else lower

    @property
    def has_bar(self) -> bool:
        """Whether a bar joins both ends, in a chart with a numeric axis below."""
        if self.form is Form.IMPORTED:
            return self.has_lower and self.has_upper
        return self.form in (Form.BRACKET, Form.DOUBTFUL, Form.CONFLICT)


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A chart before it is drawn.

    Attributes:
        name: Name of its files, and its id in the document.
        title: One line above the chart.
        x_name: Title of the horizontal axis; for intervals, of the rows.
        y_name: Name of the quantity that is bounded.
        series_name: Title of the legend, or "" for one curve.
        marks: All marks.
        labels: Texts of the series in the legend, if not only their value.
        notes: Sentences below the chart.
        intervals: Whether the marks are rows, one below another, as in a comparison of methods.
    """

    name: str
    title: str
    x_name: str
    y_name: str
    series_name: str
    marks: Sequence[Mark]
    labels: Mapping[Value, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    intervals: bool = False

    @cached_property
    def settings(self) -> list[str]:
        """The settings that can be selected, in the order of the marks."""
        return list(dict.fromkeys(mark.setting for mark in self.marks))

    @cached_property
    def forms(self) -> list[Form]:
        """The forms that occur."""
        found = {mark.form for mark in self.marks}
        return [form for form in Form if form in found]

    @cached_property
    def series(self) -> list[Value]:
        """The values of the series: numbers sorted, words in the order of the marks."""
        found = list(dict.fromkeys(mark.series for mark in self.marks))
        if any(isinstance(value, str) for value in found):
            return found
        return sorted(found, key=float)

    def label(self, series: Value) -> str:
        """Return the text of a series in the legend and in tooltips."""
        return self.labels.get(series) or exactly(series)

    @cached_property
    def is_scaled(self) -> bool:
        """Whether there are too many numbers for a legend, so that colours form a scale."""
        return len(self.series) > MOST_NAMED and not any(
            isinstance(s, str) or math.isinf(s) for s in self.series
        )


def shown(title: str, setting: str) -> str:
    """Return the title of one setting of a chart.

    Example:
        >>> shown("Epsilon over sigma", "delta=1e-5"), shown("Epsilon over sigma", "")
        ('Epsilon over sigma: delta=1e-5', 'Epsilon over sigma')
    """
    return f"{title}: {setting}" if setting else title


def drawable(marks: Iterable[Mark]) -> tuple[list[Mark], list[str]]:
    """Return the marks that can be drawn, in whole settings, and sentences about omissions."""
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
