"""Charts: specifications of Vega-Lite by Altair; SVG, PDF and JavaScript for browsers by vl-convert."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from textwrap import wrap
from typing import Any

from flows.reports.axes import Ends
from flows.reports.captions import captions
from flows.reports.encodings import (
    ROOM,
    WIDTH,
    along,
    altair,
    color,
    data,
    of_setting,
    scale,
    shape,
    ticks,
    ticks_along,
    tooltip,
)
from flows.reports.plot import UNPROVED, Form, Plot, shown
from privcore import DomainError

NEEDED = "Charts need two more packages: `pip install 'privsweep[report]'`."
FIGURES = ("svg", "pdf")
_FIRM = [Form.BRACKET, Form.LEAST, Form.MOST, Form.CONFLICT]
_CONFIG: dict[str, Any] = {
    # Fonts of equal width on all systems, since the layout is measured where the file is made.
    "font": "Arial, Helvetica, Liberation Sans, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "gridColor": "#e4e4e4", "titleFontWeight": "normal"},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "layout": {"top": {"direction": "vertical", "anchor": "start"}},
    },
    "title": {
        "fontSize": 13,
        "fontWeight": "normal",
        "anchor": "start",
        "color": "#333333",
        "subtitleFontSize": 11,
        "subtitleColor": "#555555",
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
    height = {"step": 26} if plot.intervals else 340
    found: dict[str, Any] = chart.properties(title=title, height=height, data=named).to_dict()
    values = data(plot, ends)
    if setting is not None:
        values = [datum for datum in values if datum["g"] == settings.index(setting)]
    # Padding for fonts that are wider on the reader's system.
    return found | {
        "config": _CONFIG,
        "datasets": {"marks": values},
        "padding": 5 if setting is None else {"left": 25, "right": 25, "top": 5, "bottom": 5},
    }


def _bands(plot: Plot, ends: Ends) -> Any:
    """Return brackets as bands, with a line through the upper ends; both break off at unknown ends."""
    alt, base = altair(), altair().Chart()
    clicked = alt.selection_point(name="series", fields=["s"], bind="legend")
    axis = ticks()
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
    return alt.layer(*layers, points.add_params(clicked))


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
