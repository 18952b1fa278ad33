"""Answers of stores and the shipped table, narrowed by computed ones, and the SQL function that gives them.

The same question has the same answer everywhere: a store only saves the time of computing it.
"""

import shlex
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from flows.answers.ask import CONFLICT, LIMIT_SECONDS, Asked, contradiction, is_tight
from flows.answers.explain import stored_origins
from flows.answers.parse import LOADERS, SAMPLING
from flows.answers.question import question as read_question
from flows.answers.show import Aside, width_text
from flows.answers.sourced import Sourced, computed, from_store
from flows.answers.training.compare import SchemeRow, nearest_rate, rows
from flows.answers.uncovered import uncovered
from flows.printing import exactly
from privcore import (
    Bracket,
    Direction,
    DomainError,
    LimitError,
    Point,
    Problem,
    answering,
    intersect,
    methods_for,
)
from privcore.answer import tables_of
from privcore.registry import TIGHT, promise
from storage import Found, Row, Store, StoreError, publish, to_table
from storage.export import write_store_sql
from storage.schema import IMPORTS, origin_text
from storage.sql.query import SqlFunction
from storage.sql.views import remedy
from storage.table.shipped import CORRECT, described, shipped_lookup, shipped_store, shipped_version

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


def answer_to(
    store: Store, problem: Problem, computing: Computing | None, *, by_methods: bool = False
) -> Sourced:
    """Return the bracket that is computed for a problem, or if nothing may be computed, any stored one.

    Args:
        store: Opened with `missing_ok`.
        problem: The question.
        computing: Function that computes an answer; None if any stored bound is the answer.
        by_methods: Whether the user named the methods, so that no stored bracket answers.

    Raises:
        UncoveredError: Nothing is stored, and nothing may be computed.
        StoreError: As `held`.
    """
    if not by_methods and (found := held(store, problem, any_width=computing is None)):
        return found
    if computing is None:
        raise uncovered(store, problem)
    return computing(problem)


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
    if good is not None and not good.tables:
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
    resolved = CORRECT if other.tables else remedy(own.tables)
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


def answered_rows(store: Store, asked: Mapping[str, Problem], computing: Computing | None) -> list[SchemeRow]:
    """Return the rows about the problems of one run, stored or computed.

    Args:
        store: Opened with `missing_ok`.
        asked: The problems, by sampling.
        computing: Function that computes an answer; None if any stored bound is the answer. Then that of
            Poisson sampling is also looked up with its rate rounded to the nearest.

    Raises:
        StoreError: As `held`.
    """

    def answering(problem: Problem) -> Sourced | None:
        if computing is not None:
            return answered(store, problem, computing=computing)
        questions = [problem, *nearest_rate(asked)] if problem is asked["poisson"] else [problem]
        found = [answer for question in questions if (answer := any_held(store, question))]
        return min(found, key=lambda answer: answer.bracket.upper, default=None)

    return list(rows(asked, answering))


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


WIDE = 0.05
"""Relative width above which a stored bracket is computed again."""

KEPT = "kept"
"""Name, in the column `sweep`, of rows that were computed for a question and not by a sweep."""


def tightened(
    problem: Problem, stored: Sourced | None, *, width: float = WIDE, computing: Computing = computed
) -> Sourced:
    """Return a stored answer if it is tight, otherwise its intersection with an answer computed now.

    Args:
        problem: The question.
        stored: The stored answer, or None.
        width: Relative width up to which a stored bracket is tight.
        computing: Function that computes an answer.
    """
    if stored is not None and is_tight(stored.bracket, width):
        return stored
    now = computing(problem)
    return now if stored is None else _intersected(stored, now)


def _intersected(stored: Sourced, now: Sourced) -> Sourced:
    """Return the intersection of a stored bracket and a computed one, of the same problem."""
    if now.status == CONFLICT:
        return now
    if not now.ok or now.bracket.confidence < 1.0:
        why = now.detail.rstrip(".") or "no method proves a bound"
        return replace(stored, told=f"{stored.told}; nothing better was computed: {why}")
    assert isinstance(stored.answer, Found)
    assert isinstance(now.answer, Asked)
    bracket = intersect([now.bracket, stored.bracket], stored.problem.largest)
    source = f"{'shipped' if stored.table else 'store'}-computed"
    both = replace(now, bracket=bracket, source=source, found=stored.answer, table=stored.table)
    if bracket.crossed:
        return replace(both, answer=replace(now.answer, status=CONFLICT, detail=disputed(bracket, stored)))
    ends = ("lower", "upper")
    from_stored = tuple(end for end in ends if getattr(bracket, end) != getattr(now.bracket, end))
    if not from_stored:
        return now
    told = f"{now.told}; {' and '.join(from_stored)} end: {stored.told}"
    return replace(both, told=told, stored_ends=from_stored)


def disputed(bracket: Bracket, stored: Sourced) -> str:
    """Return the sentence about a stored end that contradicts a computed one, with the remedy."""
    resolved = CORRECT if stored.table and stored.bracket.tables else remedy(stored.bracket.tables)
    text = contradiction(bracket, "A stored and a computed end").rstrip(".")
    return f"{text}; the stored bracket is from: {stored.told}; {resolved}."


def keep(store: Store, answers: Iterable[Sourced]) -> int:
    """Write the computed bounds of answers into a store, as a sweep does; return the number of rows.

    Args:
        store: The store; it is created if it does not exist.
        answers: The answers; failures of methods are not written.

    Raises:
        StoreError: The path is not a store, or the disk refused.
    """
    now = datetime.now(UTC)
    rows: dict[str, list[Row]] = {}
    for answer in answers:
        replies = answer.answer.replies if isinstance(answer.answer, Asked) else ()
        rows.setdefault(answer.problem.name, []).extend(
            Row(
                point=Point(problem=answer.problem, method=reply.method),
                answer=reply.answer,
                seconds=reply.seconds,
                cpu_seconds=reply.cpu_seconds,
                attempt=1,
                finished_at=now,
                sweep=KEPT,
            )
            for reply in replies
            if reply.answer.ok
        )
    several = [each for each in rows.values() if each]
    if several:
        store.create()
        for each in several:
            publish(store.place, to_table(each))
        write_store_sql(store.place)
    return sum(map(len, several))


def width_aside(answer: Sourced, store: str | None) -> Aside:
    """Return the width of an answer, and if it is wide, the command that computes a tight bracket.

    Args:
        answer: The answer.
        store: Name of the store, or None for the default.
    """
    bracket = answer.bracket
    command = None
    if not is_tight(bracket, WIDE) and _is_enclosed(answer):
        words = [f"{name}={exactly(value)}" for name, value in answer.problem.as_fields().items()]
        option = [] if store is None else ["--store", store]
        command = shlex.join(["privsweep", "lookup", "--compute", answer.problem.name, *words, *option])
    told = width_text(bracket) or _without_width(bracket)
    if command:
        told += f", wider than {WIDE:.0%}; to compute a tight bracket: `{command}`"
    relative = bracket.upper / bracket.lower - 1.0 if width_text(bracket) else None
    content: dict[str, Any] = {"relative": relative, "wide": command is not None, "command": command}
    return Aside(key="width", content=content, text=f"width      {told}")


def _without_width(bracket: Bracket) -> str:
    """Return the reason why a bracket has no relative width."""
    return "no finite upper end" if bracket.upper == float("inf") else "no positive lower end"


def _is_enclosed(answer: Sourced) -> bool:
    """Return whether a method encloses the question, and has not been used for it already."""
    if isinstance(answer.answer, Asked):
        return False
    problem = answer.problem
    is_stored = answer.source in {"store", "shipped"}
    used = {answer.bracket.lower_by, answer.bracket.upper_by} if is_stored else set()
    return any(
        reason is None and method.direction is Direction.ENCLOSURE and method.name not in used
        for method, reason in methods_for(problem).items()
    )


MOST_ANSWERS = 100_000
"""Computed answers that a process remembers."""

ARGUMENTS = {
    "sigma": "double",
    "steps": "double",
    "delta": "double",
    "sampling": "varchar",
    "sampling_probability": "double",
    "participations": "double",
    "epochs": "double",
    "redraw": "varchar",
    "largest_batch": "double",
    "adjacency": "varchar",
    "examples": "double",
    "batch_size": "double",
    "drop_last": "boolean",
}
VALUE = {
    "lower": "double",
    "upper": "double",
    "method": "varchar",
    "source": "varchar",
    IMPORTS: "varchar",
}


@dataclass
class CertifiedEpsilon:
    """The function, with the answers that it has given.

    Attributes:
        store: Store whose brackets save computing them again; it may be missing.
        limit_seconds: Seconds from now after which a query ends with an error.
        answers: Every answer, by question.
    """

    store: Store
    limit_seconds: float = LIMIT_SECONDS
    answers: dict[Problem, Sourced] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set the time of the end."""
        self._end = time.monotonic() + self.limit_seconds
        self._one = threading.Lock()  # DuckDB calls a function in several threads

    @property
    def function(self) -> SqlFunction:
        """The function for `Store.sql`."""
        return SqlFunction(
            name="certified_epsilon",
            arguments=ARGUMENTS,
            returns=VALUE,
            call=lambda rows: [self._value(row) for row in rows],
        )

    def _value(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value for the arguments of a row."""
        problem = question(row)
        with self._one:
            answer = self.answers.get(problem) or self._answer(problem)
        if not answer.ok:
            raise DomainError(answer.detail)
        bracket = answer.bracket
        methods = dict.fromkeys(name for name in (bracket.lower_by, bracket.upper_by) if name)
        return {
            "lower": bracket.lower,
            "upper": bracket.upper,
            "method": ", ".join(methods),
            "source": answer.source,
            IMPORTS: ", ".join(bracket.tables) or None,
        }

    @property
    def note(self) -> str:
        """The sentence about answers with an end from a lookup table that was not recomputed, or ""."""
        found = [answer.bracket for answer in self.answers.values() if answer.bracket.tables]
        of = "answer of certified_epsilon is" if len(found) == 1 else "answers of certified_epsilon are"
        return origin_text(tables_of(*found), f"{len(found)} {of} ", ".")

    def _answer(self, problem: Problem) -> Sourced:
        if time.monotonic() > self._end:
            raise LimitError(f"The query took longer than {self.limit_seconds:g} s.")
        answer = answered(self.store, problem, computing=_computed)
        if not answer.ok:
            answer = any_held(self.store, problem) or answer
        self.answers[problem] = answer
        return answer


@lru_cache(maxsize=MOST_ANSWERS)
def _computed(problem: Problem) -> Sourced:
    """Return the computed answer to a problem, which a process computes once."""
    return computed(problem)


def question(row: Mapping[str, Any]) -> Problem:
    """Return the problem that the arguments of a row describe; a null is an argument that was left out.

    Raises:
        PrivsweepError: Arguments are missing, contradict one another, or are outside their domains.

    Example:
        >>> question({"sigma": 1.0, "steps": None, "delta": 1e-5, "sampling": "none"}).name
        'unamplified-epsilon'
    """
    given = {name: value for name, value in row.items() if value is not None}
    if given.get("sampling") not in SAMPLING:
        loaders = ", ".join(f"'{word}' ({code})" for word, code in LOADERS.items())
        raise DomainError(f"Expected sampling, since epsilon depends on the loader: {loaders}.")
    return read_question(given).problem
