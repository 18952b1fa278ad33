"""Commands about one training run: epsilon, noise and steps."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.answers.parse import large_delta, training_question
from flows.answers.training_run import TrainingRun, epsilons, print_roundings
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
    waiting,
)
from flows.cli.store import stored_answer
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
    Steps,
    StoredOnly,
)
from flows.spec.words import number
from privcore import DomainError, Problem, find_problem
from privcore.params import SIGMA

if TYPE_CHECKING:
    from flows.answers.ask import Asked
    from flows.answers.noise_confirmed import Again
    from storage import Store


def epsilon(  # noqa: PLR0913  the options of a command are its arguments
    *,
    sigma: Sigma = None,
    steps: Steps = None,
    delta: Delta = None,
    participations: Participations = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    sampling: Sampling = "allocation",
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
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Bound epsilon of one training run from below and from above.

    The answer comes from the store if the store has this problem, or bounds within 1 % by monotonicity;
    otherwise it is computed now.
    """
    from flows.answers.explain import explained
    from flows.answers.show import print_answer
    from flows.answers.sourced import computed, from_store
    from flows.cli.uncovered import uncovered

    kind, fields = _question(
        sampling,
        examples,
        batch_size,
        run=run,
        sigma=sigma,
        steps=steps,
        delta=delta,
        participations=participations,
        epochs=epochs,
        adjacency=adjacency,
        sampling_probability=sampling_probability,
        redraw=redraw,
        largest_batch=largest_batch,
    )
    problem = kind.asked(fields)
    if not method or stored_only:
        with reading(store, allow_degraded=allow_degraded) as opened:
            if not method and (found := stored_answer(opened, problem, any_width=stored_only)):
                answer = from_store(problem, found)
                return print_answer(answer, json, explained(answer, opened) if explain else None)
            if stored_only:
                raise uncovered(opened, problem)
    with waiting(f"computing {problem.name}"):
        answer = computed(problem, named_methods(method), limit_seconds=limit_seconds)
    print_answer(answer, json, explained(answer) if explain and answer.ok else None)
    return finish(answer)


def noise(  # noqa: PLR0913
    *,
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="Target: the largest epsilon that is allowed.")
    ],
    steps: Steps = None,
    delta: Delta = None,
    participations: Participations = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    sampling: Sampling = "allocation",
    sampling_probability: Probability = None,
    redraw: Redraw = None,
    largest_batch: LargestBatch = None,
    examples: Examples = None,
    batch_size: BatchSize = None,
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
) -> None:
    """Find the least noise multiplier whose epsilon is proved to be at most a target.

    With the same options and this noise multiplier, `privsweep epsilon` prints an upper end of at most the
    target.
    """
    from flows.answers.noise import PRECISION, TARGET, find_noise
    from flows.answers.noise_confirmed import asked_again, confirmed
    from flows.answers.noise_output import print_noise

    kind, fields = _question(
        sampling,
        examples,
        batch_size,
        steps=steps,
        delta=delta,
        participations=participations,
        epochs=epochs,
        adjacency=adjacency,
        sampling_probability=sampling_probability,
        redraw=redraw,
        largest_batch=largest_batch,
    )
    target, gap, methods = (
        TARGET.check(number(epsilon)),
        PRECISION.check(number(precision)),
        named_methods(method),
    )
    with (
        reading(store, allow_degraded=allow_degraded) as opened,
        waiting(f"searching the noise for epsilon {epsilon}"),
    ):
        least = find_noise(kind, fields, target, precision=gap, methods=methods, limit_seconds=limit_seconds)
        again = asked_again(target, methods, limit_seconds=limit_seconds)
        found = confirmed(
            least, again if methods else _or_stored(opened, again), precision=gap, largest=SIGMA.upper
        )
    if found.least is None and found.short is not None and found.gap > gap:
        tell(["The methods prove nothing between the two values of sigma, and more time does not help."])
    print_noise(found, json, explain=explain)


def _or_stored(store: "Store", again: "Again") -> "Again":
    """Return a function that answers as another one, or as the store if it has a larger upper end."""

    def answer(problem: Problem) -> "Asked":
        asked, found = again(problem), stored_answer(store, problem, any_width=False)
        if found is None or not asked.ok or found.upper <= asked.upper:
            return asked
        return replace(asked, upper=found.upper, upper_by=found.upper_method or "")

    return answer


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
    tell(large_delta(noise.get("delta"), run.examples))
    with waiting("computing epsilon both ways"):
        asked = epsilons(run, noise, limit_seconds) if noise else []
    print_roundings(run, asked, json)
    for one in asked:
        finish(one)


def _question(
    sampling: str,
    examples: str | None,
    batch_size: str | None,
    run: str | None = None,
    **options: str | None,
) -> tuple[type[Problem], dict[str, Any]]:
    """Build the problem from the options and print its notes to standard error."""
    if run is not None:
        return _phases(run, options | {"examples": examples, "batch_size": batch_size})
    kind, fields, notes = training_question(sampling, options, examples=examples, batch_size=batch_size)
    tell(notes)
    return kind, fields


def _phases(run: str, options: dict[str, str | None]) -> tuple[type[Problem], dict[str, Any]]:
    """Build the problem about a run of phases."""
    from flows.answers.run_file import run_question

    given = {name: number(text) for name, text in options.items() if text is not None}
    for name in given:
        if name not in ("adjacency", "delta", "examples"):
            option = name.replace("_", "-")
            raise DomainError(f"Expected {name} in the phases of the run, got --{option} with --run.")
    return find_problem("run-epsilon"), run_question(run, given)


def tell(notes: list[str]) -> None:
    """Print notes to standard error."""
    for note in notes:
        print(f"privsweep: {note}", file=sys.stderr)
