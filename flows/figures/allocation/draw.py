"""Drawing with matplotlib: bands for brackets, one legend below the panels, same bytes for same data."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flows.figures.allocation.curves import Curve, Panel, Picture
from flows.figures.allocation.series import Shows
from privcore.parameter import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas

FORMATS = ("png", "svg", "pdf")

_WORDS = {"sigma": "noise multiplier", "epsilon": "privacy parameter"}
_QUANTITIES = {"epsilon": r"privacy parameter $\varepsilon$", "delta": r"$\delta$", "error": "squared error"}
STYLE: dict[str, Any] = {
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
    "svg.hashsalt": "privsweep",  # else every SVG gets new random ids
}
NO_DATE = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
_SHAPES = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2)}
_PANEL_INCHES = (4.6, 3.7)
_LONE_INCHES = (7.0, 4.8)


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
    """Return the drawn figure, for `draw` and for whoever wants to look at its lines."""
    from matplotlib.figure import Figure as Canvas

    rows, columns = _SHAPES[len(picture.panels)]
    width, height = _LONE_INCHES if rows * columns == 1 else _PANEL_INCHES
    drawn = Canvas(figsize=(width * columns, height * rows + 1.0), layout="constrained")
    grid = drawn.subplots(rows, columns, squeeze=False, sharey=picture.figure.shares_y)
    labels: dict[str, Any] = {}  # what stands for each in the legend
    for number, (axes, panel) in enumerate(zip(grid.flat, picture.panels, strict=True)):
        for curve in reversed(panel.curves):  # the first of the legend comes to lie on top
            labels.setdefault(curve.series.label, _draw_curve(axes, curve))
        _dress(axes, picture, panel, left=number % columns == 0, bottom=number >= (rows - 1) * columns)
    order = [s.label for s in picture.figure.series if s.label in labels]
    drawn.legend(
        [labels[label] for label in order], order, loc="outside lower center", ncols=min(columns + 1, 3)
    )
    fixed = ", ".join(_equation(picture, name, value) for name, value in picture.fixed.items())
    drawn.suptitle(
        "\n".join([f"Figure {picture.figure.number}. {picture.title}", *([fixed] if fixed else [])])
    )
    return drawn


def _draw_curve(axes: "Axes", curve: Curve) -> Any:
    """Draw a curve and return what stands for it in the legend."""
    series = curve.series
    x = np.array(curve.x)
    # What is infinite is no bound, and is not drawn.
    ends = [np.where(np.isfinite(end), end, np.nan) for end in map(np.array, curve.ends)]
    look: dict[str, Any] = {"color": series.color, "marker": series.marker, "linewidth": series.width}
    if series.scheme == "poisson":  # often close to allocation, which is seen through large hollow markers
        look |= {"markersize": 8.0, "markerfacecolor": "none"}
    match series.shows:
        case Shows.BRACKET:
            (edge,) = axes.plot(x, ends[1], zorder=3, **look)
            axes.plot(x, ends[0], zorder=3, **look | {"marker": ""})
            band = axes.fill_between(
                x, ends[0], ends[1], color=series.color, alpha=0.35, linewidth=0.0, zorder=3
            )
            return (band, edge)
        case Shows.SPREAD:
            value, lower, upper = ends
            spread = (value - lower, upper - value)
            return axes.errorbar(x, value, yerr=spread, linestyle="", capsize=3.0, zorder=4, **look)
        case Shows.LOWER:
            return axes.plot(x, ends[0], linestyle=":", zorder=4, **look)[0]
        case Shows.VALUE:
            return axes.plot(x, ends[0], linestyle="--", zorder=4, **look)[0]
        case Shows.UPPER:
            return axes.plot(x, ends[0], zorder=2, **look)[0]


def _dress(axes: "Axes", picture: Picture, panel: Panel, *, left: bool, bottom: bool) -> None:
    """Give a panel its scales, labels and title."""
    horizontal, vertical = picture.figure.scales
    axes.set_xscale(horizontal)
    axes.set_yscale(vertical)
    for axis, ticks in ((axes.xaxis, horizontal), (axes.yaxis, vertical)):
        if ticks == "log":
            plain_ticks(axis)
    if bottom:
        axes.set_xlabel(_label(picture, picture.figure.x))
    if left:
        axes.set_ylabel(_QUANTITIES[picture.asks])
    if panel.fields:
        axes.set_title(", ".join(_equation(picture, name, value) for name, value in panel.fields.items()))


def plain_ticks(axis: "Axis") -> None:
    """Label a logarithmic axis with numbers as people write them, as many as its range needs."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    marks = (1.0, 1.5, *range(2, 10)) if decades < 0.8 else (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    axis.set_major_locator(LogLocator(subs=marks))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"${_number(x)}$"))
    axis.set_minor_formatter(NullFormatter())


def _label(picture: Picture, name: str) -> str:
    """Return the label of a horizontal axis: words and symbol."""
    return f"{_WORDS.get(name, name)} ${picture.parameters[name].symbol}$"


def _equation(picture: Picture, name: str, value: Value) -> str:
    if isinstance(value, str):
        return f"direction: {value}"
    return f"${picture.parameters[name].symbol} = {_number(value)}$"


def _number(value: float) -> str:
    r"""Return a number as TeX.

    Example:
        >>> _number(0.75), _number(1_000_000), _number(1e-10), _number(2.5e-6), _number(1000)
        ('0.75', '10^{6}', '10^{-10}', '2.5 \\cdot 10^{-6}', '1000')
    """
    if value and not 1e-3 <= abs(value) <= 9999:
        mantissa, _, exponent = f"{value:.6e}".partition("e")
        mantissa = mantissa.rstrip("0").removesuffix(".")
        return (rf"{mantissa} \cdot " if mantissa != "1" else "") + f"10^{{{int(exponent)}}}"
    return f"{value:.6g}"
