"""How the marks of a chart become places, colours, shapes and words of Vega-Lite, by Altair."""

import json
import math
from collections.abc import Sequence
from typing import Any

from flows.answers import sure
from flows.drawing.colors import RAMP
from flows.printing import exactly, rounded_down, rounded_up
from flows.reports.plot import LEAST, Form, Mark, Plot, is_geometric

_WORDS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F")
"""Colours of series that are words, told apart by those who see few colours."""
_SHAPES = {
    Form.BRACKET: "circle",
    Form.LEAST: "triangle-up",
    Form.MOST: "triangle-down",
    Form.DOUBTFUL: "diamond",
    Form.ESTIMATE: "cross",
}
_SPAN = 30.0
"""Ratio of what is shown from which on its axis is logarithmic."""


def altair() -> Any:
    """Return Altair, whose objects are built from JSON schemas: types of theirs would be all but empty."""
    import altair as found

    return found


def of_setting(texts: Sequence[object]) -> str:
    """Return an expression of Vega for the one of several values that belongs to what is seen."""
    return f"{json.dumps(texts)}[setting]"


def along(plot: Plot) -> Any:
    """Return the horizontal axis of brackets: words, or numbers, which rise like powers where they do."""
    alt = altair()
    if isinstance(plot.marks[0].x, str):
        return alt.X("x:N", title=plot.x_name, sort=None, axis=alt.Axis(labelLimit=160, labelAngle=-35))
    log = is_geometric(mark.x for mark in plot.marks)
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False, nice=False)
    return alt.X("x:Q", title=plot.x_name, scale=scale, axis=alt.Axis(format="~g", labelOverlap=True))


class Ends:
    """The axis of what is known: of each setting as far as its own numbers reach.

    Attributes:
        log: Whether it is logarithmic.
        edges: Where it begins and ends, by setting.
    """

    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        of: dict[str, list[Mark]] = {}
        for mark in plot.marks:
            of.setdefault(mark.setting, []).append(mark)
        self.log = any(_is_wide(marks) for marks in of.values()) and not any(
            mark.lower < 0 for mark in plot.marks
        )
        everything = self._edges(plot.marks, (0.1, 1.0))
        self.edges = {setting: self._edges(marks, everything) for setting, marks in of.items()}

    def _edges(self, marks: Sequence[Mark], usual: tuple[float, float]) -> tuple[float, float]:
        """Return where the axis of some marks begins and ends."""
        ends = [e for mark in marks for e in (mark.lower, mark.upper, mark.shown) if math.isfinite(e)]
        if self.log:
            shown = [mark.shown for mark in marks if mark.shown > 0.0]
            if not shown:
                return usual
            # Of brackets that begin at or all but at 0 the axis shows a part alone.
            least = max(min(e for e in ends if e > 0.0), 0.1 * min(shown), LEAST * max(ends))
            return 0.85 * least, 1.15 * max(ends)
        low, high = min(ends, default=usual[0]), max(ends, default=usual[1])
        room = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
        return (low if low == 0.0 else low - room), high + room

    @property
    def scale(self) -> Any:
        """The scale in Altair."""
        alt = altair()
        kind = "log" if self.log else "linear"
        lows, highs = zip(*(self.edges[setting] for setting in self.plot.settings), strict=True)
        if len(lows) == 1:
            return alt.Scale(type=kind, domain=[lows[0], highs[0]], nice=False, clamp=True)
        low, high = (alt.ExprRef(of_setting(some)) for some in (lows, highs))
        no_zero = {} if self.log else {"zero": False}
        return alt.Scale(type=kind, domainMin=low, domainMax=high, nice=False, clamp=True, **no_zero)

    def datum(self, mark: Mark, setting: int) -> dict[str, Any]:
        """Return a mark as Vega reads it: places as numbers, what is told as text, rounded outwards."""
        floor, ceiling = self.edges[mark.setting]
        form = mark.form
        assert form is not None, "drawable() keeps what has a form"
        found: dict[str, Any] = {
            "x": mark.x,
            "s": mark.series if self.plot.is_scaled else exactly(mark.series),
            "g": setting,
            "y": min(max(mark.shown, floor), ceiling),
            "xt": exactly(mark.x),
            "st": exactly(mark.series),
            "lo": rounded_down(mark.lower),
            "up": rounded_up(mark.upper),
            "by": mark.method,
            "form": form.value,
        }
        # Of intervals, what is known from one side alone reaches to the edge on the other one.
        sides = mark.has_lower and mark.has_upper
        if sides or form is Form.BRACKET or (self.plot.intervals and form is not Form.ESTIMATE):
            found |= {"a": max(mark.lower, floor), "b": min(mark.upper, ceiling)}
        found |= {f"m{k}": exactly(value) for k, value in enumerate(mark.more.values())}
        if mark.value is not None:
            found["v"] = f"{mark.value:.6g}"
        if mark.confidence < 1.0:
            found["c"] = sure(mark.confidence)
        return found


def _is_wide(marks: Sequence[Mark]) -> bool:
    shown = [mark.shown for mark in marks if mark.shown > 0.0]
    return bool(shown) and min(shown) * _SPAN < max(shown)


def color(plot: Plot) -> Any:
    """Return the colours of the series: words apart, few numbers in a legend, many as a scale."""
    alt = altair()
    if len(plot.series) == 1:
        return alt.value(_WORDS[0])
    title = plot.series_name or None
    if plot.is_scaled:
        kind = "log" if is_geometric(plot.series) else "linear"
        scale = alt.Scale(type=kind, range=list(RAMP), interpolate="rgb")
        return alt.Color("s:Q", title=title, scale=scale, legend=alt.Legend(format="~g", orient="top"))
    labels = [exactly(value) for value in plot.series]
    if any(isinstance(value, str) for value in plot.series):
        colors = [_WORDS[k % len(_WORDS)] for k in range(len(labels))]
    else:
        colors = [RAMP[k * (len(RAMP) - 1) // (len(labels) - 1)] for k in range(len(labels))]
    symbol = "square" if plot.intervals else "stroke"
    longest = max(map(len, labels))
    columns = 1 if longest > 16 else 2 if longest > 8 else 5  # telephones are narrow
    legend = alt.Legend(
        orient="top", columns=columns, symbolType=symbol, symbolStrokeWidth=3, symbolOpacity=1
    )
    return alt.Color("s:N", title=title, scale=alt.Scale(domain=labels, range=colors), legend=legend)


def shape(plot: Plot) -> Any:
    """Return what tells proofs from what is simulated; it has a legend where both occur."""
    alt = altair()
    scale = alt.Scale(
        domain=[form.value for form in plot.forms], range=[_SHAPES[form] for form in plot.forms]
    )
    legend = alt.Legend(orient="top", columns=2, symbolFillColor="#555555", symbolOpacity=1)
    return alt.Shape(
        "form:N", title=None, scale=scale, legend=None if plot.forms == [Form.BRACKET] else legend
    )


def tooltip(plot: Plot) -> list[Any]:
    """Return what is told of a mark to whoever points at it."""
    lines = [("xt", plot.x_name), ("st", plot.series_name)]
    lines += [(f"m{k}", name) for k, name in enumerate(plot.marks[0].more)]
    lines += [("lo", f"{plot.y_name}, lower"), ("up", f"{plot.y_name}, upper")]
    lines += [("v", "estimate")] if any(mark.value is not None for mark in plot.marks) else []
    lines += [("c", "confidence")] if Form.DOUBTFUL in plot.forms else []
    lines += [("by", "method"), ("form", "kind")]
    return [altair().Tooltip(f"{name}:N", title=title) for name, title in lines if title]
