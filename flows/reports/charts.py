"""Charts: marks encoded for Vega-Lite by Altair, and SVG, PDF and JavaScript for browsers by vl-convert."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from textwrap import wrap
from typing import Any

from flows.answers.show import methods_text, sure
from flows.answers.training.palette import GROUNDS
from flows.figures.draw import apart
from flows.figures.panels import RAMP
from flows.printing import exactly, rounded_down, rounded_up
from flows.reports.plot import UNPROVED, Ends, Form, Mark, Plot, captions, colors_of, is_geometric, shown
from privcore import DomainError
from privcore.parameter import Value

_LOOK = GROUNDS["light"]
MOST_LABELS = 8
"""Most curves with a name at their end; more have a legend."""
_DECADES, _TICKS = 2.5, 6
"""Decades of a logarithmic axis from which it has only powers of ten, and the number of these."""
_HEIGHT, _NAME = 340, 15
"""Pixels of a chart with curves, and of a line of their names."""
_SHAPES = {
    Form.BRACKET: "circle",
    Form.LEAST: "triangle-up",
    Form.MOST: "triangle-down",
    Form.DOUBTFUL: "diamond",
    Form.DOUBTFUL_LEAST: "M0,-1.4L1.2,0H.4V1.4H-.4V0H-1.2Z",  # an arrow
    Form.DOUBTFUL_MOST: "M0,1.4L1.2,0H.4V-1.4H-.4V0H-1.2Z",
    Form.IMPORTED: "triangle-right",
    Form.ESTIMATE: "cross",
    Form.CONFLICT: "square",
}
WIDTH = 620
"""Width in pixels of a chart in a file."""
ROOM = f"((isValid(containerSize()[0]) ? containerSize()[0] : {WIDTH + 70}) - 70)"
"""Vega expression for the approximate width in pixels next to the vertical axis, before the layout."""
TICKS = {
    "format": "~g",
    "labelExpr": "datum.label === '' ? '' : datum.value == 0 ? '0'"
    " : abs(datum.value) < 1e6 && abs(datum.value) >= 1e-3 ? format(datum.value, ',~g')"
    " : replace(format(datum.value, '.3~e'), '+', '')",
}
"""Numbers as people write them: 10,000 and 0.01, but 1e-5 and 1e6. Logarithmic axes have empty labels."""
_FLUSH = 14
"""Pixels from the end of an axis within which a label is moved inward, so that it is not cut."""
_LETTER = 8
"""Most pixels of a letter in a legend."""


def altair() -> Any:
    """Return the module Altair, untyped, since types of its generated classes would be almost empty."""
    import altair as found

    return found


def ticks(**options: Any) -> Any:
    """Return an axis of numbers."""
    return altair().Axis(labelOverlap=True, **TICKS, **options)


def ticks_along(**options: Any) -> Any:
    """Return a horizontal axis of numbers, with room for its labels on a telephone."""
    return ticks(labelFlush=_FLUSH, **options)


def of_setting(texts: Sequence[object]) -> str:
    """Return a Vega expression for the value that belongs to the visible setting."""
    return f"{json.dumps(texts)}[setting]"


def along(plot: Plot) -> Any:
    """Return the horizontal axis: words, or numbers, which are logarithmic if they are spaced like powers."""
    alt = altair()
    if isinstance(plot.marks[0].x, str):
        return alt.X("x:N", title=plot.x_name, sort=None, axis=alt.Axis(labelLimit=160, labelAngle=-35))
    log = is_geometric(mark.x for mark in plot.marks)
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False, nice=False)
    return alt.X("x:Q", title=plot.x_name, scale=scale, axis=ticks_along())


def scale(plot: Plot, ends: Ends) -> Any:
    """Return the scale of the brackets, which follows the visible setting."""
    alt = altair()
    kind = "log" if ends.log else "linear"
    lows, highs = zip(*(ends.edges[setting] for setting in plot.settings), strict=True)
    if len(lows) == 1:
        return alt.Scale(type=kind, domain=[lows[0], highs[0]], nice=False, clamp=True)
    low, high = (alt.ExprRef(of_setting(some)) for some in (lows, highs))
    no_zero = {} if ends.log else {"zero": False}
    return alt.Scale(type=kind, domainMin=low, domainMax=high, nice=False, clamp=True, **no_zero)


def data(plot: Plot, ends: Ends) -> list[dict[str, Any]]:
    """Return the data of the marks for Vega: positions as numbers, and tooltips as text, rounded outwards."""
    places = {setting: k for k, setting in enumerate(plot.settings)}
    paths = dict[tuple[Value, ...], int]()
    seen = Counter[tuple[Value, ...]]()
    found = []
    for mark in plot.marks:
        # Several marks at one place belong to separate lines, and so do simulations of different methods.
        kind = (methods_text(mark.bracket), mark.form) if mark.form in UNPROVED else ("", "")
        place = (mark.setting, mark.series, *kind, mark.x)
        path = (*kind, seen[place])
        seen[place] += 1
        datum = _datum(plot, ends, mark) | {"g": places[mark.setting]}
        found.append(datum | ({"p": number} if (number := paths.setdefault(path, len(paths))) else {}))
    return found


def _datum(plot: Plot, ends: Ends, mark: Mark) -> dict[str, Any]:
    """Return the data of a mark for Vega; `a` to `b` is its bar, `e` its position in a line."""
    form = mark.form
    assert form is not None, "drawable() keeps only marks with a form"
    found: dict[str, Any] = {
        "x": mark.x,
        "s": mark.series if plot.is_scaled else plot.label(mark.series),
        "y": ends.held(mark, mark.shown),
        "xt": exactly(mark.x),
        "st": exactly(mark.series),
        "lo": rounded_down(mark.bracket.lower),
        "up": rounded_up(mark.bracket.upper),
        "by": methods_text(mark.bracket),
        "form": form.value,
    }
    if form is Form.CONFLICT:
        found["b"] = ends.held(mark, mark.bracket.upper)
    elif mark.has_bar or (plot.intervals and not mark.is_estimate):
        # A bound on one side is drawn to the edge on the other side.
        found |= {"a": ends.held(mark, mark.bracket.lower), "b": ends.held(mark, mark.bracket.upper)}
    if form in (Form.BRACKET, Form.MOST, *UNPROVED) and not mark.is_estimate:
        found["e"] = found["y"]
    found |= {f"m{k}": exactly(value) for k, value in enumerate(mark.more.values())}
    if mark.value is not None:
        found["v"] = f"{mark.value:.6g}"
    if mark.bracket.confidence < 1.0:
        found["c"] = sure(mark.bracket.confidence)
    if mark.bracket.tables:
        found["im"] = " and ".join(mark.bracket.tables)
    return found


def color(plot: Plot) -> Any:
    """Return the colours of the series: distinct for words, a ramp for few numbers, a scale for many."""
    alt = altair()
    if len(plot.series) == 1:
        return alt.value(*colors_of(plot))
    title = plot.series_name or None
    labels = [plot.label(value) for value in plot.series]
    if plot.is_scaled:
        kind = "log" if is_geometric(plot.series) else "linear"
        colors = alt.Scale(type=kind, range=list(RAMP), interpolate="rgb")
        return alt.Color("s:Q", title=title, scale=colors, legend=_legend(labels, **TICKS))
    own = all(mark.x == mark.series for mark in plot.marks)
    symbol = "square" if plot.intervals else "stroke"
    legend = _legend(labels, symbolType=symbol, symbolStrokeWidth=3, symbolOpacity=1)
    scale = alt.Scale(domain=labels, range=colors_of(plot))
    return alt.Color("s:N", title=title, scale=scale, legend=None if _is_named(plot) or own else legend)


def _is_named(plot: Plot) -> bool:
    """Return whether each curve has its name at its end, in place of a legend."""
    words = plot.intervals or isinstance(plot.marks[0].x, str) or plot.is_scaled
    return not words and 1 < len(plot.series) <= MOST_LABELS


def shape(plot: Plot) -> Any:
    """Return the shapes of the forms, with a legend unless all marks are proved brackets."""
    alt = altair()
    names = [form.value for form in plot.forms]
    shapes = alt.Scale(domain=names, range=[_SHAPES[form] for form in plot.forms])
    legend = _legend(names, symbolFillColor=_LOOK["dim"], symbolOpacity=1)
    return alt.Shape(
        "form:N", title=None, scale=shapes, legend=None if plot.forms == [Form.BRACKET] else legend
    )


def _legend(labels: Sequence[str], **look: Any) -> Any:
    """Return a legend above the chart, with the number of columns that fits, since telephones are narrow."""
    alt = altair()
    column = 30 + _LETTER * max(map(len, labels))
    columns = alt.ExprRef(f"max(1, min(8, floor({ROOM} / {column})))")
    return alt.Legend(
        orient="top", columns=columns, columnPadding=16, labelLimit=alt.ExprRef(f"{ROOM} - 30"), **look
    )


def tooltip(plot: Plot) -> list[Any]:
    """Return the tooltip of a mark."""
    lines = [("xt", plot.x_name), ("st", plot.series_name)]
    lines += [(f"m{k}", name) for k, name in enumerate(plot.marks[0].more)]
    lines += [("lo", f"{plot.y_name}, lower"), ("up", f"{plot.y_name}, upper")]
    lines += [("v", "estimate")] if any(mark.value is not None for mark in plot.marks) else []
    lines += [("c", "confidence")] if any(mark.bracket.confidence < 1.0 for mark in plot.marks) else []
    lines += [("by", "method"), ("form", "kind")]
    lines += [("im", "lookup table")] if any(mark.bracket.tables for mark in plot.marks) else []
    return [altair().Tooltip(f"{name}:N", title=title) for name, title in lines if title]


NEEDED = "Charts need two more packages: `pip install 'privsweep[report]'`."
FIGURES = ("svg", "pdf")
_FIRM = [Form.BRACKET, Form.LEAST, Form.MOST, Form.CONFLICT]
_CONFIG: dict[str, Any] = {
    # Fonts of equal width on all systems, since the layout is measured where the file is made.
    "font": "Arial, Helvetica, Liberation Sans, sans-serif",
    "axis": {
        "labelFontSize": 12,
        "labelColor": _LOOK["dim"],
        "titleFontSize": 13,
        "titleColor": _LOOK["dim"],
        "titleFontWeight": "normal",
        "gridColor": _LOOK["grid"],
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
    },
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "labelColor": _LOOK["text"],
        "titleColor": _LOOK["dim"],
        "layout": {"top": {"direction": "vertical", "anchor": "start"}},
    },
    "title": {
        "fontSize": 13,
        "fontWeight": "normal",
        "anchor": "start",
        "color": _LOOK["dim"],
        "subtitleFontSize": 11,
        "subtitleColor": _LOOK["dim"],
    },
    "view": {"stroke": None},
    # A screen reader gets the description of a chart only; its thousands of points are in the tables.
    "mark": {"aria": False, "invalid": "break-paths-show-domains"},
}


def available() -> bool:
    """Return whether the packages for charts are installed."""
    return find_spec("altair") is not None and find_spec("vl_convert") is not None


def drawn(plot: Plot, kind: str, setting: str, source: str = "") -> bytes:
    """Return a chart as a self-contained file with its title and captions.

    Args:
        plot: The chart.
        kind: `svg` or `pdf`.
        setting: The setting to show.
        source: One line about the origin of the numbers.

    Raises:
        DomainError: The packages are missing.
    """
    if not available():
        raise DomainError(NEEDED)
    specification = _spec(plot, setting, source)
    if kind == "svg":
        return svg(specification)
    import vl_convert

    return bytes(vl_convert.vegalite_to_pdf(specification, vl_version=_version()))


def svg(specification: dict[str, Any]) -> bytes:
    """Return a chart as SVG.

    Args:
        specification: The chart in Vega-Lite.
    """
    import vl_convert

    return str(vl_convert.vegalite_to_svg(specification, vl_version=_version())).encode()


@cache
def bundle(snippet: str) -> str:
    """Return the JavaScript of a report: the libraries that draw charts, and a snippet that uses them."""
    import vl_convert

    return str(vl_convert.javascript_bundle(snippet, vl_version=_version()))


def _version() -> str:
    return ".".join(altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def spec(plot: Plot) -> dict[str, Any]:
    """Return a chart for a browser as a specification of Vega-Lite, of variable width and with a menu.

    Args:
        plot: The chart, with at least one mark.
    """
    return _spec(plot, None)


def _spec(plot: Plot, setting: str | None, source: str = "") -> dict[str, Any]:
    """Return the specification of a chart: for a file if `setting` is given, else for a browser."""
    alt, settings, ends = altair(), plot.settings, Ends(plot)
    chart = _intervals(plot, ends) if plot.intervals else _bands(plot, ends)
    if len(settings) > 1:
        first = 0 if setting is None else settings.index(setting)
        choice = alt.binding_select(options=list(range(len(settings))), labels=settings, name="Shown: ")
        menu = alt.param(name="setting", value=first, bind=choice if setting is None else alt.Undefined)
        chart = chart.add_params(menu).transform_filter("datum.g == setting")
    if setting is None:
        # The title names the setting, since a browser can save the chart as a file without the menu.
        said = alt.expr(of_setting(settings)) if len(settings) > 1 else settings[0]
        title = alt.TitleParams(text=said, limit=alt.ExprRef(ROOM))
        chart = chart.properties(
            width="container",
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
            description=" ".join(
                [f"{plot.title}.", *captions(plot), "The numbers are in a table of this report."]
            ),
        )
    else:
        head = wrap(shown(plot.title, setting), 90)
        title = alt.TitleParams(text=head, subtitle=[*wrap(" ".join(captions(plot)), 110), source])
        chart = chart.properties(width=WIDTH)
    # Named data: Altair would otherwise inspect every number, for most of the time of a report.
    named = alt.NamedData(name="marks")
    height = {"step": 26} if plot.intervals else _HEIGHT
    found: dict[str, Any] = chart.properties(title=title, height=height, data=named).to_dict()
    values = data(plot, ends)
    if setting is not None:
        values = [datum for datum in values if datum["g"] == settings.index(setting)]
    found["datasets"] = {"marks": values}
    if _is_named(plot):
        names = [datum for datum in _names(plot, ends) if setting is None or settings[datum["g"]] == setting]
        found["datasets"]["names"] = names
    # Padding for fonts that are wider on the reader's system.
    padding = 5 if setting is None else {"left": 25, "right": 25, "top": 5, "bottom": 5}
    return found | {
        "config": _CONFIG,
        "padding": padding,
        "background": None if setting is None else "#ffffff",
    }


def _few(plot: Plot, ends: Ends) -> dict[str, Any]:
    """Return the few numbers of a logarithmic axis, in each setting."""
    if not ends.log:
        return {"tickCount": 5}
    found = []
    for setting in plot.settings:
        low, high = (math.log10(end) for end in ends.edges[setting])
        digits = (1, 2, 5) if high - low < _DECADES else (1,)
        step = max(1, round((high - low) / _TICKS))
        powers = range(step * math.floor(low / step), math.ceil(high) + 1, step)
        numbers = (float(f"{digit}e{power}") for power in powers for digit in digits)
        found.append([each for each in numbers if low <= math.log10(each) <= high])
    return {"values": found[0] if len(found) == 1 else altair().ExprRef(of_setting(found))}


def _names(plot: Plot, ends: Ends) -> list[dict[str, Any]]:
    """Return the names of the curves in each setting, with the heights of their last marks, kept apart."""
    found = []
    for number, setting in enumerate(plot.settings):
        floor, ceiling = ends.edges[setting]
        last: dict[Value, Mark] = {}
        for mark in plot.marks:
            if mark.setting == setting and (mark.series not in last or mark.x >= last[mark.series].x):  # type: ignore[operator]
                last[mark.series] = mark
        heights = {
            each: _share(ends.held(mark, mark.shown), floor, ceiling, ends.log) for each, mark in last.items()
        }
        ordered = sorted(heights, key=lambda each: heights[each])
        places = apart([heights[each] for each in ordered], [_NAME / _HEIGHT] * len(ordered))
        for each, place in zip(ordered, places, strict=True):
            label = plot.label(each)
            text = label if isinstance(each, str) else f"{plot.series_name.split(',')[0]}={label}"
            found.append({"g": number, "s": label, "n": text, "h": _held(place, floor, ceiling, ends.log)})
    return found


def _held(place: float, floor: float, ceiling: float, log: bool) -> float:
    """Return the number at a height in [0, 1]."""
    return floor * (ceiling / floor) ** place if log else floor + place * (ceiling - floor)


def _share(number: float, floor: float, ceiling: float, log: bool) -> float:
    """Return the height of a number between the ends of an axis, in [0, 1]."""
    if log:
        number, floor, ceiling = math.log(number), math.log(floor), math.log(ceiling)
    return (number - floor) / (ceiling - floor)


def _bands(plot: Plot, ends: Ends) -> Any:
    """Return brackets as bands, with a line through the upper ends; both break off at unknown ends."""
    alt, base = altair(), altair().Chart()
    named = _is_named(plot)
    bound = {} if named else {"bind": "legend"}
    clicked = alt.selection_point(name="series", fields=["s"], **bound)
    axis = ticks(**_few(plot, ends))
    of_ends = scale(plot, ends)
    y, low, high = (
        alt.Y(f"{name}:Q", title=plot.y_name, scale=of_ends, axis=axis) for name in ("y", "a", "e")
    )
    shared = {"x": along(plot), "color": color(plot), "detail": [alt.Detail("s:N"), alt.Detail("p:N")]}

    def faded(full: float) -> Any:
        return alt.when(clicked).then(alt.value(full)).otherwise(alt.value(0.06))

    curve = shared | {"opacity": faded(1.0)}
    bar = shared | {"y": low, "y2": "b"}
    words = isinstance(plot.marks[0].x, str)  # nothing lies between words
    # Some marks of a curve lack fields, so that the curve breaks off there.
    firm = base.transform_filter(_one_of(_FIRM))
    barred = base.transform_filter("isValid(datum.a)")
    layers = []
    if Form.BRACKET in plot.forms:
        if not words:
            layers.append(firm.mark_area(line=False).encode(**bar, opacity=faded(0.3)))
        # A rule shows each bracket from end to end, also if its neighbours are unknown.
        bracket = barred.transform_filter(_one_of([Form.BRACKET]))
        layers.append(bracket.mark_rule(strokeWidth=3 if words else 1).encode(**bar, opacity=faded(0.5)))
    if not words and {Form.BRACKET, Form.MOST} & set(plot.forms):
        layers.append(firm.mark_line(strokeWidth=1.4).encode(**curve, y=high))
    if Form.CONFLICT in plot.forms:
        conflict = base.transform_filter(_one_of([Form.CONFLICT]))
        wrong = shared | {"y": y, "y2": "b", "opacity": faded(0.9)}
        layers.append(conflict.mark_rule(strokeWidth=3, strokeDash=[2, 2]).encode(**wrong))
    if set(UNPROVED) & set(plot.forms):
        doubtful = base.transform_filter(_one_of(UNPROVED))
        if not words:
            layers.append(doubtful.mark_line(strokeWidth=1.0, strokeDash=[4, 3]).encode(**curve, y=high))
        both = barred.transform_filter(_one_of([Form.DOUBTFUL, Form.IMPORTED]))
        layers.append(both.mark_rule(strokeDash=[2, 2]).encode(**bar, opacity=faded(0.9)))
    if Form.LEAST in plot.forms and not words:
        least = base.transform_filter(_one_of([Form.LEAST]))
        layers.append(least.mark_line(strokeWidth=1.0, strokeDash=[1, 4]).encode(**curve, y=y))
    told = {"y": y, "opacity": faded(0.9), "tooltip": tooltip(plot), "shape": shape(plot)}
    points = base.mark_point(filled=True, size=36).encode(**shared, **told)
    if not named:
        return alt.layer(*layers, points.add_params(clicked))
    names = alt.Chart(alt.NamedData(name="names")).mark_text(
        align="left", dx=10, fontSize=12, cursor="pointer"
    )
    if len(plot.settings) > 1:
        names = names.transform_filter("datum.g == setting")
    place = {"x": alt.value("width"), "y": alt.Y("h:Q", title=plot.y_name, scale=of_ends, axis=axis)}
    names = names.encode(**place, text="n:N", color=color(plot), opacity=faded(1.0))
    return alt.layer(*layers, points, names.add_params(clicked))


def _one_of(forms: Sequence[Form]) -> str:
    """Return a Vega expression that selects the marks of some forms."""
    return f"indexof({json.dumps(forms)}, datum.form) >= 0"


def _intervals(plot: Plot, ends: Ends) -> Any:
    """Return brackets as horizontal bars, one below another, for methods on one problem."""
    alt, base = altair(), altair().Chart()
    axis = ticks_along() if ends.log else ticks_along(tickCount=alt.ExprRef("ceil(width / 60)"))
    of_ends = scale(plot, ends)
    place, low = (alt.X(name, title=plot.y_name, scale=of_ends, axis=axis) for name in ("y:Q", "a:Q"))
    shared = {
        "y": alt.Y("x:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)),
        "color": color(plot),
        "tooltip": tooltip(plot),
    }
    bars = base.transform_filter("isValid(datum.a)").mark_bar(height=9, opacity=0.35)
    points = base.mark_point(filled=True, size=60, opacity=1.0)
    return alt.layer(
        bars.encode(x=low, x2="b", **shared), points.encode(x=place, shape=shape(plot), **shared)
    )
