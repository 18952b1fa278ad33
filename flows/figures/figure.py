"""A figure before anything is looked up, and what of it a store holds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flows.figures.panels import Panel, Picture
from flows.figures.stored import Stored
from privcore import Problem


def _everything(_: Problem) -> bool:
    return True


def _nothing(_: Stored) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure before anything is looked up.

    Attributes:
        name: Of its file, and of the option that asks for it.
        title: One line for people.
        panels: Builds its rows of panels from what is stored.
        sweeps: Those whose points it shows; without any, everything is simulated when it is drawn.
        wants: Which of their points.
        notes: Builds the sentences about what is fitted.
    """

    name: str
    title: str
    panels: Callable[[Stored], tuple[tuple[Panel, ...], ...]]
    sweeps: tuple[str, ...] = ()
    wants: Callable[[Problem], bool] = _everything
    notes: Callable[[Stored], tuple[str, ...]] = _nothing


def picture(figure: Figure, store: Path) -> Picture:
    """Return a figure with what is stored for it; what it simulates is simulated, nothing else is computed.

    Args:
        figure: Which one.
        store: Folder of the store; it need not exist.

    Raises:
        StoreError: The store cannot be read.
    """
    stored = Stored.of(figure.sweeps, figure.wants, store)
    missing = stored.missing
    nothing = bool(stored.points) and sum(missing.values()) == len(stored.points)
    return Picture(
        name=figure.name,
        title=figure.title,
        sweeps=figure.sweeps,
        rows=() if nothing else figure.panels(stored),
        notes=() if nothing else figure.notes(stored),
        points=len(stored.points),
        missing=missing,
        failed=stored.failed,
    )
