"""Commands about one training run: the least noise, the most steps, many numbers at once, and pictures."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    words,
)
from flows.cli.training import RUN, Repeats, about_a_run
from flows.printing import as_json, note, say
from flows.spec.words import DEFAULT_STORE

if TYPE_CHECKING:
    from privcore.training import RunProfile


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
    repeats: Repeats = None,
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
    from flows.answers.question import typed
    from flows.answers.training.noise_target import noise_for, print_noise, stuck

    targets = {"epsilon": epsilon, "advantage": advantage, "tpr": tpr, "fpr": fpr}
    searching, notes = noise_for(
        typed({**run, "repeats": repeats}),
        targets,
        precision=precision,
        methods=named_methods(method),
        limit_seconds=limit_seconds,
    )
    note(*notes)
    with (
        reading(store, allow_degraded=allow_degraded),  # refuses a damaged one, and changes no answer
        waiting(f"searching the noise for {next(name for name in targets if targets[name])}"),
    ):
        found = searching()
    note(*stuck(found, precision))
    print_noise(found, json, explain=explain)


@about_a_run()
def solve(
    word: Annotated[
        str,
        typer.Argument(
            metavar="WORD",
            help="Number to solve for: steps, epochs or batch-size.",
            autocompletion=words("steps", "epochs", "batch-size"),
        ),
    ],
    *,
    epsilon: Annotated[
        str,
        typer.Option(
            "--epsilon",
            "--target-epsilon",
            metavar="NUMBER",
            help="Target: the largest epsilon that is allowed.",
        ),
    ],
    limit_seconds: LimitSeconds = 300.0,
    json: Json = False,
    **run: Any,
) -> None:
    """Find the largest steps, epochs or batch size whose epsilon is proved to be at most a target.

    For samplers whose epsilon falls in the steps of an epoch, such as allocation, it finds the least steps.
    Both printed values are proved; a batch size beyond them may suffice again, since its trend is not proved.
    """
    from flows.answers.training.solve import print_solved, solved

    searching, notes = solved(word, run, target=epsilon, limit_seconds=limit_seconds)
    note(*notes)
    with waiting(f"solving for {word}"):
        found = searching()
    say(as_json(found.as_content())) if json else print_solved(found)


def _numbers(what: str) -> Any:
    return typer.Option(
        metavar="NUMBER", help=f"{what}; repeat the option, or write commas, for several numbers."
    )


@about_a_run(*(name for name in RUN if name != "delta"))
def profile(  # noqa: PLR0913  the options of a command are its arguments
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
    candidates: Annotated[
        list[str] | None,
        _numbers("Number of equally likely candidates, for the success of the best guess which was used"),
    ] = None,
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
    from flows.answers.question import typed
    from flows.answers.training.any_sampler import print_profile, profile_of
    from flows.reports.profile_chart import check_chart, draw_profile

    asked = {
        "delta": delta,
        "epsilon": epsilon,
        "false_positive_rate": fpr,
        "true_positive_rate": tpr,
        "member_probability": prior,
        "smallest_false_positive_rate": smallest_fpr,
        "candidates": candidates,
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


@about_a_run()
def plot(  # noqa: PLR0913  the options of a command are its arguments
    *,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS",
            help="Parameter and its values: sigma=1,2,4 or sigma=0.5..4; default: half to twice sigma.",
        ),
    ] = None,
    tradeoff: Annotated[
        bool, typer.Option("--tradeoff", help="Draw the trade-off curve of membership tests instead.")
    ] = False,
    profile_: Annotated[
        bool, typer.Option("--profile", help="Draw the privacy profile instead: delta over epsilon.")
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="File of the picture: .svg, .png or .pdf.")
    ] = Path("plot.svg"),
    width: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="Width of a column of a journal, or of its text: column or text.",
            autocompletion=words("column", "text"),
        ),
    ] = "column",
    dark: Annotated[bool, typer.Option("--dark", help="Draw on a dark ground.")] = False,
    store: StorePath = DEFAULT_STORE,
    limit_seconds: LimitSeconds = 300.0,
    allow_degraded: AllowDegraded = False,
    **run: Any,
) -> None:
    """Draw epsilon of a training run over a parameter, its trade-off curve, or its privacy profile.

    Bands reach from the lower to the upper end, which are proved at the marks. --sampling takes one sampler,
    several with commas between them, or all. Stored points are not computed again.
    """
    from functools import partial

    from flows.answers.held import answered
    from flows.answers.sourced import Sourced, computed
    from flows.answers.training.along import asking, axis_of, words_of
    from flows.figures.samplers import checked_picture, over_picture, tradeoff_picture, write_picture
    from privcore import DomainError, Problem

    if sum((over is not None, tradeoff, profile_)) > 1:
        raise DomainError("Expected one of --over, --tradeoff and --profile.")
    checked_picture(out, width, "`privsweep plot`")
    given = words_of(run)
    look = {"width": width, "ground": "dark" if dark else "light"}
    axis, values = ("", []) if tradeoff or profile_ else axis_of(over or "sigma", given)
    asked = asking(given, axis or "delta")
    with reading(store, allow_degraded=allow_degraded) as opened:

        def answering(problem: Problem, where: str) -> Sourced:
            computing = partial(computed, limit_seconds=limit_seconds)
            with waiting(f"computing {problem.name} at {where}"):
                return answered(opened, problem, computing=computing)

        if tradeoff:
            found, notes = asked(given.get("delta", 1e-5))
            drawn = tradeoff_picture(found, given, profiling=_profiling, **look)
        else:
            drawn, notes = over_picture(asked, axis, values, answering, given, **look)
    note(*notes)
    write_picture(drawn, out)
    say(out)


def _profiling(sampling: str, computing: "Callable[[], RunProfile]") -> "RunProfile":
    """Compute a profile, and say so meanwhile."""
    with waiting(f"computing the trade-off curve of {sampling or 'the run'}"):
        return computing()
