"""The command lookup: stored bounds of a problem, and stored values around a problem that is not covered."""

import shlex
from functools import partial
from typing import Annotated, Any

import typer

from flows.answers.ask import UncoveredError
from flows.answers.show import condition_lines, intervals
from flows.cli.options import (
    DEFAULT_STORE,
    AllowDegraded,
    Explain,
    Json,
    Keep,
    LimitSeconds,
    StorePath,
    finish,
    problems_and_sweeps,
    reading,
    waiting,
)
from flows.printing import exactly, listed
from flows.spec.words import fields_from
from privcore import DomainError, Problem, find_problem
from privcore.problem import LookupAxis
from privcore.training import from_sizes
from storage import Store
from storage.monotone_index import relation
from storage.views import quoted_product

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
    found = store.sql(f"select {', '.join(columns)} from best where problem = '{problem.name}'").to_pylist()[
        0
    ]
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


def lookup(  # noqa: PLR0913  the options of a command are its arguments
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a problem, followed by its fields, or of a sweep.",
            autocompletion=problems_and_sweeps,
        ),
    ],
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE", help="Fields of the problem, such as sigma=1."),
    ] = None,
    *,
    store: StorePath = DEFAULT_STORE,
    compute: Annotated[
        bool,
        typer.Option(
            "--compute", help="Compute now if nothing is stored, or the stored bracket is wider than 5 %."
        ),
    ] = False,
    keep: Keep = False,
    limit_seconds: LimitSeconds = 300.0,
    explain: Explain = False,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Print the stored bounds that cover a problem, or the table of a sweep. Computes only with --compute.

    With --compute, the answer is the intersection of the stored and the computed bracket.
    """
    from flows.answers.explain import explained
    from flows.answers.held import any_held, held, tightened, width_aside
    from flows.answers.held import keep as kept
    from flows.answers.show import intervals, print_answer
    from flows.answers.sourced import computed
    from flows.answers.sweep_table import show_sweep, sweep_named

    if keep and not compute:
        raise DomainError("Expected --compute with --keep.")
    with reading(store, allow_degraded=allow_degraded) as opened:
        named = None if store == DEFAULT_STORE else opened.name
        if not fields and (sweep := sweep_named(name, opened)) is not None:
            if explain or compute:
                option = "--explain" if explain else "--compute"
                raise DomainError(f"Expected a problem with its fields for {option}, got a sweep.")
            return show_sweep(sweep, opened, named, json)
        problem = from_sizes(find_problem(name), fields_from(fields or []))
        if compute:
            with waiting(f"computing {problem.name}"):
                within = partial(computed, limit_seconds=limit_seconds)
                answer = tightened(problem, any_held(opened, problem), computing=within)
        elif (found := held(opened, problem, any_width=True)) is None:
            raise uncovered(opened, problem)
        else:
            answer = found
        explanation = explained(answer, opened) if explain and answer.ok else None
        asides = [width_aside(answer, named)] if answer.ok else []
        if answer.ok and (doubtful := intervals(opened, problem, named)) is not None:
            asides.append(doubtful.aside())
        print_answer(answer, json, explanation, asides)
        if keep:
            kept(opened, [answer])
    return finish(answer)
