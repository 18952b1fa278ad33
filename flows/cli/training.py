"""Commands about one training run, with their options: epsilon, steps and compare."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.answers.ask import UncoveredError
from flows.answers.parse import LOADERS, UNKNOWN, large_delta, training_question
from flows.answers.training_run import epsilons, print_roundings
from flows.cli import options
from flows.cli.options import (
    DEFAULT_STORE,
    AllowDegraded,
    Explain,
    Json,
    LimitSeconds,
    MethodNames,
    StorePath,
    finish,
    finish_all,
    named_methods,
    reading,
    waiting,
)
from flows.printing import note, say
from flows.spec.words import number
from privcore import DomainError, Problem, find_problem, methods_for
from privcore.params import DELTA_MEANING
from privcore.training import TrainingRun

if TYPE_CHECKING:
    from flows.answers.held import Computing

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
        autocompletion=options.words("add-remove", "zero-out", "replace-one", "add", "remove"),
    ),
]
Sampling = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help=f"Loader of the training code: {', '.join(LOADERS)}, or unknown for all of them.",
        autocompletion=options.words(*LOADERS, UNKNOWN),
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
        autocompletion=options.words("once", "each-epoch"),
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
        autocompletion=options.words("text", "markdown"),
    ),
]


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
    from flows.answers.held import answered_rows, held
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

        if method or statement:
            raise DomainError(f"Expected no --method and no --statement with --sampling {UNKNOWN}.")
        asked, notes = candidates(given, examples=examples, batch_size=batch_size)
        with reading(store, allow_degraded=allow_degraded) as opened:
            rows = answered_rows(opened, asked, None if stored_only else _computing(limit_seconds))
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


def compare(  # noqa: PLR0913  the options of a command are its arguments
    *,
    sigma: Sigma = None,
    steps: Steps = None,
    delta: Delta = None,
    participations: Participations = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    examples: Examples = None,
    batch_size: BatchSize = None,
    store: StorePath = DEFAULT_STORE,
    stored_only: StoredOnly = False,
    limit_seconds: LimitSeconds = 300.0,
    explain: Explain = False,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Bound epsilon of one training run for every sampling that its options describe.

    Each row comes from the store if the store has exactly the computed bracket; otherwise it is computed now.
    """
    from flows.answers.compare import problems
    from flows.answers.compare_output import print_rows
    from flows.answers.explain import explained
    from flows.answers.held import answered_rows

    given = {
        "sigma": sigma,
        "steps": steps,
        "delta": delta,
        "participations": participations,
        "epochs": epochs,
        "adjacency": adjacency,
    }
    asked, notes = problems(given, examples=examples, batch_size=batch_size)
    with reading(store, allow_degraded=allow_degraded) as opened:
        found = answered_rows(opened, asked, None if stored_only else _computing(limit_seconds))
        if stored_only and all(row.bracket is None for row in found):
            raise UncoveredError(f"The store {opened.name} has no bound for any of the four rows.")
        print_rows(found, json, (lambda answer: explained(answer, opened)) if explain else None, notes)
    finish_all(row.status for row in found if row.status not in {"not_applicable", "missing"})


def _computing(limit_seconds: float) -> "Computing":
    """Return the function that computes an answer, and says so while it does."""
    from flows.answers.sourced import Sourced, computed

    def computing(problem: Problem) -> Sourced:
        with waiting(f"computing {problem.name}"):
            return computed(problem, limit_seconds=limit_seconds)

    return computing
