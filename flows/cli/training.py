"""Commands about one training run, with their options: epsilon, steps and compare."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from flows.answers.ask import UncoveredError
from flows.answers.parse import LOADERS, UNKNOWN
from flows.answers.question import COMPARED, question, spread, typed
from flows.answers.training.training_run import print_roundings, roundings_of, with_one_less
from flows.cli import options
from flows.cli.options import (
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
from flows.printing import exactly, note, rounded_down, rounded_up, say, show
from flows.spec.words import DEFAULT_STORE
from privcore import DomainError, Method, Problem
from privcore.params import DELTA_MEANING

if TYPE_CHECKING:
    from flows.answers.held import Computing

Command = TypeVar("Command", bound=Callable[..., None])

RUN: dict[str, Any] = {
    "sigma": Annotated[
        str | None,
        typer.Option(
            "--sigma",
            "--noise-multiplier",
            metavar="NUMBER",
            help="Standard deviation of the noise of a step divided by the clipping norm, also for "
            "replace-one.",
        ),
    ],
    "steps": Annotated[str | None, typer.Option(metavar="NUMBER", help="Number of steps in one epoch.")],
    "delta": Annotated[
        str | None,
        typer.Option("--delta", "--target-delta", metavar="NUMBER", help=f"{DELTA_MEANING}; in (0, 1)."),
    ],
    "participations": Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Number of steps of an epoch that use an example; default: 1."),
    ],
    "epochs": Annotated[str | None, typer.Option(metavar="NUMBER", help="Number of epochs; default: 1.")],
    "adjacency": Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Neighbouring relation: add-remove, zero-out or replace-one, or a direction: add or remove. "
            "Batches of random size have add-remove by default; for a fixed size it is required, or zero-out "
            "in comparisons.",
            autocompletion=options.words("add-remove", "zero-out", "replace-one", "add", "remove"),
        ),
    ],
    "sampling": Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help=f"Loader of the training code: {', '.join(LOADERS)}, or unknown for all of them.",
            autocompletion=options.words(*LOADERS, UNKNOWN),
        ),
    ],
    "sampling_probability": Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Probability that a step uses an example; also --sample-rate."),
    ],
    "redraw": Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Steps of an example over several epochs: drawn once, or in each-epoch.",
            autocompletion=options.words("once", "each-epoch"),
        ),
    ],
    "largest_batch": Annotated[
        str | None,
        typer.Option(
            "--largest-batch", metavar="NUMBER", help="Size to which truncated-poisson cuts larger batches."
        ),
    ],
    "examples": Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Size of the training set; a delta too large for it prints a note."
        ),
    ],
    "batch_size": Annotated[
        str | None,
        typer.Option(
            "--batch-size", metavar="NUMBER", help="Average batch size; with --examples, replaces --steps."
        ),
    ],
    "drop_last": Annotated[
        bool,
        typer.Option(
            "--drop-last", help="The last batch of an epoch is dropped unless it is full: fewer steps."
        ),
    ],
    "keep_last": Annotated[
        bool,
        typer.Option(
            "--keep-last", help="The last batch of an epoch is used even if it is not full; the default."
        ),
    ],
    "group": Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Examples of one owner, who is protected with all of them; default: 1."
        ),
    ],
    "workers": Annotated[str | None, typer.Option(metavar="NUMBER", hidden=True)],
    "max_grad_norm": Annotated[str | None, typer.Option(metavar="NUMBER", hidden=True)],
    "run": Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="FILE",
            help="TOML file of a run of several phases, or its phases in one line of text.",
        ),
    ],
}
"""Options about a training run, in the order of the help; a command takes them as `**run`."""


def about_a_run(*names: str) -> Callable[[Command], Command]:
    """Return the decorator that replaces the argument `**run` of a command by the options about a run.

    Args:
        names: Names of the options that the command has; without names, all.
    """

    def declared(command: Command) -> Command:
        chosen = {name: option for name, option in RUN.items() if name in (names or RUN)}
        signature = inspect.signature(command)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if get_args(option)[0] is bool else None,
                annotation=option,
            )
            for name, option in chosen.items()
        ]
        first = [each for each in own if each.default is each.empty]
        rest = [each for each in own if each.default is not each.empty]
        command.__signature__ = signature.replace(parameters=[*first, *added, *rest])  # type: ignore[attr-defined]
        command.__annotations__.pop("run")
        command.__annotations__ |= chosen
        return command

    return declared


StoredOnly = Annotated[
    bool, typer.Option("--stored-only", help="Never compute; exit with 3 if the store has no answer.")
]
Repeats = Annotated[
    str | None,
    typer.Option(
        metavar="LAW",
        help="The best of several runs is released, and how many are made: fixed(10), geometric(10) and "
        "poisson(10) by their means, binomial(20,0.5), or negative-binomial(0,0.01).",
        autocompletion=options.words("fixed(10)", "geometric(10)", "poisson(10)"),
    ),
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


@about_a_run()
def epsilon(  # noqa: PLR0913  the options of a command are its arguments
    *,
    repeats: Repeats = None,
    method: MethodNames = None,
    store: StorePath = DEFAULT_STORE,
    stored_only: StoredOnly = False,
    limit_seconds: LimitSeconds = 300.0,
    explain: Explain = False,
    statement: StatementFormat = None,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
    **run: Any,
) -> None:
    """Bound epsilon of one training run from below and from above.

    The answer comes from the store if the store has exactly the computed bracket; otherwise it is computed
    now. With --sampling unknown, the bracket holds for every sampler that `privsweep compare` lists, and the
    worst one is named. Numbers with commas between them, as in --sigma 0.8,1,1.2, give a table. With
    --repeats, epsilon is that of tuning: only the best of several runs is released.
    """
    from flows.answers.explain import explained
    from flows.answers.held import answer_to, answered_rows
    from flows.answers.show import Aside, print_answer
    from flows.answers.training.statement import checked_format
    from flows.answers.training.statement import statement as statement_about

    statement = None if statement is None else checked_format(statement)
    several = spread({**run, "repeats": repeats})
    if len(several) > 1:
        if explain or statement or any(words.get("sampling") == UNKNOWN for words in several):
            raise DomainError(
                f"Expected one run with --explain, --statement or --sampling {UNKNOWN}, got {len(several)}."
            )
        return _table(several, named_methods(method), store, stored_only, limit_seconds, json, allow_degraded)
    (words,) = several
    if words.get("sampling") == UNKNOWN and "run" not in words:
        from flows.answers.training.any_sampler import any_sampler, candidates, print_any

        if method or statement:
            raise DomainError(f"Expected no --method and no --statement with --sampling {UNKNOWN}.")
        asked, notes = candidates(words)
        with reading(store, allow_degraded=allow_degraded) as opened:
            rows = answered_rows(opened, asked, None if stored_only else _computing(limit_seconds))
            reasons = (lambda answer: explained(answer, opened)) if explain else None
            return print_any(any_sampler(rows), json, reasons, notes)
    found = question(words)
    note(*found.notes)
    problem, methods, asides = found.problem, named_methods(method), list[Aside]()
    with reading(store, allow_degraded=allow_degraded) as opened:
        computing = None if stored_only else _computing(limit_seconds, methods)
        answer = answer_to(opened, problem, computing, by_methods=bool(methods))
        if statement is not None and answer.ok:
            made = statement_about(answer, limit_seconds=0.0 if stored_only else limit_seconds)
            if not json:
                return say(made.text(statement))
            asides.append(made.aside(statement))
        print_answer(answer, json, explained(answer, opened) if explain and answer.ok else None, asides)
    if computing is not None and "run" not in words:
        note(*with_one_less(words, computing))
    return finish(answer)


def _table(
    several: Sequence[Mapping[str, Any]],
    methods: Sequence[Method] | None,
    store: Path,
    stored_only: bool,
    limit_seconds: float,
    json: bool,
    allow_degraded: bool,
) -> None:
    """Print the brackets of several runs, in lines of JSON or as a table of the words that differ."""
    from flows.answers.held import answer_to
    from flows.answers.show import methods_text, print_answer

    asked = [question(words) for words in several]
    note(*dict.fromkeys(sentence for each in asked for sentence in each.notes))
    with reading(store, allow_degraded=allow_degraded) as opened:
        computing = None if stored_only else _computing(limit_seconds, methods)
        answers = [answer_to(opened, each.problem, computing, by_methods=bool(methods)) for each in asked]
    if json:
        for answer in answers:
            print_answer(answer, json)
    else:
        names = [name for name in several[0] if len({str(words[name]) for words in several}) > 1]
        lines = [
            [
                *(exactly(words[name]) for name in names),
                *((rounded_down(one.bracket.lower), rounded_up(one.bracket.upper)) if one.ok else ("", "")),
                methods_text(one.bracket) if one.ok else one.detail,
            ]
            for words, one in zip(several, answers, strict=True)
        ]
        show([*names, "epsilon lower", "epsilon upper", "method"], lines)
    finish_all(answer.status for answer in answers)


@about_a_run("epochs", "participations", "sigma", "delta", "adjacency")
def steps_of(
    *,
    examples: Annotated[str, typer.Option(metavar="NUMBER", help="Number of examples in the training set.")],
    batch_size: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="Average number of examples in a step, at one participation."),
    ],
    limit_seconds: LimitSeconds = 300.0,
    json: Json = False,
    **run: Any,
) -> None:
    """Compute the steps of an epoch from examples and batch size, and show which rounding is safe.

    With --sigma and --delta, also print epsilon for both roundings.
    """
    words = {"examples": examples, "batch_size": batch_size, **run}
    sizes, computing, notes = roundings_of(words, limit_seconds=limit_seconds)
    note(*notes)
    with waiting("computing epsilon both ways"):
        asked = computing()
    print_roundings(sizes, asked, json)
    for one in asked:
        finish(one)


@about_a_run(*COMPARED)
def compare(
    *,
    store: StorePath = DEFAULT_STORE,
    stored_only: StoredOnly = False,
    limit_seconds: LimitSeconds = 300.0,
    explain: Explain = False,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
    **run: Any,
) -> None:
    """Bound epsilon of one training run for every sampling that its options describe.

    Each row comes from the store if the store has exactly the computed bracket; otherwise it is computed now.
    """
    from flows.answers.explain import explained
    from flows.answers.held import answered_rows
    from flows.answers.training.compare import problems
    from flows.answers.training.compare_output import print_rows

    asked, notes = problems(typed(run))
    with reading(store, allow_degraded=allow_degraded) as opened:
        found = answered_rows(opened, asked, None if stored_only else _computing(limit_seconds))
        if stored_only and all(row.bracket is None for row in found):
            raise UncoveredError(f"The store {opened.name} has no bound for any of the four rows.")
        print_rows(found, json, (lambda answer: explained(answer, opened)) if explain else None, notes)
    finish_all(row.status for row in found if row.status not in {"not_applicable", "missing"})


def _computing(limit_seconds: float, methods: Sequence[Method] | None = None) -> "Computing":
    """Return the function that computes an answer, and says so while it does."""
    from flows.answers.sourced import Sourced, computed

    def computing(problem: Problem) -> Sourced:
        with waiting(f"computing {problem.name}"):
            return computed(problem, methods, limit_seconds=limit_seconds)

    return computing
