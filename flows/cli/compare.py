"""The command compare: one training run under four schemes that choose the examples of a step."""

from flows.answers.ask import UncoveredError
from flows.cli.options import (
    DEFAULT_STORE,
    AllowDegraded,
    Explain,
    Json,
    LimitSeconds,
    StorePath,
    finish_all,
    reading,
    waiting,
)
from flows.cli.store import stored_answer
from flows.cli.training import tell
from flows.cli.training_options import (
    Adjacency,
    BatchSize,
    Delta,
    Epochs,
    Examples,
    Participations,
    Sigma,
    Steps,
    StoredOnly,
)
from privcore import Problem


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
    """Bound epsilon of one training run for allocation, Poisson sampling, shuffling and no amplification.

    Each row comes from the store if the store has this problem, or bounds within 1 % by monotonicity;
    otherwise it is computed now.
    """
    from flows.answers.compare import print_rows, problems, rows
    from flows.answers.explain import explained
    from flows.answers.sourced import Sourced, computed, from_store

    def answering(problem: Problem) -> Sourced | None:
        if found := stored_answer(opened, problem, any_width=stored_only):
            return from_store(problem, found)
        if stored_only:
            return None
        with waiting(f"computing {problem.name}"):
            return computed(problem, limit_seconds=limit_seconds)

    given = {
        "sigma": sigma,
        "steps": steps,
        "delta": delta,
        "participations": participations,
        "epochs": epochs,
        "adjacency": adjacency,
    }
    asked, notes = problems(given, examples=examples, batch_size=batch_size)
    tell(notes)
    with reading(store, allow_degraded=allow_degraded) as opened:
        found = list(rows(asked, answering))
        if stored_only and all(row.bracket is None for row in found):
            raise UncoveredError(f"The store {opened.name} has no bound for any of the four rows.")
        print_rows(found, json, (lambda answer: explained(answer, opened)) if explain else None)
    finish_all(row.status for row in found if row.status not in {"not_applicable", "missing"})
