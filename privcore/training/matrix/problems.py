"""Questions about matrix mechanisms."""

from typing import Annotated

from privcore import params
from privcore.allocation.problems import MORE_NOISE
from privcore.constraint import NoneOf, OneOf
from privcore.problem import Problem, asked, falls, grows, proved
from privcore.training import params as training_params
from privcore.training.matrix import params as matrix_params
from privcore.training.matrix.strategies import Strategy, strategy

OF_GROUPS = "cyclic-poisson"


class CorrelatedNoise(Problem):
    """Base of the questions about runs whose noise is correlated between the steps."""

    topic = "training"
    constraints = (
        OneOf(
            "sampling_probability",
            (1.0,),
            "Expected sampling_probability only with sampling=cyclic-poisson, got sampling={sampling}.",
            where=NoneOf("sampling", (OF_GROUPS,)),
        ),
    )
    monotone = proved(
        sigma=falls(MORE_NOISE),
        epochs=grows("Leaving out the outputs of the last epoch is post-processing."),
        sampling_probability=grows("A sample of a sample: see the proof for Poisson sampling."),
    )
    sampling: Annotated[str, matrix_params.SAMPLING]
    strategy: Annotated[str, matrix_params.STRATEGY]
    sigma: Annotated[float, matrix_params.SIGMA]
    steps: Annotated[int, matrix_params.STEPS]
    epochs: Annotated[int, matrix_params.EPOCHS]
    sampling_probability: Annotated[float, params.SAMPLING_PROBABILITY] = 1.0
    adjacency: Annotated[str, training_params.ADJACENCY]

    @property
    def matrix(self) -> Strategy:
        """The strategy matrix."""
        return strategy(self.strategy)


class MatrixMechanism(CorrelatedNoise):
    """Runs with correlated noise; the class separates their fields from those of a quantity."""


MatrixEpsilon, MatrixDelta = asked(
    "matrix",
    MatrixMechanism,
    "of a matrix mechanism (DP-FTRL, BandMF): noise that is correlated between the steps of a run.",
)
