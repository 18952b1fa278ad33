"""The figures of both papers, one entry each."""

from flows.figures.figure import Figure
from flows.figures.labels import distributions, rates, scatter, utility

_TRADE_OFF = ("labels-learning", "labels-advantage", "labels-quantile")
_BOTH = utility.wants("rr", "llp", "llp-geometric")

FIGURES: tuple[Figure, ...] = (
    Figure(
        name="labels1",
        title="Prior and posterior of a label, for several parameters of three mechanisms",
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
        title="Utility and privacy; with noise and bags, one curve for each bag size; bars: standard error",
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
        title="Utility and privacy; with noise and bags, one curve for each epsilon; bars: standard error",
        panels=utility.by_epsilon,
        sweeps=_TRADE_OFF,
        wants=_BOTH,
    ),
    Figure(
        name="workshop1",
        title="Utility and additive advantage of randomized response and of bags; bars: standard error",
        panels=utility.without_noise,
        sweeps=("labels-learning", "labels-advantage"),
        wants=utility.wants("rr", "llp", data=("kdd-like",), scores=tuple(utility.SCORES)),
    ),
    Figure(
        name="workshop2",
        title="Utility of bags with Laplace noise; bars: standard error",
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
