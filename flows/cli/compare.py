"""The command compare: one training run under the schemes that choose the examples of a step."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

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
)
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
from flows.cli.waiting import waiting
from privcore import Problem

if TYPE_CHECKING:
    from flows.answers.compare import SchemeRow
    from storage import Store


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
    from flows.answers.compare import print_rows, problems
    from flows.answers.explain import explained

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
        found = answered_rows(asked, opened, stored_only=stored_only, limit_seconds=limit_seconds)
        if stored_only and all(row.bracket is None for row in found):
            raise UncoveredError(f"The store {opened.name} has no bound for any of the four rows.")
        print_rows(found, json, (lambda answer: explained(answer, opened)) if explain else None, notes)
    finish_all(row.status for row in found if row.status not in {"not_applicable", "missing"})


def answered_rows(
    asked: Mapping[str, Problem], store: "Store", *, stored_only: bool, limit_seconds: float
) -> "list[SchemeRow]":
    """Return the rows about the problems of one run, stored or computed.

    Args:
        asked: The problems, by sampling.
        store: Opened with `missing_ok`.
        stored_only: Whether any stored bound is the answer, and nothing is computed.
        limit_seconds: As in `ask`.
    """
    from flows.answers.compare import nearest_rate, rows
    from flows.answers.held import answered, stored_bounds
    from flows.answers.sourced import Sourced, computed

    def questions(problem: Problem) -> list[Problem]:
        """Return a problem, and for Poisson sampling also the same with the rate rounded to the nearest."""
        return [problem, *nearest_rate(asked)] if problem is asked["poisson"] else [problem]

    def answering(problem: Problem) -> Sourced | None:
        if stored_only:
            return stored_bounds(store, questions(problem))
        with waiting(f"computing {problem.name}"):
            return answered(store, problem, computing=partial(computed, limit_seconds=limit_seconds))

    return list(rows(asked, answering))
