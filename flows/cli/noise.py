"""The command noise: the least noise multiplier for a target epsilon."""

from functools import partial
from typing import Annotated

import typer

from flows.answers.parse import UNKNOWN
from flows.cli.options import (
    DEFAULT_STORE,
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
from flows.cli.training import (
    Adjacency,
    BatchSize,
    Delta,
    Epochs,
    Examples,
    LargestBatch,
    Participations,
    Probability,
    Redraw,
    Sampling,
    Steps,
    question,
)
from flows.printing import note
from flows.spec.words import number
from privcore import DomainError
from privcore.params import SIGMA


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
    sampling: Sampling = None,
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

    With the same options and this noise multiplier, `privsweep epsilon` prints the same upper end. With
    --sampling unknown, this noise suffices for every sampler that `privsweep compare` lists.
    """
    from flows.answers.any_sampler import candidates
    from flows.answers.noise import (
        PRECISION,
        TARGET,
        Noise,
        confirmed,
        find_noise,
        find_noise_any,
        print_noise,
    )
    from flows.answers.sourced import asked_until_tight

    given = {
        "steps": steps,
        "delta": delta,
        "participations": participations,
        "epochs": epochs,
        "adjacency": adjacency,
        "sampling_probability": sampling_probability,
        "redraw": redraw,
        "largest_batch": largest_batch,
    }
    target, gap, methods = (
        TARGET.check(number(epsilon)),
        PRECISION.check(number(precision)),
        named_methods(method),
    )
    again = partial(asked_until_tight, methods=methods, limit_seconds=limit_seconds)
    if sampling == UNKNOWN:
        if methods:
            raise DomainError(f"Expected no --method with --sampling {UNKNOWN}.")
        asked, notes = candidates(given | {"sigma": "1"}, examples=examples, batch_size=batch_size)
        note(*notes)

        def searched() -> Noise:
            return find_noise_any(asked, target, again, precision=gap, limit_seconds=limit_seconds)
    else:
        kind, fields = question(sampling, examples, batch_size, **given)

        def searched() -> Noise:
            least = find_noise(
                kind, fields, target, precision=gap, methods=methods, limit_seconds=limit_seconds
            )
            return confirmed(least, again, precision=gap, largest=SIGMA.upper)

    with (
        reading(store, allow_degraded=allow_degraded),  # refuses a damaged one, and changes no answer
        waiting(f"searching the noise for epsilon {epsilon}"),
    ):
        found = searched()
    if sampling != UNKNOWN and found.least is None and found.short is not None and found.gap > gap:
        note("The methods prove nothing between the two values of sigma, and more time does not help.")
    print_noise(found, json, explain=explain)
