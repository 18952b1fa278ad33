"""The command solve: the largest steps, epochs or batch size for a target epsilon."""

from typing import Annotated, Any

import typer

from flows.cli.options import Json, LimitSeconds, waiting, words
from flows.cli.training import about_a_run
from flows.printing import as_json, note, say


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
    from flows.answers.solve import print_solved, solved

    searching, notes = solved(word, run, target=epsilon, limit_seconds=limit_seconds)
    note(*notes)
    with waiting(f"solving for {word}"):
        found = searching()
    say(as_json(found.as_content())) if json else print_solved(found)
