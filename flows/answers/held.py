"""Answers of the user's store, or of the shipped lookup table if the store has nothing better.

The same question has the same answer everywhere: a store only saves the time of computing it.
"""

from collections.abc import Callable, Sequence

from flows.answers.ask import is_tight
from flows.answers.origins import stored_origins
from flows.answers.sourced import Sourced, computed, from_store
from privcore import Problem, answering
from privcore.registry import TIGHT, promise
from storage import Found, Store, StoreError
from storage.contradictions import remedy
from storage.shipped import CORRECT, described, shipped_lookup, shipped_store, shipped_version

Computing = Callable[[Problem], Sourced]

SLOW = 5.0
"""Estimated seconds of a computation above which any stored bracket with both ends answers in its place."""


def answered(store: Store, problem: Problem, *, computing: Computing = computed) -> Sourced:
    """Return the bracket that is computed for a problem, from a store if that has it.

    Args:
        store: Opened with `missing_ok`.
        problem: The question.
        computing: Function that computes an answer.

    Raises:
        StoreError: As `held`.
    """
    return held(store, problem, any_width=False) or computing(problem)


def held(store: Store, problem: Problem, *, any_width: bool) -> Sourced | None:
    """Return the stored bracket of a problem, or None if no stored bracket is good enough for an answer.

    The shipped table answers only if the store has no good answer, or one with a larger upper end.

    Args:
        store: Opened with `missing_ok`.
        problem: The question.
        any_width: Whether any upper bound is enough, and an exact hit even without an upper bound. Otherwise
            the bracket must be exactly the computed bracket.

    Raises:
        StoreError: The folder is not a store, or the store is damaged or has a newer format, or it and the
            table contradict each other.
    """
    own = store.lookup(problem) if store.exists else None
    good = own if own is not None and _is_best(store, problem, own, any_width=any_width) else None
    if good is not None and not good.imported:
        return from_store(problem, good)
    other = shipped_lookup(problem)
    if own is not None and other is not None and max(own.lower, other.lower) > min(own.upper, other.upper):
        raise _disagreement(problem, own, other)
    if good is not None:
        return from_store(problem, good)
    found = [
        from_store(problem, each, table)
        for each, table, place in ((own, "", store), (other, shipped_version(), shipped_store()))
        if each is not None and place is not None and _is_worth(place, problem, each, any_width=any_width)
    ]
    return min(found, key=lambda answer: (answer.bracket.upper, -answer.bracket.lower), default=None)


def _disagreement(problem: Problem, own: Found, other: Found) -> StoreError:
    """Return the error about brackets of the store and of the shipped table that do not intersect."""
    table = described(shipped_version())
    resolved = CORRECT if other.imported else remedy(own.imported)
    return StoreError(
        f"The store and the {table} contradict each other about {problem.name}: the store has "
        f"[{own.lower!r}, {own.upper!r}], and the table [{other.lower!r}, {other.upper!r}]; {resolved}."
    )


def any_held(store: Store, problem: Problem) -> Sourced | None:
    """Return any stored bracket of a problem, even if it has a lower end alone.

    Args:
        store: Opened with `missing_ok`.
        problem: The question.

    Raises:
        StoreError: As `held`.
    """
    found = held(store, problem, any_width=True)
    if found is None and store.exists and (own := store.lookup(problem)):
        return from_store(problem, own)
    return found


def stored_bounds(store: Store, questions: Sequence[Problem]) -> Sourced | None:
    """Return the bounds that a store proves for that of several questions with the smallest upper end.

    Args:
        store: Opened with `missing_ok`.
        questions: The first is preferred if upper ends are equal, or missing.
    """
    found = [answer for question in questions if (answer := any_held(store, question))]
    return min(found, key=lambda answer: answer.bracket.upper, default=None)


def _is_worth(store: Store, problem: Problem, found: Found, *, any_width: bool) -> bool:
    """Return whether a stored bracket is good enough for an answer."""
    if any_width and (found.exact or found.upper_method):
        return True
    return _is_best(store, problem, found, any_width=any_width)


def _is_best(store: Store, problem: Problem, found: Found, *, any_width: bool) -> bool:
    """Return whether a stored bracket answers before that of another store; arguments are as in `held`."""
    if any_width and is_tight(found, TIGHT):
        return True
    if not (found.exact and found.lower_method and found.upper_method):
        return False
    methods = [method() for method in answering(type(problem))]
    first = min(methods, key=lambda method: promise(method, problem), default=None)
    if any_width or first is None or first.cost(problem).seconds > SLOW:
        return True
    # Computing ends with the first method if its bracket is tight.
    return is_tight(found, TIGHT) and all(
        (origin.problem, origin.method, origin.version, origin.knobs)
        == (problem, first.name, first.version, "{}")
        for origin in stored_origins(problem, found, store)
    )
