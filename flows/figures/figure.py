"""The declaration of a figure, and the picture of it with the points of a store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flows.figures.panels import Panel
from flows.figures.stored import Stored
from privcore import Problem
from storage import Store
from storage.schema import origin_text


def _everything(_: Problem) -> bool:
    return True


def _nothing(_: Stored) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The declaration of a figure.

    Attributes:
        name: Value of the option for this figure: `labels3`, or the number in a paper with numbered figures.
        title: One line, or a function that builds it.
        panels: Function that builds the rows of panels from the stored points.
        sweeps: Sweeps whose points the figure shows; without sweeps, everything is simulated while drawing.
        wants: Condition by which some of their points are selected.
        notes: Function that builds the sentences about fitted rates.
        legend_below: Whether one legend is below all panels, instead of a legend next to each row.
        shares_y: Whether the panels have the same vertical axis.
    """

    name: str
    title: str | Callable[[Stored], str]
    panels: Callable[[Stored], tuple[tuple[Panel, ...], ...]]
    sweeps: tuple[str, ...] = ()
    wants: Callable[[Problem], bool] = _everything
    notes: Callable[[Stored], tuple[str, ...]] = _nothing
    legend_below: bool = False
    shares_y: bool = False

    @property
    def stem(self) -> str:
        """Name of the file, without suffix."""
        return f"figure{self.name}" if self.name.isdecimal() else self.name


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure with all data to draw.

    Attributes:
        figure: The declaration of the figure.
        title: One or two lines.
        rows: Panels, from the top.
        notes: Sentences about fitted rates, for the report.
        points: Number of points that the figure shows if all are stored.
        missing: Number of points that are not stored, by method.
        failed: Number of points that are stored without an answer although the method applies, by method.
        tables: Number of points from each lookup table that nobody recomputed here.
    """

    figure: Figure
    title: str
    rows: tuple[tuple[Panel, ...], ...]
    notes: tuple[str, ...] = ()
    points: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """The sentence about points of lookup tables, which files show below the title, or ""."""
        return origin_text(self.tables, f"{sum(self.tables.values())} of {self.points} points are ", ".")

    @property
    def empty(self) -> bool:
        """Whether points are missing and the stored points give no trace."""
        return bool(self.missing) and not any(panel.traces for row in self.rows for panel in row)


def picture(figure: Figure, store: Store) -> Picture:
    """Return a figure with the stored points; only simulated figures are computed.

    Args:
        figure: The declaration of the figure.
        store: Opened with `missing_ok`.

    Raises:
        StoreError: The store cannot be read.
    """
    stored = Stored.of(figure.sweeps, figure.wants, store)
    missing = stored.missing
    nothing = bool(stored.points) and sum(missing.values()) == len(stored.points)
    return Picture(
        figure=figure,
        title=figure.title if isinstance(figure.title, str) else figure.title(stored),
        rows=() if nothing else figure.panels(stored),
        notes=() if nothing else figure.notes(stored),
        points=len(stored.points),
        missing=missing,
        failed=stored.failed,
        tables=stored.tables,
    )
