"""The two figures of the paper, and four more on its theorems, one entry each."""

from flows.figures.figure import Figure
from flows.figures.membership import fitting, privacy, rates, regression, roc

FIGURES: tuple[Figure, ...] = (
    Figure(
        name="membership1",
        title="Records fitted by a network during training (dotted: the most that noise allows)",
        panels=fitting.over_iterations,
        sweeps=("membership-overfitting",),
        wants=fitting.with_a_network,
    ),
    Figure(
        name="membership2",
        title="Fitted records, by the dimension (dotted: bounds from the noise)",
        panels=fitting.over_dimension,
        sweeps=("membership-dimension",),
    ),
    Figure(
        name="membership-rates",
        title="Largest advantage over all learners of discrete records",
        panels=rates.panels,
        sweeps=("membership-rates",),
    ),
    Figure(
        name="membership-roc",
        title="The best attack on the worst learner of discrete records",
        panels=roc.panels,
        sweeps=("membership-roc",),
    ),
    Figure(
        name="membership-regression",
        title="Advantage of attacks on the coefficients of least squares",
        panels=regression.panels,
        sweeps=("membership-regression",),
    ),
    Figure(
        name="membership-privacy",
        title="Largest advantage over all differentially private learners",
        panels=privacy.panels,
        sweeps=("membership-privacy",),
    ),
)
