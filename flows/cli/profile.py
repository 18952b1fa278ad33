"""The command profile: many numbers of one training run, with both ends."""

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.options import Json, waiting
from flows.cli.training_options import (
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
    usual ones.
    """
    from flows.answers.run_file import refuse_options, run_question
    from flows.answers.run_phases import one_phase
    from flows.answers.run_profile import print_profile
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
    if run is None:
        text, relation, notes = one_phase(
            sampling, one | {"adjacency": adjacency}, examples=examples, batch_size=batch_size
        )
        note(*notes)
    else:
        given = one | {"batch_size": batch_size}
        refuse_options(name for name, value in given.items() if value is not None)
        size = None if examples is None else number(examples)
        fields = run_question(run, {"adjacency": adjacency, "examples": size})
        text, relation = fields["phases"], fields["adjacency"]
        if "delta" in fields and not numbers["delta"]:
            numbers["delta"] = [fields["delta"]]
    with waiting("computing the profile"):
        found = run_profile(text, relation, numbers)
    if chart is not None:
        draw_profile(found, chart)
    print_profile(found, json)
