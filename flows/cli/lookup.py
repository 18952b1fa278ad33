"""The command lookup: stored bounds of a problem, with --compute intersected with a computed bracket."""

from functools import partial
from typing import Annotated

import typer

from flows.cli.options import (
    AllowDegraded,
    Explain,
    Json,
    Keep,
    LimitSeconds,
    StorePath,
    finish,
    problems_and_sweeps,
    reading,
    waiting,
)
from flows.spec.words import DEFAULT_STORE, fields_from
from privcore import DomainError


def lookup(  # noqa: PLR0913  the options of a command are its arguments
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a problem, followed by its fields, or of a sweep.",
            autocompletion=problems_and_sweeps,
        ),
    ],
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE", help="Fields of the problem, such as sigma=1."),
    ] = None,
    *,
    store: StorePath = DEFAULT_STORE,
    compute: Annotated[
        bool,
        typer.Option(
            "--compute", help="Compute now if nothing is stored, or the stored bracket is wider than 5 %."
        ),
    ] = False,
    keep: Keep = False,
    limit_seconds: LimitSeconds = 300.0,
    explain: Explain = False,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Print the stored bounds that cover a problem, or the table of a sweep. Computes only with --compute.

    With --compute, the answer is the intersection of the stored and the computed bracket.
    """
    from flows.answers.explain import explained
    from flows.answers.held import any_held, held, tightened, width_aside
    from flows.answers.held import keep as kept
    from flows.answers.question import question
    from flows.answers.show import intervals, print_answer
    from flows.answers.sourced import computed
    from flows.answers.sweep_table import show_sweep, sweep_named
    from flows.answers.uncovered import uncovered

    if keep and not compute:
        raise DomainError("Expected --compute with --keep.")
    with reading(store, allow_degraded=allow_degraded) as opened:
        named = None if store == DEFAULT_STORE else opened.name
        if not fields and (sweep := sweep_named(name, opened)) is not None:
            if explain or compute:
                option = "--explain" if explain else "--compute"
                raise DomainError(f"Expected a problem with its fields for {option}, got a sweep.")
            return show_sweep(sweep, opened, named, json)
        problem = question({**fields_from(fields or []), "problem": name}).problem
        if compute:
            with waiting(f"computing {problem.name}"):
                within = partial(computed, limit_seconds=limit_seconds)
                answer = tightened(problem, any_held(opened, problem), computing=within)
        elif (found := held(opened, problem, any_width=True)) is None:
            raise uncovered(opened, problem)
        else:
            answer = found
        explanation = explained(answer, opened) if explain and answer.ok else None
        asides = [width_aside(answer, named)] if answer.ok else []
        if answer.ok and (doubtful := intervals(opened, problem, named)) is not None:
            asides.append(doubtful.aside())
        print_answer(answer, json, explanation, asides)
        if keep:
            kept(opened, [answer])
    return finish(answer)
