"""One grid of a sweep file: its problem, its methods, and the values on its axes."""

from typing import Any

from flows.spec.condition import condition
from flows.spec.fields import contradiction, fields_of, missing
from flows.spec.grid import Axis, Grid
from flows.spec.toml import Reader, SweepError, shown
from privcore.errors import PrivsweepError
from privcore.method import Method
from privcore.parameter import Choice, Integer, Parameter, Text
from privcore.problem import Problem
from privcore.registry import answering, find, find_problem

RULES = {"linear": "first, last, count", "geometric": "first, last, count", "range": "first, last, step"}


def read_grid(given: Any, reader: Reader) -> Grid:
    """Return one grid of a sweep.

    Args:
        given: Its table in the sweep file, of any type.
        reader: Knows the place of the table for messages.

    Raises:
        SweepError: The table is invalid; the sentence names file, line and key.
    """
    table = reader.known(given, ("problem", "methods", "product", "zip", "where"), "grid")
    problem = _named(table.get("problem"), find_problem, reader, "problem")
    methods = _methods(table.get("methods"), problem, reader)
    product = _axes(table.get("product", {}), problem, reader, "product")
    together = _axes(table.get("zip", {}), problem, reader, "zip")
    for name in together:
        if name in product:
            reader.refuse(f"zip.{name}", f"Expected {name} once, got it in product too.")
    sizes = {name: axis.size for name, axis in together.items()}
    if len(set(sizes.values())) > 1:
        lengths = ", ".join(f"{size} of {name}" for name, size in sizes.items())
        reader.refuse("zip", f"Expected the same number of values of each field, got {lengths}.")
    if lacking := missing(problem, {*product, *together}):
        reader.refuse("product", f"Expected values of {', '.join(lacking)} for {problem.name}.")
    if why := contradiction(problem, {*product, *together}):
        reader.refuse("product", why)
    where = table.get("where")
    try:
        if where is not None and not isinstance(where, str):
            reader.refuse("where", f"Expected a condition in quotes, got {shown(where)}.")
        excluded = condition(where, fields_of(problem)) if where is not None else None
    except PrivsweepError as error:
        if isinstance(error, SweepError):
            raise
        reader.refuse("where", str(error))
    line = reader.line("problem")
    origin = f"{reader.source}, {f'line {line}, ' if line else ''}grid {reader.grid}"
    return Grid(
        problem=problem, methods=methods, product=product, zip=together, where=excluded, origin=origin
    )


def _named(name: Any, look_up: Any, reader: Reader, key: str) -> Any:
    """Return the class of this name in the registry."""
    if not isinstance(name, str):
        reader.refuse(key, f"Expected a name in quotes, got {shown(name)}.")
    try:
        return look_up(name)
    except PrivsweepError as error:
        reader.refuse(key, str(error))


def _methods(given: Any, problem: type[Problem], reader: Reader) -> tuple[Method, ...]:
    """Return the methods of a grid: names, or tables of a name with options."""
    if not isinstance(given, list) or not given:
        reader.refuse("methods", f"Expected a list of method names, got {shown(given)}.")
    methods, tables = list[Method](), list[dict[str, Any]]()
    for entry in given:
        table = entry if isinstance(entry, dict) else {"name": entry}
        kind = _named(table.get("name"), find, reader, "methods")
        if problem not in kind.problems:
            names = ", ".join(m.name for m in answering(problem))
            reader.refuse("methods", f"{kind.name} does not answer {problem.name}; these do: {names}.")
        try:
            method = kind.from_knobs({key: value for key, value in table.items() if key != "name"})
        except PrivsweepError as error:
            reader.refuse("methods", str(error))
        if table in tables:
            reader.refuse("methods", f"Expected {kind.name} once with the same options, got it twice.")
        tables.append(table)
        if method not in methods:  # an option of an older file may be the default by now
            methods.append(method)
    return tuple(methods)


def _axes(given: Any, problem: type[Problem], reader: Reader, key: str) -> dict[str, Axis]:
    """Return the axes of a `product` or `zip` table."""
    axes, fields = {}, fields_of(problem)
    for name, values in reader.known(given, fields, key).items():
        axes[name] = _axis(fields[name], values, reader, f"{key}.{name}")
    return axes


def _axis(parameter: Parameter, given: Any, reader: Reader, key: str) -> Axis:
    """Return an axis: a value, a list of values, or a rule that generates them."""
    if not isinstance(given, dict):
        values = given if isinstance(given, list) else [given]
        if not values:
            reader.refuse(key, "Expected at least one value, got an empty list.")
        return Axis(
            parameter=parameter,
            rule="list",
            numbers=tuple(checked(parameter, v, reader, key) for v in values),
        )
    rule, numbers = next(iter(reader.known(given, RULES, key).items()), ("", None))
    if isinstance(parameter, Choice | Text) or len(given) != 1:
        reader.refuse(key, f"Expected values, a list, or one of {', '.join(RULES)}, got {shown(given)}.")
    real = isinstance(numbers, list) and all(type(x) in (int, float) for x in numbers)
    if (
        not isinstance(numbers, list)
        or not real
        or len(numbers) != 3
        or not all(abs(x) <= 1e308 for x in numbers)
    ):
        reader.refuse(key, f"Expected {rule} = [{RULES[rule]}], three finite numbers, got {shown(numbers)}.")
    first, last = (checked(parameter, x, reader, key) for x in numbers[:2])
    third = numbers[2]
    if first >= last:
        reader.refuse(key, f"Expected the first value below the last, got {first} and {last}.")
    if rule == "range" and (third <= 0 or (isinstance(parameter, Integer) and third != int(third))):
        kind = "whole number" if isinstance(parameter, Integer) else "number"
        reader.refuse(key, f"Expected a step that is a {kind} > 0, got {third}.")
    if rule != "range" and (third != int(third) or third < 2):
        reader.refuse(key, f"Expected a count of at least 2, got {third}.")
    if rule == "geometric" and first <= 0:
        reader.refuse(key, f"Expected a geometric axis above 0, got {first}.")
    return Axis(
        parameter=parameter, rule=rule, numbers=(first, last, int(third) if rule != "range" else third)
    )


def checked(parameter: Parameter, value: Any, reader: Reader, key: str) -> Any:
    """Return a value in its domain; raises `SweepError` outside of it."""
    try:
        return parameter.check(value)
    except PrivsweepError as error:
        reader.refuse(key, str(error))
    except ValueError:  # a number of thousands of digits cannot even be shown
        reader.refuse(
            key, f"Expected {parameter.name} in {parameter.domain}, got a number with too many digits."
        )
