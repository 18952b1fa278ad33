"""Stored values around a problem that the store does not cover, and the fields that differ."""

import shlex
from typing import Any

from flows.answers.ask import UncoveredError
from flows.cli.options import DEFAULT_STORE
from flows.printing import exactly, listed
from privcore import Problem
from storage import Store
from storage.monotone_index import relation

MOST_WORDS = 12
"""Number of values up to which all are listed; of more, the first and the last are."""


def uncovered(store: Store, problem: Problem) -> UncoveredError:
    """Return the error that lists the stored values, and the command that plans the question.

    Args:
        store: Opened with `missing_ok`.
        problem: The question.
    """
    question = f"{problem.name} {listed(problem.as_fields())}"
    words = [f"{name}={exactly(value)}" for name, value in problem.as_fields().items()]
    option = [] if store.name == str(DEFAULT_STORE) else ["--store", store.name]
    plan = shlex.join(["privsweep", "plan", problem.name, *words, *option])
    advice = f"To estimate the cost of computing it: `{plan}`."
    if not store.exists:
        return UncoveredError(f"No store exists at {store.name}, so no answer for {question}. {advice}")
    stored, near = _stored(store, problem)
    if not any(stored.values()):
        return UncoveredError(
            f"The store has no answer for {question}, nor for any other {problem.name}. {advice}"
        )
    told = ", ".join(
        f"{name} {_told(values, ordered=name in problem.monotone)}" for name, values in stored.items()
    )
    if beside := " or ".join(_reach(problem, name, values) for name, values in near.items() if values):
        told += f"; with all other fields as in the question, {beside} is covered"
    return UncoveredError(f"The store has no answer for {question}. It has: {told}. {advice}")


def _stored(store: Store, problem: Problem) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the stored values of each field: all, then only those whose other fields cover the question.

    For a field with a proved trend, these are the least and the largest, since lookups work between values.
    """
    kind, fields = type(problem), problem.as_fields()
    wanted = {name: f'"{name}" {relation(kind, name, "upper")} {_literal(fields[name])}' for name in fields}
    columns = []
    for beside in (False, True):
        for name in fields:
            others = [condition for other, condition in wanted.items() if beside and other != name]
            where = " and ".join([*others, "upper_method is not null"] if beside else ["true"])
            ends = f'[min("{name}") filter (where {where}), max("{name}") filter (where {where})]'
            each = f'list_sort(list(distinct "{name}") filter (where {where}))'
            columns.append(f'{ends if name in kind.monotone else each} as "{name} {beside}"')
    # One query, since the view takes long to plan.
    found = store.sql(f"select {', '.join(columns)} from best where problem = '{problem.name}'").to_pylist()[
        0
    ]
    stored, near = (
        {name: [value for value in found[f"{name} {beside}"] or [] if value is not None] for name in fields}
        for beside in (False, True)
    )
    return stored, near


def _reach(problem: Problem, name: str, values: list[Any]) -> str:
    """Return the values of a field that the stored values cover from above."""
    match relation(type(problem), name, "upper"):
        case "<=":
            return f"{name} from {exactly(values[0])}"
        case ">=":
            return f"{name} up to {exactly(values[-1])}"
        case _:
            return f"{name} {_told(values, ordered=False)}"


def _told(values: list[Any], *, ordered: bool) -> str:
    """Return sorted values as text: only the two ends if the field has a trend or too many values."""
    words = list(dict.fromkeys(map(exactly, values)))
    few = not ordered and len(words) <= MOST_WORDS
    return "|".join(words) if few else " to ".join(dict.fromkeys((words[0], words[-1])))


def _literal(value: object) -> str:
    """Return a value as an SQL literal."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else f"'{value!r}'::double"
