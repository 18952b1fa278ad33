"""A chart before it is drawn: brackets along an axis, in series, with its axes and its caption."""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from flows.answers.training.palette import DARK, GROUNDS, LIGHT, NAMED
from flows.figures.panels import between
from flows.printing import exactly
from privcore import Bracket
from privcore.answer import tables_of
from privcore.parameter import Value
from storage.schema import NOT_RECOMPUTED, origin_text

MOST_MARKS = 12_000
"""Most marks of a chart, which a browser still draws quickly."""


MOST_NAMED = 12
"""Most numbers in a legend; more numbers become a scale of colours."""


_WORDS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F")
"""Colours of series that are words and no samplers, distinguishable with any colour vision."""


class Form(StrEnum):
    """The kind of bounds at one point of a chart."""

    BRACKET = "proved bracket"
    LEAST = "proved lower bound"
    MOST = "proved upper bound"
    DOUBTFUL = "confidence below 1"
    """From a simulation or from data: both ends hold with the confidence."""
    DOUBTFUL_LEAST = "lower bound, confidence below 1"
    DOUBTFUL_MOST = "upper bound, confidence below 1"
    IMPORTED = NOT_RECOMPUTED
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
        if self.bracket.crossed or self.bracket.tables:
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


def captions(plot: Plot) -> list[str]:
    """Return the sentences below a chart: instructions for reading it, then its notes.

    Args:
        plot: The chart, with at least one mark.
    """
    said = []
    if not plot.intervals and Form.BRACKET in plot.forms:
        said.append(
            "Bands reach from the lower to the upper end, and lines join the upper ends. Both ends are "
            "proved at the dots; between the dots, bands and lines only guide the eye. They break off "
            "where an end is unknown."
        )
    if Form.LEAST in plot.forms or Form.MOST in plot.forms:
        said.append(
            "A triangle pointing up is a lower bound without an upper bound; a triangle pointing down is "
            "an upper bound without a lower bound."
        )
    if set(DOUBTFUL) & set(plot.forms):
        said.append(
            "Diamonds are not proofs: they come from simulations or data, and hold with a confidence below 1."
        )
    if {Form.DOUBTFUL_LEAST, Form.DOUBTFUL_MOST} & set(plot.forms):
        said.append(
            "Arrows are not proofs either: an arrow pointing up is a lower bound, an arrow pointing down an "
            "upper bound, with a confidence below 1."
        )
    if Form.IMPORTED in plot.forms:
        tables = tables_of(*(mark.bracket for mark in plot.marks))
        said.append(
            f"A triangle pointing right is {origin_text(tables)}: an upper end, a lower end without "
            "an upper end, the middle of an interval with a confidence, or an estimate."
        )
    if Form.ESTIMATE in plot.forms:
        said.append("Crosses are estimates under an assumption, without proof.")
    if Form.CONFLICT in plot.forms:
        said.append(
            "Squares are contradictions: the lower bound of one method exceeds the upper bound of another "
            "method, so one of the two is wrong."
        )
    return [*said, *_beyond(plot), *plot.notes]


def _beyond(plot: Plot) -> list[str]:
    """Return sentences about numbers beyond the edges of the axis, which readers must not read off there."""
    ends, said = Ends(plot), []
    places = [(mark, *ends.edges[mark.setting]) for mark in plot.marks]
    if any(mark.shown < floor for mark, floor, _ in places):
        said.append(
            f"Numbers that are 0, or less than {LEAST:g} of the largest number, are drawn at the lower edge "
            "of the logarithmic axis."
        )
    bars = [place for place in places if plot.intervals or place[0].has_bar]
    if any(mark.bracket.lower < floor <= mark.shown <= ceiling for mark, floor, ceiling in bars) or any(
        mark.bracket.upper > ceiling >= mark.shown for mark, _, ceiling in bars
    ):
        said.append("Bars and bands that reach an edge of the chart continue beyond it.")
    if any(mark.shown > ceiling for mark, _, ceiling in places):
        said.append("Infinite numbers are drawn at the upper edge.")
    return said


def colors_of(plot: Plot) -> list[str]:
    """Return the colours of the series: that of a sampler, others for words, a ramp for numbers."""
    labels = [plot.label(value) for value in plot.series]
    if len(labels) == 1:
        return [NAMED.get(labels[0], _WORDS[0])]
    if any(isinstance(value, str) for value in plot.series) and len(labels) <= len(_WORDS):
        others = iter(_WORDS)
        return [NAMED.get(label) or next(others) for label in labels]
    return list(between(len(labels)))


def darker(plots: Iterable[Plot]) -> dict[str, str]:
    """Return the counterparts on a dark ground of all colours of charts."""
    found = {GROUNDS["light"][part]: GROUNDS["dark"][part] for part in ("text", "dim", "grid")}
    found |= {light: DARK[word] for word, light in LIGHT.items()}
    for plot in plots:
        found |= {color: found.get(color) or _lighter(color) for color in colors_of(plot)}
    return found


def _lighter(color: str) -> str:
    """Return a colour in the middle between it and white."""
    return "#" + "".join(f"{(int(color[k : k + 2], 16) + 255) // 2:02x}" for k in (1, 3, 5))
