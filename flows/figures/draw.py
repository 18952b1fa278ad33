"""Drawing with matplotlib, in the only module that imports it; equal data give equal bytes."""

import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from flows.answers.training.palette import GROUNDS
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
_NO_DATE = {"png": {}, "svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
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


WIDTHS = {"column": 3.35, "text": 6.9}
"""Inches of a column and of the text of a journal."""
_HIGHEST = 2.8
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
_SKETCH: dict[str, Any] = {
    "axes.grid": True,
    "axes.spines.bottom": False,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 8.0,
    "grid.linewidth": 0.5,
    "pdf.fonttype": 42,  # texts stay texts
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "svg.hashsalt": "privsweep",
    "xtick.major.size": 0.0,
    "xtick.minor.size": 0.0,
    "ytick.major.size": 0.0,
    "ytick.minor.size": 0.0,
}
_LETTER = 0.56
"""Average width of a letter, in sizes of its font."""
_LINE = 1.25
"""Height of a line, in sizes of its font."""


def sketch(panel: Panel, title: str, width: str = "column", ground: str = "light") -> "Canvas":
    """Return a panel without a box and without a legend: every band has its name next to it.

    Args:
        panel: Lines with bands, whose ends are proved at the marks.
        title: Sentence above the panel.
        width: A word of `WIDTHS`.
        ground: `light` or `dark`.
    """
    from matplotlib.figure import Figure as Canvas
    from matplotlib.style import context

    look, inches = GROUNDS[ground], WIDTHS[width]
    with context(_SKETCH):
        size = float(_SKETCH["font.size"]) / 72.0
        head = wrap(title, int(inches / (0.88 * _LETTER * size)))
        names = [line for trace in panel.traces for line in trace.label.split("\n")]
        left, right = 0.55, 0.1 if _inside(panel) else max(map(len, names)) * _LETTER * size + 0.12
        bottom, top = 0.42, (len(head) * 0.88 + 1.3) * _LINE * size
        room = inches - left - right
        height = max(min((0.85 if panel.diagonal else 1.05) * room, _HIGHEST), len(names) * _LINE * size)
        whole = height + bottom + top
        drawn = Canvas(figsize=(inches, whole), facecolor=look["ground"])
        axes = drawn.add_axes(
            (left / inches, bottom / whole, room / inches, height / whole), facecolor=look["ground"]
        )
        axes.grid(color=look["grid"])
        axes.tick_params(colors=look["dim"], which="both")
        axes.set(xscale=panel.scales[0], yscale=panel.scales[1])
        if panel.diagonal:
            axes.axline((1.0, 1.0), (0.1, 0.1), color=look["dim"], linestyle=":", linewidth=0.8)
        for trace in panel.traces:
            _band(axes, trace, sideways=panel.sideways)
        axes.set(xlim=panel.x_limits or axes.get_xlim(), ylim=panel.y_limits or axes.get_ylim())
        for axis, scale in ((axes.xaxis, panel.scales[0]), (axes.yaxis, panel.scales[1])):
            if scale == "log":
                _plain_ticks(axis, _FEW)
        drawn.text(
            0.06 / inches,
            1.0 - 0.5 * size / whole,
            "\n".join(head),
            va="top",
            color=look["dim"],
            fontsize="small",
        )
        drawn.text(0.06 / inches, (bottom + height + 0.45 * size) / whole, panel.y_label, color=look["dim"])
        axes.set_xlabel(panel.x_label, color=look["dim"], labelpad=2.0)
        _name(axes, panel, height / size)
    return drawn


def _band(axes: "Axes", trace: Trace, *, sideways: bool) -> None:
    """Draw the lines of both ends, with marks where they are proved, and the area between them."""
    x, lower, upper = (np.array(each, dtype=float) for each in (trace.x, *(trace.band or (trace.y,) * 2)))
    lower[lower <= 0.0] = np.nan  # a logarithmic axis does not have 0
    upper[~np.isfinite(upper)] = np.nan
    marker = "" if not trace.band or len(x) > _MARKED else "."
    look: dict[str, Any] = {
        "color": trace.color,
        "linestyle": trace.style,
        "markersize": 4.0,
        "marker": marker,
    }
    fill = axes.fill_betweenx if sideways else axes.fill_between
    if trace.band:
        fill(x, lower, upper, color=trace.color, alpha=0.25, linewidth=0.0)
    for end in (lower, upper) if trace.band else (upper,):
        axes.plot(*((end, x) if sideways else (x, end)), linewidth=1.2, **look)


_MARKED = 20
"""Most marks of a line."""


def _name(axes: "Axes", panel: Panel, lines: float) -> None:
    """Write the names of the bands: inside below a trade-off curve, else next to the axes without overlaps.

    Args:
        axes: The axes.
        panel: The panel.
        lines: Height of the axes, in sizes of the font.
    """
    look: dict[str, Any] = {"linespacing": 1.0, "textcoords": "offset points", "annotation_clip": False}
    if _inside(panel):
        for number, trace in enumerate(panel.traces, 1):
            at = len(trace.x) * (1 + number) // (2 + 2 * len(panel.traces))
            high = trace.y[at] > _TOP
            place = {"xytext": (4.0, -3.0), "va": "top"} if high else {"xytext": (-4.0, 2.0), "va": "bottom"}
            end = (trace.band or (trace.y,))[0][at] if high else trace.y[at]
            side = {"ha": "left" if high else "right", "color": trace.color}
            axes.annotate(trace.label, (trace.x[at], end), **look | place | side)
        return
    places = []
    for trace in panel.traces:
        k = 0 if panel.sideways or panel.diagonal else -1
        last, end = trace.x[k], trace.y[k] if math.isfinite(trace.y[k]) else trace.band[0][k]
        aside = max(filter(math.isfinite, trace.y), default=0.0) if panel.sideways else 0.0
        height = axes.transData.transform((1.0, last) if panel.sideways else (last, end))[1]
        places.append((float(axes.transAxes.inverted().transform((0.0, height))[1]), aside, trace))
    places.sort(key=lambda place: place[:2])
    needed = [_LINE * (1 + trace.label.count("\n")) / lines for *_, trace in places]
    heights = apart([height for height, *_ in places], needed)
    for height, (*_, trace) in zip(heights, places, strict=True):
        place = {"xytext": (4.0, 0.0), "va": "center", "color": trace.color}
        axes.annotate(trace.label, (1.0, height), xycoords="axes fraction", **look | place)


def _inside(panel: Panel) -> bool:
    """Return whether names are inside: one or two trade-off curves leave room below and above them."""
    return panel.diagonal and len(panel.traces) <= 2


_TOP = 0.3
"""Rates above which a name is below its curve, since there is no room above."""


def apart(wanted: Sequence[float], needed: Sequence[float]) -> list[float]:
    """Return heights near the wanted ones, such that no text covers another one.

    Args:
        wanted: Heights in [0, 1], rising.
        needed: Height of each text.

    Example:
        >>> apart([0.5, 0.5], [0.2, 0.2])
        [0.4, 0.6]
    """
    groups: list[tuple[list[float], list[float]]] = []  # texts that touch, with their wanted middles
    for height, own in zip(wanted, needed, strict=True):
        groups.append(([own], [height]))
        while len(groups) > 1 and _start(*groups[-2]) + sum(groups[-2][0]) > _start(*groups[-1]):
            sizes, middles = groups.pop()
            groups[-1] = groups[-1][0] + sizes, groups[-1][1] + middles
    found = []
    for sizes, middles in groups:
        start = _start(sizes, middles)
        found += [start + sum(sizes[:k]) + 0.5 * own for k, own in enumerate(sizes)]
    return [round(each, 6) for each in found]


def _start(sizes: Sequence[float], middles: Sequence[float]) -> float:
    """Return the lower end of texts that touch, with the least squared distances, inside of the axes."""
    offsets = [sum(sizes[:k]) + 0.5 * own for k, own in enumerate(sizes)]
    start = sum(middle - offset for middle, offset in zip(middles, offsets, strict=True)) / len(sizes)
    return max(min(start, 1.0 - sum(sizes)), 0.0)


def save(drawn: "Canvas", kind: str) -> bytes:
    """Return a drawn panel as a file; equal data give equal bytes.

    Args:
        drawn: From `sketch`.
        kind: `png`, `svg` or `pdf`.
    """
    from matplotlib.style import context

    file = io.BytesIO()
    with context(_SKETCH):
        drawn.savefig(file, format=kind, metadata=_NO_DATE[kind])
    if kind != "svg":
        return file.getvalue()
    text = re.sub(r"'DejaVu Sans'[^;\"]*", FONT, file.getvalue().decode())
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).encode()


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


_FEW = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""Digits of the labels of a short axis, where there is little room."""


def _plain_ticks(axis: "Axis", short: Sequence[float] = (1.0, 1.5, *range(2, 10))) -> None:
    """Label a logarithmic axis with plain numbers, as many as its range needs."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    marks = tuple(short) if decades < 0.8 else (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    axis.set_major_locator(LogLocator(subs=marks))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"${tex(x)}$"))
    axis.set_minor_formatter(NullFormatter())
