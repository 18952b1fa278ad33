"""The nine figures of arXiv:2502.08202v3, one entry each; the sweep of each figure has the same name."""

from flows.figures.allocation import series
from flows.figures.allocation.curves import Curves

_SCHEMES = (
    series.ALLOCATION,
    series.POISSON,
    series.LOCAL,
    series.DIRECT,
    series.RECURSIVE,
    series.DECOMPOSITION,
)

CURVES: tuple[Curves, ...] = (
    Curves(number=1, x="sigma", series=(*_SCHEMES, series.SHUFFLING, series.SHUFFLING_LOWER)),
    Curves(
        number=2,
        x="sigma",
        split=("steps",),
        series=(
            series.ALLOCATION,
            series.POISSON,
            series.COMBINED,
            series.DONG,
            series.ALLOCATION_LOWER,
        ),
    ),
    Curves(
        number=3,
        x="examples",
        split=("epsilon", "dimension"),
        series=(
            series.ALLOCATION_ERROR,
            series.ALLOCATION_PUBLISHED,
            series.ALLOCATION_TRIALS,
            series.POISSON_ERROR,
            series.POISSON_TRIALS,
        ),
    ),
    Curves(number=4, x="sigma", split=("adjacency",), shares_y=True, series=_SCHEMES),
    Curves(number=5, x="sigma", split=("adjacency",), shares_y=True, series=_SCHEMES),
    Curves(
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
    Curves(
        number=7,
        x="epochs",
        closer=(0.0, 3.0),  # the direct bound of both directions reaches 500
        series=(
            series.ALLOCATION,
            series.POISSON,
            series.DIRECT_REMOVE,
            series.POISSON_RENYI,
            series.DIRECT,
        ),
    ),
    Curves(
        number=8,
        x="epsilon",
        split=("sigma", "steps"),
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
    Curves(
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

FIGURES = tuple(curves.figure for curves in CURVES)
