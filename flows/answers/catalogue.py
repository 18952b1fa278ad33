"""What can be asked, and who answers: the registry as JSON and as text."""

from collections.abc import Mapping
from typing import Any

from flows.answers.matrix import matrix
from flows.printing import as_json, exactly, show
from privcore import METHODS, PROBLEMS, Method, Problem, Trend, answering, find
from privcore.errors import unknown
from privcore.parameter import Parameter, Value


def catalogue() -> dict[str, Any]:
    """Return problems with their fields, and methods with their claims and knobs, in JSON types."""
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
    return {
        "name": kind.name,
        "asks": kind.asks,
        "meaning": _sentence(kind),
        "largest": kind.largest,
        "fields": fields,
        "methods": [method.name for method in answering(kind)],
    }


def _method(kind: type[Method]) -> dict[str, Any]:
    usual = kind()
    return {
        "name": kind.name,
        "direction": kind.direction.value,
        "meaning": _sentence(kind),
        "reference": kind.reference,
        "version": kind.version,
        "knobs": _described(kind.knobs, {name: getattr(usual, name) for name in kind.knobs}),
        "problems": [problem.name for problem in kind.problems],
    }


def _described(parameters: Mapping[str, Parameter], defaults: Mapping[str, Value]) -> list[dict[str, Any]]:
    """Return what is declared about parameters; a default of None means that one has to be given."""
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


def _sentence(kind: type) -> str:
    return (kind.__doc__ or "").split("\n\n")[0].strip()


def show_one(name: str, json: bool) -> None:
    """Print all about one problem, or about one method.

    Raises:
        UnknownNameError: There is neither; the closest name is suggested.
    """
    content = catalogue()
    for kind, show_kind in (("problems", _show_problem), ("methods", _show_method)):
        for entry in content[kind]:
            if entry["name"] == name:
                return print(as_json(entry, indent=1)) if json else show_kind(entry)
    names = [entry["name"] for kind in ("problems", "methods") for entry in content[kind]]
    raise unknown("problem or method", name, names)


def _show_problem(problem: dict[str, Any]) -> None:
    rows = [
        [
            field["name"],
            field["domain"],
            field["unit"],
            "required" if field["default"] is None else exactly(field["default"]),
            _arrow(field["monotone"], problem["asks"]),
            field["meaning"],
        ]
        for field in problem["fields"]
    ]
    methods = ", ".join(f"{name} ({find(name).direction.value})" for name in problem["methods"])
    title = f"{problem['name']}: {problem['meaning']}\nmethods: {methods}"
    show(["field", "domain", "unit", "default", "as it grows", "meaning"], rows, title=title)


def _show_method(method: dict[str, Any]) -> None:
    print(f"{method['name']}: {method['meaning']}")
    print(f"direction  {method['direction']}")
    print(f"version    {method['version']}")
    print(f"reference  {method['reference']}")
    print(f"problems   {', '.join(method['problems'])}")
    if method["knobs"]:
        rows = [
            [knob["name"], knob["domain"], exactly(knob["default"]), knob["meaning"]]
            for knob in method["knobs"]
        ]
        show(["knob", "domain", "default", "meaning"], rows)


def show_fields() -> None:
    """Print every problem with its fields."""
    for problem in catalogue()["problems"]:
        _show_problem(problem)
        print()


def show_methods() -> None:
    """Print a table of all methods, with what each rests on."""
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
    show(["method", "direction", "version", "knobs", "reference"], rows, title="What each method rests on")


def _arrow(monotone: dict[str, str] | None, asks: str) -> str:
    """Return what is proved about the truth when a field grows."""
    if monotone is None:
        return ""
    return f"{asks} {'grows' if monotone['trend'] == Trend.INCREASING.name.lower() else 'falls'}"
