"""A figure before anything is looked up, and the picture that a store gives of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flows.figures.panels import Panel
from flows.figures.stored import Stored
from privcore import Problem
from storage import Store


def _everything(_: Problem) -> bool:
    return True


def _nothing(_: Stored) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure before anything is looked up.

    Attributes:
        name: Of the option that asks for it: `labels3`, or the number in a paper whose figures have numbers.
        title: One line for people, or a function that builds it.
        panels: Builds its rows of panels from the stored points.
        sweeps: Those whose points it shows; without any, everything is simulated when it is drawn.
        wants: Selects some of their points.
        notes: Builds the sentences about fitted rates.
        legend_below: Whether one legend stands below all panels, not one beside each row.
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
        """Name of its file, without the format."""
        return f"figure{self.name}" if self.name.isdecimal() else self.name


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure with everything that is drawn.

    Attributes:
        figure: The declaration of the figure.
        title: One line for people, or two.
        rows: Panels, from the top.
        notes: Sentences about fitted rates, for the report.
        points: Number of stored points that it wants.
        missing: Number of points that are not stored, by method.
        failed: Number of points that are stored without an answer though the method applies, by method.
    """

    figure: Figure
    title: str
    rows: tuple[tuple[Panel, ...], ...]
    notes: tuple[str, ...] = ()
    points: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether it lacks points, and nothing can be drawn from those that are stored."""
        return bool(self.missing) and not any(panel.traces for row in self.rows for panel in row)


def picture(figure: Figure, store: Store) -> Picture:
    """Return a figure with the stored points; only simulated figures compute something.

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
    )
