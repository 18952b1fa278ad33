"""The registry as JSON and as text: problems, methods, and the matrix of problems and methods."""

import inspect
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from flows.printing import as_json, exactly, say, show
from privcore import METHODS, PROBLEMS, Direction, Method, Problem, Trend, answering, find
from privcore.errors import unknown
from privcore.parameter import Parameter, Value

PROVED, ESTIMATED = "proved", "estimate"
SIDES = {
    Direction.ENCLOSURE: "both ends",
    Direction.UPPER: "upper end",
    Direction.LOWER: "lower end",
    Direction.ESTIMATE: "estimate",
}
_CONFIDENCE = "confidence"

_SECTIONS = ("Attributes:", "Args:", "Returns:", "Reference:", "Example:")


def catalogue() -> dict[str, Any]:
    """Return problems with their fields, and methods with their claims and options, in JSON types."""
    return {
        "problems": [_problem(kind) for kind in PROBLEMS],
        "methods": [_method(kind) for kind in METHODS],
        "matrix": matrix(),
    }


def _problem(kind: type[Problem]) -> dict[str, Any]:
    fields = _described(kind.parameters, kind.defaults())
    for field in fields:
        known = kind.monotone.get(field["name"])
        field["monotone"] = known and {"trend": known.trend.name.lower(), "proof": known.proof}
        field["stated"] = kind.stated.get(field["name"])
    return {
        "name": kind.name,
        "asks": kind.asks,
        "meaning": meaning_of(kind),
        "largest": kind.largest,
        "fields": fields,
        "methods": [method.name for method in answering(kind)],
    }


def _method(kind: type[Method]) -> dict[str, Any]:
    usual = kind()
    return {
        "name": kind.name,
        "direction": kind.direction.value,
        "meaning": meaning_of(kind),
        "reference": kind.reference,
        "version": kind.version,
        "knobs": _described(kind.knobs, {name: getattr(usual, name) for name in kind.knobs}),
        "problems": [problem.name for problem in kind.problems],
    }


def _described(parameters: Mapping[str, Parameter], defaults: Mapping[str, Value]) -> list[dict[str, Any]]:
    """Return the declarations of parameters; a default of None means that a value is required."""
    return [
        {
            "name": name,
            "symbol": parameter.symbol,
            "domain": parameter.domain,
            "unit": parameter.unit,
            "meaning": parameter.meaning,
            "default": defaults.get(name),
        }
        for name, parameter in parameters.items()
    ]


def described(name: str) -> dict[str, Any]:
    """Return all properties of one problem or of one method.

    Raises:
        UnknownNameError: The name is unknown; the closest name is suggested.
    """
    content = catalogue()
    entries: dict[str, dict[str, Any]] = {
        entry["name"]: entry for kind in ("problems", "methods") for entry in content[kind]
    }
    if name not in entries:
        raise unknown("problem or method", name, list(entries))
    return entries[name]


def show_one(name: str, json: bool) -> None:
    """Print all properties of one problem or of one method.

    Raises:
        UnknownNameError: As in `described`.
    """
    entry = described(name)
    if json:
        say(as_json(entry, indent=1))
    else:
        (_show_problem if "asks" in entry else _show_method)(entry)


def _show_problem(problem: dict[str, Any]) -> None:
    rows = [
        [
            field["name"],
            field["domain"],
            field["unit"],
            _default(field),
            _arrow(field["monotone"], problem["asks"]),
            field["meaning"],
        ]
        for field in problem["fields"]
    ]
    methods = ", ".join(f"{name} ({find(name).direction.value})" for name in problem["methods"])
    title = f"{problem['name']}: {problem['meaning']}\nmethods: {methods}"
    names = ["field", "domain", "unit", "default", "as it grows", "meaning"]
    show(names, rows, title=title, below="meaning")


def _default(field: Mapping[str, Any]) -> str:
    """Return the default of a field of a problem, or that a question needs the field."""
    if field["default"] is None:
        return "required"
    shown = exactly(field["default"])
    return f"required; {shown} in files" if field["stated"] else shown


def _show_method(method: dict[str, Any]) -> None:
    say(f"{method['name']}: {method['meaning']}")
    say(f"direction  {method['direction']}")
    say(f"version    {method['version']}")
    say(f"reference  {method['reference']}")
    say(f"problems   {', '.join(method['problems'])}")
    if method["knobs"]:
        rows = [
            [knob["name"], knob["domain"], exactly(knob["default"]), knob["meaning"]]
            for knob in method["knobs"]
        ]
        show(["option", "domain", "default", "meaning"], rows, below="meaning")


def show_fields() -> None:
    """Print every problem with its fields."""
    for problem in catalogue()["problems"]:
        _show_problem(problem)
        say()


def show_methods() -> None:
    """Print a table of all methods, with the reference of each."""
    rows = [
        [
            method["name"],
            method["direction"],
            str(method["version"]),
            " ".join(f"{knob['name']}={exactly(knob['default'])}" for knob in method["knobs"]),
            method["reference"],
        ]
        for method in catalogue()["methods"]
    ]
    names = ["method", "direction", "version", "options", "reference"]
    show(names, rows, title="References of the methods", below="reference")


def _arrow(monotone: dict[str, str] | None, asks: str) -> str:
    """Return the proved trend of the true value as a field grows."""
    if monotone is None:
        return ""
    return f"{asks} {'grows' if monotone['trend'] == Trend.INCREASING.name.lower() else 'falls'}"


# ------------------------------------------------------------------- the matrix of problems and methods


def matrix() -> list[dict[str, Any]]:
    """Return an entry for each problem and each method that answers it, in JSON types.

    `holds` is `proved`, `estimate`, or the name of the option or field that sets the confidence.
    """
    return [
        {
            "problem": problem.name,
            "method": method.name,
            "direction": method.direction.value,
            "holds": holds(problem, method),
        }
        for problem in PROBLEMS
        for method in answering(problem)
    ]


def holds(problem: type[Problem], method: type[Method]) -> str:
    """Return `proved`, `estimate`, or the name of the option or field that sets the confidence.

    A problem with a confidence is about something random, so no answer holds with a higher confidence.
    """
    if method.direction is Direction.ESTIMATE:
        return ESTIMATED
    named = [name for name in (*method.knobs, *problem.parameters) if _CONFIDENCE in name]
    return named[0] if named else PROVED


def show_matrix() -> None:
    """Print a row for each problem, with the methods by the end that they bound."""
    entries = matrix()
    rows = []
    for problem in PROBLEMS:
        mine = [entry for entry in entries if entry["problem"] == problem.name]
        family = Counter(entry["method"].partition(".")[0] for entry in mine).most_common(1)[0][0]
        cells = [
            ", ".join(_short(entry, family) for entry in mine if entry["direction"] == direction)
            for direction in SIDES
        ]
        rows.append([problem.name, f"{family}.", *cells])
    names = ["problem", "method", *SIDES.values()]
    show(names, rows, title="Methods of each problem, by the ends that they bound", heading="method")
    notes = (
        "* with a confidence below 1, set by an option of the method or a field of the problem",
        "fields of a problem or options of a method: privsweep methods NAME; all fields: --all",
    )
    say("\n".join(notes))


def _short(entry: dict[str, Any], family: str) -> str:
    name = entry["method"].removeprefix(f"{family}.")
    return name if entry["holds"] in (PROVED, ESTIMATED) else f"{name}*"


# ------------------------------------------------------------------------------------- documentation


def meaning_of(kind: type[Problem] | type[Method]) -> str:
    """Return the first sentence about a problem or method: its question or its claim."""
    return _paragraphs(kind)[0]


def assumptions_of(kind: type[Method]) -> str:
    """Return the assumptions of a method, which follow the first sentence of its documentation."""
    told = "\n\n".join(_paragraphs(kind)[1:])
    if told or kind.direction is Direction.ESTIMATE:
        return told or "the assumptions of its reference; no theorem covers the number"
    # A proof holds for the problem as stated: a method does not apply if its theorem needs more.
    return "nothing beyond the question above"


def _paragraphs(kind: type) -> list[str]:
    """Return the paragraphs of a docstring up to its first section."""
    paragraphs = (inspect.getdoc(kind) or "").split("\n\n")
    return list(takewhile(lambda paragraph: not paragraph.startswith(_SECTIONS), paragraphs))


Columns = Mapping[str, Sequence[Any]]


def typical_row(kind: type[Problem], source: Columns) -> int:
    """Return the number of a row with both ends, short values, and values near the middle.

    Args:
        kind: The kind of problem.
        source: Columns of the fields and of both ends, with at least one row.
    """
    names = list(kind.parameters)
    rows = range(len(source["lower"]))
    both = [k for k in rows if source["lower"][k] > 0 and source["upper"][k] < math.inf]
    usual = kind.defaults()

    middles = {name: _from_middle(source[name]) for name in names}

    def oddness(k: int) -> tuple[int, float, int]:
        values = {name: source[name][k] for name in names}
        unusual = sum(values[name] != usual[name] for name in usual)
        letters = sum(len(exactly(value)) for value in values.values())
        return unusual, letters + 5 * sum(middles[name][values[name]] for name in names), k

    return min(both or rows, key=oddness)


def _from_middle(column: Sequence[Any]) -> dict[Any, float]:
    """Return the distance of each value of a field from the middle value, 1 for the least and the largest."""
    values = sorted(set(column))
    half = max(1, len(values) - 1) / 2
    return {value: abs(k - half) / half for k, value in enumerate(values)}
