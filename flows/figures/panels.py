"""What a figure consists of: rows of panels, each with lines, steps or dots; nothing here draws."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """How the places of a trace are joined."""

    LINE = "line"
    STEPS = "steps"
    """A distribution function: what holds at x holds up to the next x."""
    DOTS = "dots"


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One curve, or one cloud of dots.

    Attributes:
        label: Its name in the legend; nothing where another trace stands for it.
        color: Hexadecimal.
        x: Coordinates; infinite ones are drawn at the edge that the panel marks.
        y: As many.
        band: Lower and upper ends around y, each as long; empty where there are none.
        kind: How it is drawn.
        marker: A marker of matplotlib, or nothing.
        style: A line style of matplotlib.
    """

    label: str
    color: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    band: tuple[tuple[float, ...], ...] = ()
    kind: Kind = Kind.LINE
    marker: str = ""
    style: str = "-"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: Above it; nothing where the panel above has it.
        x_label: Below it.
        y_label: Beside it.
        traces: The first of the legend first.
        scales: Of the horizontal and the vertical axis, `log` or `linear`.
        x_limits: Ends of the horizontal axis, or None.
        y_limits: Ends of the vertical axis, or None.
        diagonal: Whether y = x is drawn.
    """

    title: str = ""
    x_label: str = ""
    y_label: str = ""
    traces: tuple[Trace, ...]
    scales: tuple[str, str] = ("linear", "linear")
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    diagonal: bool = False


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure with everything that is drawn.

    Attributes:
        name: Of its file.
        title: One line for people.
        sweeps: Those whose points it shows.
        rows: Panels, from the top.
        notes: Sentences about what is fitted, for the report.
        points: Number of stored points that it wants.
        missing: Number of points that are not stored, by method.
        failed: Number of points that are stored without an answer though the method applies, by method.
    """

    name: str
    title: str
    sweeps: tuple[str, ...]
    rows: tuple[tuple[Panel, ...], ...]
    notes: tuple[str, ...] = ()
    points: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether it needs stored points, and nothing can be drawn from those that are stored."""
        return self.points > 0 and (
            sum(self.missing.values()) == self.points
            or not any(panel.traces for row in self.rows for panel in row)
        )
