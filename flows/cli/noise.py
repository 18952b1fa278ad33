"""The command noise: the least noise multiplier for a target epsilon, advantage or true positive rate."""

from typing import Annotated, Any

import typer

from flows.cli.options import (
    AllowDegraded,
    Explain,
    Json,
    LimitSeconds,
    MethodNames,
    StorePath,
    named_methods,
    reading,
    waiting,
)
from flows.cli.training import RUN, about_a_run
from flows.printing import note
from flows.spec.words import DEFAULT_STORE


@about_a_run(*(name for name in RUN if name != "sigma"))
def noise(  # noqa: PLR0913  the options of a command are its arguments
    *,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon",
            "--target-epsilon",
            metavar="NUMBER",
            help="Target: the largest epsilon that is allowed.",
        ),
    ] = None,
    advantage: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Another target: the largest advantage of a membership test."),
    ] = None,
    tpr: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Another target: the largest true positive rate of a test, with --fpr."
        ),
    ] = None,
    fpr: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="False positive rate of the test of --tpr.")
    ] = None,
    method: MethodNames = None,
    precision: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="Relative distance to a sigma proved not to suffice."),
    ] = "1e-3",
    store: StorePath = DEFAULT_STORE,
    limit_seconds: LimitSeconds = 300.0,
    explain: Explain = False,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
    **run: Any,
) -> None:
    """Find the least noise multiplier whose epsilon is proved to be at most a target.

    With the same options and this noise multiplier, `privsweep epsilon` prints the same upper end. With
    --sampling unknown, this noise suffices for every sampler that `privsweep compare` lists. With --run, the
    phases keep the ratios of their noise, and the printed sigma is the smallest one.
    """
    from flows.answers.noise import print_noise
    from flows.answers.noise_target import noise_for, stuck
    from flows.answers.question import typed

    targets = {"epsilon": epsilon, "advantage": advantage, "tpr": tpr, "fpr": fpr}
    searching, notes = noise_for(
        typed(run), targets, precision=precision, methods=named_methods(method), limit_seconds=limit_seconds
    )
    note(*notes)
    with (
        reading(store, allow_degraded=allow_degraded),  # refuses a damaged one, and changes no answer
        waiting(f"searching the noise for {next(name for name in targets if targets[name])}"),
    ):
        found = searching()
    note(*stuck(found, precision))
    print_noise(found, json, explain=explain)
