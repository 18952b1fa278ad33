"""Options of the commands about one training run."""

from typing import Annotated

import typer

from flows.answers.parse import LOADERS, UNKNOWN
from flows.cli import completion
from privcore.params import DELTA_MEANING

Sigma = Annotated[
    str | None,
    typer.Option(
        "--sigma",
        "--noise-multiplier",
        metavar="NUMBER",
        help="Standard deviation of the noise of a step divided by the clipping norm, also for replace-one.",
    ),
]
Steps = Annotated[str | None, typer.Option(metavar="NUMBER", help="Number of steps in one epoch.")]
Delta = Annotated[str | None, typer.Option(metavar="NUMBER", help=f"{DELTA_MEANING}; in (0, 1).")]
Participations = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Number of steps of an epoch that use an example; default: 1."),
]
Epochs = Annotated[str | None, typer.Option(metavar="NUMBER", help="Number of epochs; default: 1.")]
Adjacency = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help="Neighbouring relation: add-remove, zero-out or replace-one, or a direction: add or remove. "
        "Batches of random size have add-remove by default; for a fixed size it is required, or zero-out in "
        "comparisons.",
        autocompletion=completion.words("add-remove", "zero-out", "replace-one", "add", "remove"),
    ),
]
Sampling = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help="Loader of the training code: shuffling, poisson, with-replacement, fixed-size, balls-in-bins, "
        "allocation, truncated-poisson, none, or unknown for all of them.",
        autocompletion=completion.words(*LOADERS, UNKNOWN),
    ),
]
Probability = Annotated[
    str | None,
    typer.Option(
        "--sampling-probability",
        metavar="NUMBER",
        help="Probability that a step uses an example.",
    ),
]
Redraw = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help="Steps of an example over several epochs: drawn once, or in each-epoch.",
        autocompletion=completion.words("once", "each-epoch"),
    ),
]
LargestBatch = Annotated[
    str | None,
    typer.Option(
        "--largest-batch", metavar="NUMBER", help="Size to which truncated-poisson cuts larger batches."
    ),
]
RunFile = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="FILE",
        help="TOML file of a run of several phases, or its phases in one line of text.",
    ),
]
Examples = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Size of the training set; a delta too large for it prints a note."),
]
BatchSize = Annotated[
    str | None,
    typer.Option(
        "--batch-size", metavar="NUMBER", help="Average batch size; with --examples, replaces --steps."
    ),
]

StoredOnly = Annotated[
    bool, typer.Option("--stored-only", help="Never compute; exit with 3 if the store has no answer.")
]
StatementFormat = Annotated[
    str | None,
    typer.Option(
        "--statement",
        metavar="FORMAT",
        help="Print a statement for a paper or a model card instead: text or markdown.",
        autocompletion=completion.words("text", "markdown"),
    ),
]
