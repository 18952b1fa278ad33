"""Charts by Altair as specifications of Vega-Lite, and by vl-convert as SVG, PDF and what browsers need."""

from functools import cache
from importlib.util import find_spec
from typing import Any

from flows.reports.encodings import Ends, along, altair, color, of_setting, shape, tooltip
from flows.reports.plot import Form, Plot
from privcore import DomainError

NEEDED = "Charts need two more packages: `pip install 'privsweep[report]'`."
FIGURES = ("svg", "pdf")
_CONFIG: dict[str, Any] = {
    "font": "system-ui, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "gridColor": "#e4e4e4", "titleFontWeight": "normal"},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "labelLimit": 420,
        "layout": {"top": {"direction": "vertical", "anchor": "start"}},
    },
    "title": {"fontSize": 13, "fontWeight": "normal", "anchor": "start", "color": "#333333"},
    "view": {"stroke": None},
}


def available() -> bool:
    """Return whether charts can be made here."""
    return find_spec("altair") is not None and find_spec("vl_convert") is not None


def drawn(plot: Plot, kind: str) -> bytes:
    """Return a chart as a file; of several settings it shows the first, and says so.

    Args:
        plot: The chart.
        kind: `svg` or `pdf`.

    Raises:
        DomainError: The packages are missing.
    """
    if not available():
        raise DomainError(NEEDED)
    import vl_convert

    specification = spec(plot, width=620)
    if kind == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(specification, vl_version=_version()))
    return str(vl_convert.vegalite_to_svg(specification, vl_version=_version())).encode()


@cache
def bundle(snippet: str) -> str:
    """Return JavaScript that draws charts and then runs a snippet: all that a browser needs, once a file."""
    import vl_convert

    return str(vl_convert.javascript_bundle(snippet, vl_version=_version()))


def _version() -> str:
    return ".".join(altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def spec(plot: Plot, width: int | str = "container") -> dict[str, Any]:
    """Return a chart as a specification of Vega-Lite.

    Args:
        plot: The chart; it has marks.
        width: In pixels, or `container` for as wide as there is room.
    """
    alt, settings, ends = altair(), plot.settings, Ends(plot)
    chart = _intervals(plot, ends) if plot.intervals else _bands(plot, ends)
    if len(settings) > 1:
        choice = alt.binding_select(options=list(range(len(settings))), labels=settings, name="Shown: ")
        chosen = alt.param(name="setting", value=0, bind=choice)
        # What is seen is said in the chart too: as a file it has no menu.
        chart = chart.add_params(chosen).transform_filter("datum.g == setting")
        chart = chart.properties(title=alt.TitleParams(text=alt.expr(of_setting(settings))))
    elif settings[0]:
        chart = chart.properties(title=settings[0])
    if width == "container":
        chart = chart.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    places = {setting: k for k, setting in enumerate(settings)}
    values = [ends.datum(mark, places[mark.setting]) for mark in plot.marks]
    height = {"step": 26} if plot.intervals else 340
    sized = chart.properties(width=width, height=height, data=alt.InlineData(values=values))
    found: dict[str, Any] = sized.to_dict()
    return found | {"config": _CONFIG}


def _bands(plot: Plot, ends: Ends) -> Any:
    """Return brackets as bands, with a line through the ends on the safe side."""
    alt, base = altair(), altair().Chart()
    clicked = alt.selection_point(name="series", fields=["s"], bind="legend")
    axis = alt.Axis(format="~g", labelOverlap=True)
    y, low = (alt.Y(name, title=plot.y_name, scale=ends.scale, axis=axis) for name in ("y:Q", "a:Q"))
    shared = {"x": along(plot), "color": color(plot)}

    def faded(full: float) -> Any:
        return alt.when(clicked).then(alt.value(full)).otherwise(alt.value(0.06))

    curve = shared | {"y": y, "detail": alt.Detail("s:N"), "opacity": faded(1.0)}
    bar = shared | {"y": low, "y2": "b", "opacity": faded(0.9)}
    both = "isValid(datum.a)"
    layers = []
    if isinstance(plot.marks[0].x, str):  # nothing lies between words
        layers.append(base.transform_filter(both).mark_rule(strokeWidth=3).encode(**bar))
    else:
        proved = base.transform_filter("indexof(datum.form, 'proved') == 0")
        if Form.BRACKET in plot.forms:
            band = bar | {"detail": alt.Detail("s:N"), "opacity": faded(0.3)}
            layers.append(proved.transform_filter(both).mark_area(line=False).encode(**band))
        layers.append(proved.mark_line(strokeWidth=1.4).encode(**curve))
        if any(m.form is Form.DOUBTFUL and m.has_lower and m.has_upper for m in plot.marks):
            doubtful = base.transform_filter("datum.form == 'confidence below 1'")
            doubtful = doubtful.transform_filter(both)
            layers.append(doubtful.mark_line(strokeWidth=1.0, strokeDash=[4, 3]).encode(**curve))
            layers.append(doubtful.mark_rule(strokeDash=[2, 2]).encode(**bar))
    told = {"y": y, "opacity": faded(0.9), "tooltip": tooltip(plot), "shape": shape(plot)}
    points = base.mark_point(filled=True, size=36).encode(**shared, **told)
    return alt.layer(*layers, points.add_params(clicked))


def _intervals(plot: Plot, ends: Ends) -> Any:
    """Return brackets one below another, as when methods are compared on one problem."""
    alt, base = altair(), altair().Chart()
    axis = alt.Axis(format="~g", labelOverlap=True)
    place, low = (alt.X(name, title=plot.y_name, scale=ends.scale, axis=axis) for name in ("y:Q", "a:Q"))
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
