"""Parts of a figure as data: panels with lines, steps, dots or error bars, and their colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """A way to draw the points of a trace."""

    LINE = "line"
    STEPS = "steps"
    """A distribution function: the value at x holds up to the next x."""
    DOTS = "dots"
    BARS = "bars"
    """Separate points, each with error bars that span the band."""
    ERRORS = "errors"
    """A line through points, each with error bars that span the band."""


Place = tuple[float, float]
BLACK, BLUE, GREEN, ORANGE, PINK, GREY = "#000000", "#0072B2", "#009E73", "#E69F00", "#CC79A7", "#777777"


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One curve, or one cloud of dots.

    Attributes:
        label: Name in the legend, or "" if another trace has the entry.
        color: Hexadecimal colour.
        x: Horizontal coordinates; infinite ones are drawn at the edge that the panel marks.
        y: Vertical coordinates, of the same length.
        band: Lower and upper ends around y, of the same length, or empty.
        kind: The way to draw the points.
        marker: A marker of matplotlib, or "".
        style: A line style of matplotlib.
        width: Width of the line, in points.
        layer: Traces of a higher layer are on top; within a layer, the first trace of the panel is on top.
        hollow: Whether markers are large and hollow, so that a curve close to this one stays visible.
    """

    label: str
    color: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    band: tuple[tuple[float, ...], ...] = ()
    kind: Kind = Kind.LINE
    marker: str = ""
    style: str = "-"
    width: float = 1.4
    layer: int = 4
    hollow: bool = False


@dataclass(frozen=True, kw_only=True)
class Look:
    """Name, colour, marker and line style of a curve, the same in every figure."""

    label: str
    color: str
    marker: str = ""
    style: str = "-"

    def trace(self, places: Sequence[Place], band: Sequence[Place] = ()) -> tuple[Trace, ...]:
        """Return the curve through some points, sorted by x, or an empty tuple without points.

        Args:
            places: Coordinates, in any order.
            band: Lower and upper end at each point, or empty.
        """
        if not places:
            return ()
        order = sorted(range(len(places)), key=lambda i: places[i])
        x, y = zip(*(places[i] for i in order), strict=True)
        ends = tuple(zip(*(band[i] for i in order), strict=True)) if band else ()
        return (
            Trace(
                label=self.label, color=self.color, x=x, y=y, band=ends, marker=self.marker, style=self.style
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: Text above the panel, or "" if the panel above has it.
        x_label: Text below the horizontal axis.
        y_label: Text next to the vertical axis.
        traces: Traces in the order of the legend.
        scales: Scales of the horizontal and the vertical axis, `log` or `linear`.
        x_limits: Ends of the horizontal axis, or None.
        y_limits: Ends of the vertical axis, or None.
        diagonal: Whether y = x is drawn.
        sideways: Whether the axes are exchanged: x of a trace is vertical, and its band horizontal.
    """

    title: str = ""
    x_label: str = ""
    y_label: str = ""
    traces: tuple[Trace, ...]
    scales: tuple[str, str] = ("linear", "linear")
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    diagonal: bool = False
    sideways: bool = False


RAMP = ("#440154", "#443A83", "#31688E", "#21918C", "#35B779", "#90C83E", "#D0B500")
"""Colours of rising parameters, dark to bright."""


def ramp(size: int) -> tuple[str, ...]:
    """Return `size` colours of the ramp, as far apart as possible.

    Example:
        >>> ramp(3)
        ('#440154', '#21918C', '#D0B500')
    """
    if size == 1:
        return RAMP[:1]
    return tuple(RAMP[round(i * (len(RAMP) - 1) / (size - 1))] for i in range(size))


def between(size: int) -> tuple[str, ...]:
    """Return `size` different colours along the ramp, mixed if the ramp has too few.

    Example:
        >>> between(3) == ramp(3), len(set(between(12)))
        (True, 12)
    """
    if size == 1:
        return RAMP[:1]
    return tuple(_mixed(i * (len(RAMP) - 1) / (size - 1)) for i in range(size))


def _mixed(place: float) -> str:
    """Return the colour at a position of the ramp, mixed from two neighbouring colours."""
    k = min(int(place), len(RAMP) - 2)
    pairs = ((int(RAMP[k][i : i + 2], 16), int(RAMP[k + 1][i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (place - k) * (b - a)):02X}" for a, b in pairs)


def tex(value: float) -> str:
    r"""Return a number as TeX.

    Example:
        >>> tex(0.75), tex(1_000_000), tex(1e-10), tex(2.5e-6), tex(1000)
        ('0.75', '10^{6}', '10^{-10}', '2.5 \\cdot 10^{-6}', '1000')
    """
    if value and not 1e-3 <= abs(value) <= 9999:
        mantissa, _, exponent = f"{value:.6e}".partition("e")
        mantissa = mantissa.rstrip("0").removesuffix(".")
        return (rf"{mantissa} \cdot " if mantissa != "1" else "") + f"10^{{{int(exponent)}}}"
    return f"{value:.6g}"
