"""Drawing with matplotlib, in the only module that imports it; equal data give equal bytes."""

import math
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from flows.figures.figure import Picture
from flows.figures.panels import Kind, Panel, Trace, tex

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas

FORMATS = ("png", "svg", "pdf")

_STYLE: dict[str, Any] = {
    "axes.grid": True,
    "axes.grid.which": "major",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.titlesize": "medium",
    "font.size": 10,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "savefig.dpi": 160,
    "svg.hashsalt": "privsweep",  # fixed, since otherwise every SVG gets random ids
}
_NO_DATE = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
_LEGEND_INCHES = 2.3
_LETTERS = 10
"""Letters of a title that fit into an inch."""
_DOT = 2.2
"""Area of a dot, in square points."""


def draw(picture: Picture, path: Path, kind: str) -> None:
    """Write a figure to a file.

    Args:
        picture: The figure with its panels.
        path: The file; it is replaced.
        kind: `png`, `svg` or `pdf`.
    """
    from matplotlib.style import context

    with context(_STYLE):
        canvas(picture).savefig(path, format=kind, metadata=_NO_DATE[kind])


def canvas(picture: Picture) -> "Canvas":
    """Return the drawn figure, for `draw` and for tests of its lines.

    Its axes are ordered by rows, from left to right; if each row has a legend, the axes of the legend are
    last.
    """
    from matplotlib.figure import Figure as Canvas

    below = picture.figure.legend_below
    columns = max(len(row) for row in picture.rows)
    width, height = _inches(columns, below=below)
    widths = [width] * columns + ([] if below else [_LEGEND_INCHES])
    size = (sum(widths), height * len(picture.rows) + (1.0 if below else 0.5))
    drawn = Canvas(figsize=size, layout="constrained")
    grid = drawn.subplots(
        len(picture.rows),
        len(widths),
        squeeze=False,
        sharey=picture.figure.shares_y,
        width_ratios=widths,
    )
    shown: list[str] = []
    handles: dict[str, Any] = {}
    for row, line in zip(picture.rows, grid, strict=True):
        if not below:
            handles = {}
        for panel, axes in zip(row, line, strict=False):
            _draw_panel(axes, panel, handles)
        for axes in line[len(row) :]:
            axes.set_axis_off()
        if not below and handles and list(handles) != shown:  # otherwise the legend above serves both rows
            shown = list(handles)
            scale = _legend_scale(row)
            line[-1].legend(handles.values(), shown, loc="center left", borderaxespad=0.0, markerscale=scale)
    if below:
        drawn.legend(handles.values(), list(handles), loc="outside lower center", ncols=min(columns + 1, 3))
    drawn.suptitle("\n".join([picture.title, *_wrapped(picture.origin, size[0])]))
    return drawn


def _wrapped(sentence: str, inches: float) -> list[str]:
    """Return the lines of a sentence below a title, with its dollar signs as they are."""
    return [line.replace("$", r"\$") for line in wrap(sentence, int(inches * _LETTERS))]


def _inches(columns: int, *, below: bool) -> tuple[float, float]:
    """Return width and height of a panel in inches."""
    if below:
        return (7.0, 4.8) if columns == 1 else (4.6, 3.7)
    return (5.4, 4.2) if columns <= 2 else (3.0, 2.7)


def _legend_scale(row: tuple[Panel, ...]) -> float:
    """Return the factor that enlarges the markers of a legend: dots would be too small to see."""
    return 3.0 if any(trace.kind is Kind.DOTS for panel in row for trace in panel.traces) else 1.0


def _draw_panel(axes: "Axes", panel: Panel, handles: dict[str, Any]) -> None:
    """Draw the traces of a panel and add their handles for the legend."""
    cap = _cap(panel)
    if panel.diagonal:
        axes.axline((0.0, 0.0), slope=1.0, color="#999999", linestyle=":", linewidth=1.0, zorder=2)
    # reversed, so that the first trace of the legend is on top
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
            _plain_ticks(axis)
    if math.isfinite(cap):
        _mark(axes, cap)


def _cap(panel: Panel) -> float:
    """Return the position at which infinite coordinates are drawn, or infinity if all are finite."""
    xs = [x for trace in panel.traces for x in trace.x]
    finite = [x for x in xs if math.isfinite(x)]
    return 2.0 * max(finite, default=1.0) if len(finite) < len(xs) else math.inf


def _mark(axes: "Axes", cap: float) -> None:
    """Mark the position of infinite coordinates."""
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
    """Draw one trace and return its handle for the legend."""
    x = [place if math.isfinite(place) else math.nan for place in trace.x]
    if trace.kind is Kind.DOTS:
        return axes.scatter(x, trace.y, s=_DOT, color=trace.color, linewidths=0.0, zorder=3)
    look: dict[str, Any] = {
        "color": trace.color,
        "marker": trace.marker,
        "zorder": trace.layer,
        "linewidth": trace.width,
    }
    if trace.hollow:
        look |= {"markersize": 8.0, "markerfacecolor": "none"}
    if trace.kind is Kind.BARS:
        y, (lower, upper) = np.array(trace.y), np.array(trace.band)
        return axes.errorbar(x, y, yerr=(y - lower, upper - y), linestyle="", capsize=3.0, **look)
    if trace.kind is Kind.ERRORS:
        return _draw_errors(axes, trace, x, cap, look)
    steps = trace.kind is Kind.STEPS
    band = None
    if trace.band:
        band = axes.fill_between(
            x,
            trace.band[0],
            trace.band[1],
            color=trace.color,
            alpha=0.35,
            linewidth=0.0,
            step="post" if steps else None,
            zorder=3,
        )
    (line,) = axes.plot(
        x, trace.y, linestyle=trace.style, drawstyle="steps-post" if steps else "default", **look
    )
    infinite = [y for place, y in zip(trace.x, trace.y, strict=True) if math.isinf(place)]
    if infinite:
        axes.plot([cap] * len(infinite), infinite, clip_on=False, **look | {"linestyle": ""})
    return (band, line) if band else line


def _draw_errors(axes: "Axes", trace: Trace, x: list[float], cap: float, look: dict[str, Any]) -> Any:
    """Draw a line through points with error bars, and the infinite points at the cap."""
    y, (lower, upper) = np.array(trace.y), np.array(trace.band)
    look |= {"capsize": 0.0, "elinewidth": 0.9}
    drawn = axes.errorbar(x, y, yerr=(y - lower, upper - y), linestyle=trace.style, **look)
    far = np.isinf(trace.x)
    if far.any():
        ends = (y - lower)[far], (upper - y)[far]
        look |= {"linestyle": "", "clip_on": False}
        axes.errorbar([cap] * int(far.sum()), y[far], yerr=ends, **look)
    return drawn


def _plain_ticks(axis: "Axis") -> None:
    """Label a logarithmic axis with plain numbers, as many as its range needs."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    marks = (1.0, 1.5, *range(2, 10)) if decades < 0.8 else (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    axis.set_major_locator(LogLocator(subs=marks))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"${tex(x)}$"))
    axis.set_minor_formatter(NullFormatter())
