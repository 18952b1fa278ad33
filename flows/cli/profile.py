"""The command profile: many numbers of one training run, with both ends."""

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.options import Json, waiting
from flows.cli.training import RUN, about_a_run
from flows.printing import note


def _numbers(what: str) -> Any:
    return typer.Option(
        metavar="NUMBER", help=f"{what}; repeat the option, or write commas, for several numbers."
    )


@about_a_run(*(name for name in RUN if name != "delta"))
def profile(
    *,
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
    **run: Any,
) -> None:
    """Print epsilon, delta, rates of membership tests, advantage, accuracy and mu of one training run.

    Every number has a lower and an upper end, both proved. Without numbers such as --fpr, the table has the
    usual ones. With --sampling unknown, the ends hold for every sampler that `privsweep compare` lists, and
    the worst one is named.
    """
    from flows.answers.any_sampler import print_profile, profile_of
    from flows.answers.question import typed
    from flows.reports.profile_chart import check_chart, draw_profile

    asked = {
        "delta": delta,
        "epsilon": epsilon,
        "false_positive_rate": fpr,
        "true_positive_rate": tpr,
        "member_probability": prior,
        "smallest_false_positive_rate": smallest_fpr,
    }
    numbers = {
        name: [each for word in words or [] for each in word.split(",")] for name, words in asked.items()
    }
    if chart is not None:
        check_chart(chart)
    computing, notes = profile_of(typed(run), numbers)
    note(*notes)
    with waiting("computing the profile"):
        found = computing()
    if chart is not None:
        draw_profile(found, chart)
    print_profile(found, json)
