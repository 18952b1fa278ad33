"""A sweep typed on the command line: `unamplified-epsilon "sigma=geometric(1,10,5)" delta=1e-5,1e-6`."""

import hashlib
import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from flows.spec.grid import Grid
from flows.spec.read_grid import RULES
from flows.spec.sweep import Sweep, embedded_names, from_spec, load
from flows.spec.toml import SweepError
from flows.spec.words import fields_from, method_options, number
from privcore.errors import PrivsweepError
from privcore.method import Direction
from privcore.parameter import Choice, Parameter, Text
from privcore.registry import PROBLEMS, answering, find_problem

TYPED = ", typed"
"""End of the titles of these sweeps, which have no file."""

_LOOKED_AT = 10_000
"""Number of points whose methods are determined one by one, in about half a second."""

_RULE = re.compile(rf"({'|'.join(RULES)})\(([^()]*)\)")


def named_or_typed(name: str, words: Sequence[str], methods: Sequence[str] = ()) -> Sweep:
    """Return the sweep of a file or a name; for the name of a problem, the sweep in the words.

    Args:
        name: Path of a TOML file, name of an embedded sweep, or of a problem.
        words: Fields of a problem: `field=value,value,...` or `field=linear(first,last,count)`, likewise
            `geometric` and `range`.
        methods: Methods for a problem, each a name or `name(option=value)`; by default few methods that bound
            its points.

    Raises:
        SweepError: The sweep is missing or invalid.
    """
    typed = bool(words or methods)  # a few embedded sweeps have the names of their problems
    if name in {problem.name for problem in PROBLEMS} and (typed or name not in embedded_names()):
        return _typed(name, words, methods)
    if words or methods:
        raise SweepError(
            f"Expected the name of a problem before {' '.join(words) or '--method'}, got {name!r}."
        )
    return load(name)


def _typed(name: str, words: Sequence[str], methods: Sequence[str]) -> Sweep:
    problem = find_problem(name)
    for field, text in _fields(words).items():
        if isinstance(parameter := problem.parameters.get(field), Choice):
            for word in _between_commas(text):
                parameter.refuse_former(word)
    product = {field: _axis(text, problem.parameters.get(field)) for field, text in _fields(words).items()}

    def spelled(names: Sequence[str]) -> Sweep:
        grid = {"problem": name, "methods": [_method(each) for each in names], "product": product}
        digest = hashlib.blake2b(json.dumps(grid, sort_keys=True).encode(), digest_size=4).hexdigest()
        spec = {"name": f"{name[:55]}-{digest}", "title": f"{name}{TYPED}", "grid": [grid]}
        return from_spec(spec, "command line")

    names = [method.name for method in answering(problem)]
    (grid,) = spelled(list(methods) or names[:1]).grids
    if problem.stated.keys() - product.keys():
        for point in islice(grid.problems(), _LOOKED_AT):
            if reason := point.unstated(product):
                raise SweepError(reason)
    return spelled(methods or _bounding(grid) or names)


def _method(word: str) -> str | dict[str, Any]:
    """Return a method as in a sweep file: a name, or a table of a name with options."""
    name, options = method_options(word)
    return {"name": name, **options} if options else name


def _bounding(grid: Grid) -> list[str]:
    """Return few methods that bound the points of a grid; an empty list if no method applies.

    A point takes the first method that proves both ends, or else all methods that bound either end.
    """
    bounding = [m() for m in answering(grid.problem) if m.direction is not Direction.ESTIMATE]
    both = [m for m in bounding if m.direction is Direction.ENCLOSURE and "confidence" not in m.knobs]
    names: set[str] = set()
    for problem in islice(grid.problems(), _LOOKED_AT):
        first = next((method for method in both if method.applies(problem) is None), None)
        names |= {first.name} if first else {m.name for m in bounding if m.applies(problem) is None}
    return [method.name for method in bounding if method.name in names]


def _fields(words: Sequence[str]) -> dict[str, str]:
    """Return the text of each field."""
    fields_from(words)  # raises if a word is invalid
    return {name: text for name, _, text in (word.partition("=") for word in words)}


def _axis(text: str, parameter: Parameter | None) -> Any:
    """Return the values of a field as in a sweep file."""
    if isinstance(parameter, Text):
        return [text] if _is_one(text, parameter) else _between_commas(text)
    if rule := _RULE.fullmatch(text):
        return {rule[1]: [number(value.strip()) for value in rule[2].split(",")]}
    return [number(value) for value in _between_commas(text)]


def _is_one(text: str, parameter: Text) -> bool:
    """Return whether a text with its commas is a single value, such as the probabilities of a bag."""
    try:
        parameter.check(text)
    except PrivsweepError:
        return False
    return True


def _between_commas(text: str) -> list[str]:
    """Split a text at the commas outside of parentheses."""
    values, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0:
            values.append("")
        else:
            values[-1] += letter
    return [value.strip() for value in values]
