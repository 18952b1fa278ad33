"""Chart of the section `growth`: measured seconds, and the seconds at the peak of the machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.benchmarks.growth import Measured
    from tests.benchmarks.growth_series import Series

CHART = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "growth.svg"

_COLORS = ("#0072B2", "#D55E00", "#009E73")
_COLUMNS = 3
_SIZE = {"width": 220, "height": 170}
_CONFIG: dict[str, Any] = {
    "font": "Arial, Helvetica, Liberation Sans, sans-serif",
    "axis": {"labelFontSize": 11, "titleFontSize": 12, "gridColor": "#e4e4e4", "titleFontWeight": "normal"},
    "legend": {
        "labelFontSize": 11,
        "labelLimit": 240,
        "orient": "top",
        "direction": "vertical",
        "title": None,
    },
    "title": {"fontSize": 13, "fontWeight": "normal", "color": "#333333", "anchor": "start"},
    "view": {"stroke": None},
    "background": "white",
}


def draw(results: "Sequence[tuple[Series, Sequence[Measured]]]") -> None:
    """Draw one small chart for each topic; solid lines are measured, dashed lines are the limit."""
    import altair as alt
    import vl_convert

    topics = dict.fromkeys(series.topic for series, _ in results)
    charts = [_small([r for r in results if r[0].topic == topic], topic) for topic in topics]
    whole = (
        alt.concat(*charts, columns=_COLUMNS)
        .resolve_scale(color="independent")
        .properties(
            title="Processor time: measured (solid), and the limit of the machine for the same work (dashed)"
        )
        .configure(**_CONFIG)
    )
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    CHART.parent.mkdir(exist_ok=True)
    CHART.write_text(vl_convert.vegalite_to_svg(whole.to_dict(), vl_version=version), encoding="utf-8")


def _small(results: "Sequence[tuple[Series, Sequence[Measured]]]", topic: str) -> Any:
    import altair as alt

    rows = [
        {"x": point.value, "seconds": seconds, "kind": kind, "of": series.name}
        for series, points in results
        for point in points
        for kind, seconds in (("measured", point.seconds), ("limit", point.limit))
        if seconds > 0.0
    ]
    names = [series.name for series, _ in results]
    numbers = alt.Axis(format="~e", tickCount=5)
    x = alt.X("x:Q", title=topic, scale=alt.Scale(type="log", nice=False), axis=numbers)
    y = alt.Y("seconds:Q", title="seconds", scale=alt.Scale(type="log", domain=[1e-9, 10.0]), axis=numbers)
    color = alt.Color("of:N", scale=alt.Scale(domain=names, range=list(_COLORS[: len(names)])))
    dash = alt.StrokeDash(
        "kind:N", scale=alt.Scale(domain=["measured", "limit"], range=[[1, 0], [4, 3]]), legend=None
    )
    lines = _chart(rows).mark_line(strokeWidth=1.8, clip=True).encode(x, y, color, dash)
    dots = (
        _chart([row for row in rows if row["kind"] == "measured"])
        .mark_point(filled=True, size=22, opacity=1.0)
        .encode(x, y, color)
    )
    return (lines + dots).properties(**_SIZE)


def _chart(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.Chart(alt.InlineData(values=rows))
