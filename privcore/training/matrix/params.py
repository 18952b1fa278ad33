"""Parameters of matrix mechanisms."""

from dataclasses import replace

from privcore import params
from privcore.parameter import Choice, Text
from privcore.training.matrix.strategies import canonical

SAMPLING = Choice(
    name="sampling",
    symbol="-",
    choices=("none", "cyclic-poisson", "balls-in-bins"),
    meaning=(
        "Sampling of the batches: none, a sample of one group of the data in each step (cyclic-poisson), or "
        "one random step of the epoch for each example, kept for the whole run (balls-in-bins)"
    ),
)
STRATEGY = Text(
    name="strategy",
    symbol="C",
    grammar="{toeplitz(C0,C1,...), banded-sqrt(W), banded-inverse-sqrt(W), matrix(FILE.npy), gram(FILE.npy)}",
    canonical=canonical,
    typical=("toeplitz(1)", "banded-sqrt(4)", "toeplitz(1,0.5)", "banded-sqrt(16)"),
    meaning=(
        "Strategy matrix C, lower triangular without negative entries: coefficients of a Toeplitz matrix, "
        "the square root with W bands, or with W bands of its inverse, scaled to columns of norm 1, or a "
        "file with C or with the inner products of the means of the bins"
    ),
)
SIGMA = replace(
    params.SIGMA,
    typical=(1.0, 2.0, 4.0, 10.0),
    meaning=(
        "Standard deviation of the noise that is added to C x, divided by the clipping norm; the noise "
        "multiplier, if the columns of C have norm 1"
    ),
)
STEPS = replace(
    params.STEPS,
    symbol="b",
    typical=(1, 4, 30, 100),
    meaning="Number of steps in one epoch, which is the number of bins, or of groups of the data",
)
EPOCHS = replace(params.EPOCHS, meaning="Number of epochs: an example may be used in one step of each")
