"""Stored values around a problem that the store does not cover, and the fields that differ."""

import shlex
from typing import Any

from flows.answers.ask import UncoveredError
from flows.answers.show import condition_lines, intervals
from flows.printing import exactly, listed
from flows.spec.words import DEFAULT_STORE
from privcore import Problem
from privcore.problem import LookupAxis
from storage import Store
from storage.sql.lookup import relation
from storage.sql.views import quoted_product

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
    named = None if store.name == str(DEFAULT_STORE) else store.name
    option = [] if named is None else ["--store", named]
    plan = shlex.join(["privsweep", "plan", problem.name, *words, *option])
    advice = f"To estimate the cost of computing it: `{plan}`."
    if (doubtful := intervals(store, problem, named)) is not None:
        told = "".join(f" {name.capitalize()}: {text}." for name, text in condition_lines(problem))
        return UncoveredError(
            f"No bound for {question} is proved in the store. {doubtful.sentence}.{told} {advice}"
        )
    if not store.exists:
        return UncoveredError(f"No store exists at {store.name}, so no answer for {question}. {advice}")
    stored, near = _stored(store, problem)
    if not any(stored.values()):
        return UncoveredError(
            f"The store has no proved answer for {question}, nor for any other {problem.name}. {advice}"
        )
    axes = problem.lookup_axes()
    told = ", ".join(
        f"{axis.name} {_told(stored[axis.name], ordered=axis.monotone is not None)}" for axis in axes
    )
    if beside := " or ".join(_reach(axis, near[axis.name]) for axis in axes if near[axis.name]):
        told += f"; with all other fields as in the question, {beside} is covered"
    return UncoveredError(f"The store has no answer for {question}. It has: {told}. {advice}")


def _stored(store: Store, problem: Problem) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the stored values on each axis: all, then only those whose other axes cover the question.

    On an axis with a proved trend, these are the least and the largest, since lookups work between values.
    """
    axes, fields = problem.lookup_axes(), problem.as_fields()
    wanted = {
        axis: f"{quoted_product(axis)} {relation(axis, 'upper')} {_literal(axis.value(fields))}"
        for axis in axes
    }
    columns = []
    for beside in (False, True):
        for axis in axes:
            others = [condition for other, condition in wanted.items() if beside and other != axis]
            where = " and ".join([*others, "upper_method is not null"] if beside else ["true"])
            column = quoted_product(axis)
            ends = f"[min({column}) filter (where {where}), max({column}) filter (where {where})]"
            each = f"list_sort(list(distinct {column}) filter (where {where}))"
            columns.append(f'{ends if axis.monotone else each} as "{axis.name} {beside}"')
    # One query, since the view takes long to plan.
    query = f"select {', '.join(columns)} from best where problem = '{problem.name}'"
    (found,) = store.sql(query).to_pylist()
    names = [axis.name for axis in axes]
    stored, near = (
        {name: [value for value in found[f"{name} {beside}"] or [] if value is not None] for name in names}
        for beside in (False, True)
    )
    return stored, near


def _reach(axis: LookupAxis, values: list[Any]) -> str:
    """Return the values on an axis that the stored values cover from above."""
    match relation(axis, "upper"):
        case "<=":
            return f"{axis.name} from {exactly(values[0])}"
        case ">=":
            return f"{axis.name} up to {exactly(values[-1])}"
        case _:
            return f"{axis.name} {_told(values, ordered=False)}"


def _told(values: list[Any], *, ordered: bool) -> str:
    """Return sorted values as text: only the two ends if the field has a trend or too many values."""
    words = list(dict.fromkeys(map(exactly, values)))
    few = not ordered and len(words) <= MOST_WORDS
    return "|".join(words) if few else " to ".join(dict.fromkeys((words[0], words[-1])))


def _literal(value: object) -> str:
    """Return a value as an SQL literal."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else f"'{value!r}'::double"
