"""Answers of a store, intersected with answers computed now if the stored bracket is missing or wide."""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from flows.answers.ask import CONFLICT, Asked, contradiction, is_tight
from flows.answers.show import Aside, width_text
from flows.answers.sourced import Sourced, computed
from flows.printing import exactly
from privcore import Bracket, Direction, Point, Problem, intersect, methods_for
from storage import Found, Row, Store, publish, to_table
from storage.contradictions import remedy
from storage.export import write_store_sql
from storage.shipped import CORRECT

WIDE = 0.05
"""Relative width above which a stored bracket is computed again."""

Computing = Callable[[Problem], Sourced]

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
    if bracket.crossed:
        asked = replace(now.answer, status=CONFLICT, detail=disputed(bracket, stored))
        source = f"{'shipped' if stored.table else 'store'}-computed"
        return replace(now, answer=asked, source=source, found=stored.answer, table=stored.table)
    from_stored = tuple(
        end for end in ("lower", "upper") if getattr(bracket, end) != getattr(now.bracket, end)
    )
    if not from_stored:
        return now
    told = f"{now.told}; {' and '.join(from_stored)} end: {stored.told}"
    return replace(
        now,
        bracket=bracket,
        source=f"{'shipped' if stored.table else 'store'}-computed",
        told=told,
        found=stored.answer,
        stored_ends=from_stored,
        table=stored.table,
    )


def disputed(bracket: Bracket, stored: Sourced) -> str:
    """Return the sentence about a stored end that contradicts a computed one, with the remedy."""
    resolved = CORRECT if stored.table and stored.imported else remedy(stored.imported)
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
