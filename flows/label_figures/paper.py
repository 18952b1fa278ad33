"""The figures of both papers, one entry each, and what of them a store holds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flows.label_figures import distributions, rates, scatter, utility
from flows.label_figures.pictures import Panel, Picture
from flows.label_figures.stored import Stored
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


_TRADE_OFF = ("labels-learning", "labels-advantage", "labels-quantile")
_BOTH = utility.wants("rr", "llp", "llp-geometric")

FIGURES: tuple[Figure, ...] = (
    Figure(
        name="labels1",
        title="Prior and posterior of a label, by the parameters of three mechanisms",
        panels=scatter.by_parameter,
    ),
    Figure(
        name="labels2",
        title=r"Three mechanisms at $\varepsilon = 1$ and bag size 8: posteriors and both advantages",
        panels=distributions.both_advantages,
        sweeps=("labels-ratio",),
    ),
    Figure(
        name="labels3",
        title="Utility and privacy; with noise and bags, one curve a bag size",
        panels=utility.by_bag_size,
        sweeps=_TRADE_OFF,
        wants=_BOTH,
    ),
    Figure(
        name="labels4",
        title="Prior and posterior of a label with geometric and with Laplace noise",
        panels=scatter.by_noise,
    ),
    Figure(
        name="labels5",
        title="Utility and privacy; with noise and bags, one curve an epsilon",
        panels=utility.by_epsilon,
        sweeps=_TRADE_OFF,
        wants=_BOTH,
    ),
    Figure(
        name="workshop1",
        title="Utility and additive advantage of randomized response and of bags",
        panels=utility.without_noise,
        sweeps=("labels-learning", "labels-advantage"),
        wants=utility.wants("rr", "llp", data=("kdd-like",)),
    ),
    Figure(
        name="workshop2",
        title="Utility of bags with Laplace noise",
        panels=utility.against_bag_size,
        sweeps=("labels-learning",),
        wants=utility.wants("llp", "llp-laplace", data=("kdd-like",)),
    ),
    Figure(
        name="rates",
        title="Both advantages against the bag size, without noise",
        panels=rates.panels,
        sweeps=("labels-rates",),
        notes=rates.fitted,
    ),
)


def picture(figure: Figure, store: Path) -> Picture:
    """Return a figure with what is stored for it; posteriors are simulated, nothing else is computed.

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
