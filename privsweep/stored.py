"""Answers of a store, or computed."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from flows.answers import held
from flows.answers.ask import UncoveredError
from flows.answers.compare import SchemeRow
from flows.answers.sourced import Sourced, computed
from privcore import Problem
from storage import Store, open_store

DEFAULT_STORE = "store"


def opened_store(store: str | Path) -> Store:
    """Open a store for answers; only the default one may be missing: then the shipped table answers.

    Raises:
        StoreError: A store of another name does not exist, or is not a store.
    """
    return open_store(store, missing_ok=Path(store) == Path(DEFAULT_STORE))


def answered_rows(
    asked: Mapping[str, Problem], store: str | Path, compute: bool, limit_seconds: float
) -> list[SchemeRow]:
    """Return the rows about the problems of one run, stored or computed."""
    with opened_store(store) as opened:
        within = partial(computed, limit_seconds=limit_seconds)
        return held.answered_rows(opened, asked, within if compute else None)


def answered(store: Store, problem: Problem, compute: bool, limit_seconds: float) -> Sourced:
    """Return the bracket that is computed, or any stored one if nothing may be computed."""
    if compute:
        return held.answered(store, problem, computing=partial(computed, limit_seconds=limit_seconds))
    if found := held.held(store, problem, any_width=True):
        return found
    raise UncoveredError(f"The store {store.name} has no bound for {problem.name}, and compute is False.")
