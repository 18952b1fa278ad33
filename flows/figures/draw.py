"""Drawing with matplotlib: rows of panels with a legend beside each row, same bytes for same data."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.figures.allocation.draw import NO_DATE, STYLE, plain_ticks
from flows.figures.panels import Kind, Panel, Picture, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_INCHES = (3.0, 2.7)
_LARGE_INCHES = (5.4, 4.2)
"""Of a panel in a figure with few columns."""
_LEGEND_INCHES = 2.3
_DOT = 2.2
"""Area of a dot, in square points."""


def draw(picture: Picture, path: Path, kind: str) -> None:
    """Write a figure to a file.

    Args:
        picture: What is drawn.
        path: The file; it is replaced.
        kind: `png`, `svg` or `pdf`.
    """
    from matplotlib.style import context

    with context(STYLE):
        canvas(picture).savefig(path, format=kind, metadata=NO_DATE[kind])


def canvas(picture: Picture) -> "Canvas":
    """Return the drawn figure, for `draw` and for whoever wants to look at its lines.

    The axes of a row come from left to right, then those that hold its legend.
    """
    from matplotlib.figure import Figure as Canvas

    columns = max(len(row) for row in picture.rows)
    width, height = _LARGE_INCHES if columns <= 2 else _INCHES
    drawn = Canvas(
        figsize=(width * columns + _LEGEND_INCHES, height * len(picture.rows) + 0.5), layout="constrained"
    )
    grid = drawn.subplots(
        len(picture.rows),
        columns + 1,
        squeeze=False,
        width_ratios=[*[width] * columns, _LEGEND_INCHES],
    )
    shown: list[str] = []
    for row, line in zip(picture.rows, grid, strict=True):
        handles: dict[str, Any] = {}
        for panel, axes in zip(row, line, strict=False):
            _draw_panel(axes, panel, handles)
        for axes in line[len(row) :]:
            axes.set_axis_off()
        if handles and list(handles) != shown:  # else the legend above stands for both rows
            shown = list(handles)
            scale = _legend_scale(row)
            line[-1].legend(handles.values(), shown, loc="center left", borderaxespad=0.0, markerscale=scale)
    drawn.suptitle(picture.title)
    return drawn


def _legend_scale(row: tuple[Panel, ...]) -> float:
    """Return how much larger than in the panels the markers of the legend are: dots would not be seen."""
    return 3.0 if any(trace.kind is Kind.DOTS for panel in row for trace in panel.traces) else 1.0


def _draw_panel(axes: "Axes", panel: Panel, handles: dict[str, Any]) -> None:
    """Draw the traces of a panel and add what stands for them in the legend."""
    cap = _cap(panel)
    if panel.diagonal:
        axes.axline((0.0, 0.0), slope=1.0, color="#999999", linestyle=":", linewidth=1.0, zorder=2)
    drawn = {trace: _draw_trace(axes, trace, cap) for trace in reversed(panel.traces)}
    for trace in panel.traces:
        if trace.label:
            handles.setdefault(trace.label, drawn[trace])
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, xscale=panel.scales[0], yscale=panel.scales[1])
    if panel.x_limits is not None:
        axes.set_xlim(*panel.x_limits)
    if panel.y_limits is not None:
        axes.set_ylim(*panel.y_limits)
    axes.set_title(panel.title)
    for axis, scale in ((axes.xaxis, panel.scales[0]), (axes.yaxis, panel.scales[1])):
        if scale == "log" and panel.traces:
            plain_ticks(axis)
    if math.isfinite(cap):
        _mark(axes, cap)


def _cap(panel: Panel) -> float:
    """Return where infinite coordinates are drawn, infinity where there are none."""
    xs = [x for trace in panel.traces for x in trace.x]
    finite = [x for x in xs if math.isfinite(x)]
    return 2.0 * max(finite, default=1.0) if len(finite) < len(xs) else math.inf


def _mark(axes: "Axes", cap: float) -> None:
    """Mark the place of infinite coordinates."""
    axes.axvline(cap, color="#999999", linestyle=":", linewidth=1.0, zorder=1)
    axes.text(
        cap,
        1.01,
        r"$\infty$",
        transform=axes.get_xaxis_transform(),
        horizontalalignment="center",
        color="#555555",
    )


def _draw_trace(axes: "Axes", trace: Trace, cap: float) -> Any:
    """Draw one trace and return what stands for it in the legend."""
    x = [place if math.isfinite(place) else math.nan for place in trace.x]
    if trace.kind is Kind.DOTS:
        return axes.scatter(
            x,
            trace.y,
            s=_DOT,
            color=trace.color,
            linewidths=0.0,
            zorder=3,
            label=trace.label,
            rasterized=False,
        )
    steps = "steps-post" if trace.kind is Kind.STEPS else "default"
    if trace.band:
        axes.fill_between(
            x,
            trace.band[0],
            trace.band[1],
            color=trace.color,
            alpha=0.3,
            linewidth=0.0,
            step="post" if trace.kind is Kind.STEPS else None,
            zorder=3,
        )
    look: dict[str, Any] = {"color": trace.color, "marker": trace.marker, "zorder": 4}
    (line,) = axes.plot(x, trace.y, linestyle=trace.style, linewidth=1.4, drawstyle=steps, **look)
    infinite = [y for place, y in zip(trace.x, trace.y, strict=True) if math.isinf(place)]
    if infinite:
        axes.plot([cap] * len(infinite), infinite, linestyle="", clip_on=False, **look)
    return line
