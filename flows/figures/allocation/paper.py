"""The nine figures of arXiv:2502.08202v3, one entry each; their points come from sweeps of the same name."""

from dataclasses import dataclass

from flows.figures.allocation import series
from flows.figures.allocation.series import Series


@dataclass(frozen=True, kw_only=True)
class Figure:
    """How the points of a sweep are drawn.

    Attributes:
        number: Its number in the paper; the sweep is called `figure<number>`.
        x: Field of the problems on the horizontal axis.
        series: The curves, in the order of the legend.
        panels: Fields that tell the panels apart.
        scales: Of the horizontal and the vertical axis, `log` or `linear`.
        shares_y: Whether the panels have the same vertical axis.
    """

    number: int
    x: str
    series: tuple[Series, ...]
    panels: tuple[str, ...] = ()
    scales: tuple[str, str] = ("log", "log")
    shares_y: bool = False

    @property
    def sweep(self) -> str:
        """Name of the sweep."""
        return f"figure{self.number}"


_SCHEMES = (
    series.ALLOCATION,
    series.POISSON,
    series.LOCAL,
    series.DIRECT,
    series.RECURSIVE,
    series.DECOMPOSITION,
)

FIGURES: tuple[Figure, ...] = (
    Figure(number=1, x="sigma", series=(*_SCHEMES, series.SHUFFLING, series.SHUFFLING_LOWER)),
    Figure(
        number=2,
        x="sigma",
        panels=("steps",),
        series=(
            series.ALLOCATION,
            series.POISSON,
            series.COMBINED,
            series.DONG,
            series.ALLOCATION_LOWER,
        ),
    ),
    Figure(
        number=3,
        x="examples",
        panels=("epsilon", "dimension"),
        series=(
            series.ALLOCATION_ERROR,
            series.ALLOCATION_TRIALS,
            series.POISSON_ERROR,
            series.POISSON_TRIALS,
        ),
    ),
    Figure(number=4, x="sigma", panels=("adjacency",), shares_y=True, series=_SCHEMES),
    Figure(number=5, x="sigma", panels=("adjacency",), shares_y=True, series=_SCHEMES[:-1]),
    Figure(
        number=6,
        x="steps",
        scales=("linear", "linear"),
        series=(
            series.ALLOCATION,
            series.POISSON,
            series.POISSON_RENYI,
            series.DIRECT,
            series.DECOMPOSITION,
        ),
    ),
    Figure(
        number=7,
        x="epochs",
        series=(
            series.ALLOCATION,
            series.POISSON,
            series.POISSON_RENYI,
            series.DIRECT_REMOVE,
            series.DIRECT,
        ),
    ),
    Figure(
        number=8,
        x="epsilon",
        panels=("sigma", "steps"),
        scales=("linear", "log"),
        series=(
            series.ALLOCATION,
            series.POISSON,
            series.COMBINED,
            series.MONTE_CARLO_MEAN,
            series.MONTE_CARLO_BOUND,
            series.ALLOCATION_LOWER,
        ),
    ),
    Figure(
        number=9,
        x="participations",
        series=(
            series.ALLOCATION,
            series.POISSON,
            series.POISSON_RENYI,
            series.DIRECT_REMOVE,
            series.DIRECT,
            series.DONG,
        ),
    ),
)
