"""Commands about one training run: epsilon and steps."""

from typing import Annotated, Any

import typer

from flows.answers.parse import UNKNOWN, large_delta, training_question
from flows.answers.training_run import epsilons, print_roundings
from flows.cli.options import (
    DEFAULT_STORE,
    AllowDegraded,
    Explain,
    Json,
    LimitSeconds,
    MethodNames,
    StorePath,
    finish,
    named_methods,
    reading,
)
from flows.cli.training_options import (
    Adjacency,
    BatchSize,
    Delta,
    Epochs,
    Examples,
    LargestBatch,
    Participations,
    Probability,
    Redraw,
    RunFile,
    Sampling,
    Sigma,
    StatementFormat,
    Steps,
    StoredOnly,
)
from flows.cli.waiting import waiting
from flows.printing import note, say
from flows.spec.words import number
from privcore import DomainError, Problem, find_problem, methods_for
from privcore.training import TrainingRun


def epsilon(  # noqa: PLR0913  the options of a command are its arguments
    *,
    sigma: Sigma = None,
    steps: Steps = None,
    delta: Delta = None,
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
    method: MethodNames = None,
    store: StorePath = DEFAULT_STORE,
    stored_only: StoredOnly = False,
    limit_seconds: LimitSeconds = 300.0,
    explain: Explain = False,
    statement: StatementFormat = None,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Bound epsilon of one training run from below and from above.

    The answer comes from the store if the store has exactly the computed bracket; otherwise it is computed
    now. With --sampling unknown, the bracket holds for every sampler that `privsweep compare` lists, and the
    worst one is named.
    """
    from flows.answers.explain import explained
    from flows.answers.held import held
    from flows.answers.show import Aside, print_answer
    from flows.answers.sourced import computed
    from flows.answers.statement import checked_format
    from flows.answers.statement import statement as statement_about
    from flows.cli.uncovered import uncovered

    statement = None if statement is None else checked_format(statement)
    given = {
        "sigma": sigma,
        "steps": steps,
        "delta": delta,
        "participations": participations,
        "epochs": epochs,
        "adjacency": adjacency,
        "sampling_probability": sampling_probability,
        "redraw": redraw,
        "largest_batch": largest_batch,
    }
    if sampling == UNKNOWN and run is None:
        from flows.answers.any_sampler import any_sampler, candidates, print_any
        from flows.cli.compare import answered_rows

        if method or statement:
            raise DomainError(f"Expected no --method and no --statement with --sampling {UNKNOWN}.")
        asked, notes = candidates(given, examples=examples, batch_size=batch_size)
        with reading(store, allow_degraded=allow_degraded) as opened:
            rows = answered_rows(asked, opened, stored_only=stored_only, limit_seconds=limit_seconds)
            reasons = (lambda answer: explained(answer, opened)) if explain else None
            return print_any(any_sampler(rows), json, reasons, notes)
    kind, fields = question(sampling, examples, batch_size, run=run, **given)
    problem = kind.asked(fields)
    methods, asides = named_methods(method), list[Aside]()
    with reading(store, allow_degraded=allow_degraded) as opened:
        if not method and (found := held(opened, problem, any_width=stored_only)):
            answer = found
        elif stored_only:
            raise uncovered(opened, problem)
        else:
            with waiting(f"computing {problem.name}"):
                answer = computed(problem, methods, limit_seconds=limit_seconds)
        if statement is not None and answer.ok:
            made = statement_about(answer, limit_seconds=0.0 if stored_only else limit_seconds)
            if not json:
                return say(made.text(statement))
            asides.append(made.aside(statement))
        print_answer(answer, json, explained(answer, opened) if explain and answer.ok else None, asides)
    return finish(answer)


def steps_of(  # noqa: PLR0913
    *,
    examples: Annotated[str, typer.Option(metavar="NUMBER", help="Number of examples in the training set.")],
    batch_size: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="Average number of examples in a step, at one participation."),
    ],
    epochs: Epochs = None,
    participations: Participations = None,
    sigma: Sigma = None,
    delta: Delta = None,
    adjacency: Adjacency = None,
    limit_seconds: LimitSeconds = 300.0,
    json: Json = False,
) -> None:
    """Compute the steps of an epoch from examples and batch size, and show which rounding is safe.

    With --sigma and --delta, also print epsilon for both roundings.
    """
    given = {"epochs": epochs, "participations": participations}
    numbers = {name: number(text) for name, text in given.items() if text is not None}
    run = TrainingRun.checked({"examples": number(examples), "batch_size": number(batch_size)} | numbers)
    given = {"sigma": sigma, "delta": delta, "adjacency": adjacency}
    noise = {name: number(text) for name, text in given.items() if text is not None}
    note(*large_delta(noise.get("delta"), run.examples))
    with waiting("computing epsilon both ways"):
        asked = epsilons(run, noise, limit_seconds) if noise else []
    print_roundings(run, asked, json)
    for one in asked:
        finish(one)


def question(
    sampling: str | None,
    examples: str | None,
    batch_size: str | None,
    run: str | None = None,
    **options: str | None,
) -> tuple[type[Problem], dict[str, Any]]:
    """Build the problem from the options and print its notes to standard error."""
    if run is not None:
        return _phases(run, options | {"examples": examples, "batch_size": batch_size})
    kind, fields, notes = training_question(sampling, options, examples=examples, batch_size=batch_size)
    note(*notes)
    return kind, fields


def _phases(run: str, options: dict[str, str | None]) -> tuple[type[Problem], dict[str, Any]]:
    """Build the problem about a run of phases."""
    from flows.answers.training_run import refuse_options, run_question

    given = {name: number(text) for name, text in options.items() if text is not None}
    refuse_options(given)
    kind, fields = find_problem("run-epsilon"), run_question(run, given)
    reasons = methods_for(kind.from_fields(fields)).values()
    if None not in reasons:
        raise DomainError(" ".join(dict.fromkeys(filter(None, reasons))))
    return kind, fields
