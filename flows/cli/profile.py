"""The command profile: many numbers of one training run, with both ends."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.answers.parse import UNKNOWN
from flows.cli.options import Json, waiting
from flows.cli.training import (
    Adjacency,
    BatchSize,
    Epochs,
    Examples,
    LargestBatch,
    Participations,
    Probability,
    Redraw,
    RunFile,
    Sampling,
    Sigma,
    Steps,
)
from flows.printing import note
from flows.spec.words import number

if TYPE_CHECKING:
    from privcore.training import RunProfile


def _numbers(what: str) -> Any:
    return typer.Option(metavar="NUMBER", help=f"{what}; repeat the option for several numbers.")


def profile(  # noqa: PLR0913  the options of a command are its arguments
    *,
    sigma: Sigma = None,
    steps: Steps = None,
    participations: Participations = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    sampling: Sampling = None,
    sampling_probability: Probability = None,
    redraw: Redraw = None,
    largest_batch: LargestBatch = None,
    examples: Examples = None,
    batch_size: BatchSize = None,
    run: RunFile = None,
    delta: Annotated[list[str] | None, _numbers("Delta at which to print epsilon")] = None,
    epsilon: Annotated[list[str] | None, _numbers("Epsilon at which to print delta")] = None,
    fpr: Annotated[
        list[str] | None, _numbers("False positive rate at which to print the true positive rate")
    ] = None,
    tpr: Annotated[
        list[str] | None, _numbers("True positive rate at which to print the false positive rate")
    ] = None,
    prior: Annotated[
        list[str] | None, _numbers("Prior probability of membership, for accuracy and precision")
    ] = None,
    smallest_fpr: Annotated[list[str] | None, _numbers("Smallest false positive rate of mu")] = None,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the trade-off curve into a file: .svg, .png, .pdf or .html."),
    ] = None,
    json: Json = False,
) -> None:
    """Print epsilon, delta, rates of membership tests, advantage, accuracy and mu of one training run.

    Every number has a lower and an upper end, both proved. Without numbers such as --fpr, the table has the
    usual ones. With --sampling unknown, the ends hold for every sampler that `privsweep compare` lists, and
    the worst one is named.
    """
    from flows.answers.any_sampler import any_profile, candidates, print_profile
    from flows.answers.training_run import one_phase, refuse_options, run_question
    from flows.reports.profile_chart import check_chart, draw_profile
    from privcore.training import run_profile

    one = {
        "sigma": sigma,
        "steps": steps,
        "epochs": epochs,
        "participations": participations,
        "sampling_probability": sampling_probability,
        "redraw": redraw,
        "largest_batch": largest_batch,
    }
    asked = {
        "delta": delta,
        "epsilon": epsilon,
        "false_positive_rate": fpr,
        "true_positive_rate": tpr,
        "member_probability": prior,
        "smallest_false_positive_rate": smallest_fpr,
    }
    numbers: dict[str, list[object]] = {name: [number(each) for each in asked[name] or []] for name in asked}
    if chart is not None:
        check_chart(chart)
    computing: Callable[[], RunProfile]
    if sampling == UNKNOWN and run is None:
        given = one | {"adjacency": adjacency, "delta": "1e-300"}  # the profile is that of every delta
        candidate, notes = candidates(given, examples=examples, batch_size=batch_size)
        note(*notes)
        computing = partial(any_profile, candidate, numbers)
    elif run is None:
        given = one | {"adjacency": adjacency}
        text, relation, notes = one_phase(sampling, given, examples=examples, batch_size=batch_size)
        note(*notes)
        computing = partial(run_profile, text, relation, numbers)
    else:
        given = one | {"batch_size": batch_size}
        refuse_options(name for name, value in given.items() if value is not None)
        size = None if examples is None else number(examples)
        fields = run_question(run, {"adjacency": adjacency, "examples": size})
        text, relation = fields["phases"], fields["adjacency"]
        if "delta" in fields and not numbers["delta"]:
            numbers["delta"] = [fields["delta"]]
        computing = partial(run_profile, text, relation, numbers)
    with waiting("computing the profile"):
        found = computing()
    if chart is not None:
        draw_profile(found, chart)
    print_profile(found, json)
