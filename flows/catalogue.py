"""What can be asked, and who answers: the registry as JSON and as text."""

from collections.abc import Mapping
from typing import Any

from flows.printing import exactly, show
from privcore import METHODS, PROBLEMS, Method, Problem, Trend
from privcore.parameter import Parameter, Value


def catalogue() -> dict[str, Any]:
    """Return problems with their fields, and methods with their claims and knobs, in JSON types."""
    return {"problems": [_problem(kind) for kind in PROBLEMS], "methods": [_method(kind) for kind in METHODS]}


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
        "methods": [method.name for method in METHODS if kind in method.problems],
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


def show_catalogue() -> None:
    """Print the catalogue for people."""
    content = catalogue()
    for problem in content["problems"]:
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
        title = f"{problem['name']}: {problem['meaning']}\nmethods: {', '.join(problem['methods'])}"
        show(["field", "domain", "unit", "default", "as it grows", "meaning"], rows, title=title)
        print()
    rows = [
        [
            method["name"],
            method["direction"],
            str(method["version"]),
            " ".join(f"{knob['name']}={exactly(knob['default'])}" for knob in method["knobs"]),
            ", ".join(method["problems"]),
            method["reference"],
        ]
        for method in content["methods"]
    ]
    show(["method", "direction", "version", "knobs", "problems", "reference"], rows, title="Methods")


def _arrow(monotone: dict[str, str] | None, asks: str) -> str:
    """Return what is proved about the truth when a field grows."""
    if monotone is None:
        return ""
    return f"{asks} {'grows' if monotone['trend'] == Trend.INCREASING.name.lower() else 'falls'}"
