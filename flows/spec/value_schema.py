"""JSON Schema of the values of parameters: single values, and the values that a field takes in a sweep."""

import math
from typing import Any

from flows.spec.read_grid import RULES
from privcore.parameter import Choice, Integer, Parameter, Real, Text, Value

Schema = dict[str, Any]

_LARGEST = 1e308
"""Largest number in a rule, as the reader of sweeps has it."""

_LARGEST_FLOAT = 1.7976931348623157e308


def value(parameter: Parameter, default: Value | None) -> Schema:
    """Return the schema of a single value.

    Args:
        parameter: The parameter.
        default: Its default; None if a value is required.
    """
    return _described(parameter, default) | _domain(parameter)


def axis(parameter: Parameter, default: Value | None) -> Schema:
    """Return the schema of the values of a field: one value, a list, or a rule that generates them."""
    single = _domain(parameter)
    several = {"type": "array", "minItems": 1, "items": single}
    described = _described(parameter, default)
    match parameter:
        case Text():
            return described | several | {"type": [*single["type"], "array"]}
        case Real(infinite=False) | Integer():
            # Each keyword applies to one type, so that an editor names the mistake and not the alternatives.
            rules = _rules(parameter)
            return described | single | several | rules | {"type": [single["type"], "array", "object"]}
        case Real():
            return described | {"anyOf": [single, several, _rules(parameter)]}
    return described | {"anyOf": [single, several]}


def _described(parameter: Parameter, default: Value | None) -> Schema:
    """Return the description and the default of a parameter."""
    unit = "" if parameter.unit == "1" else f", unit {parameter.unit}"
    described: Schema = {"description": f"{parameter.meaning}. Domain: {parameter.domain}{unit}."}
    if default is not None:
        described["default"] = "inf" if default == math.inf else default
    return described


def _domain(parameter: Parameter) -> Schema:
    """Return the schema of all that a parameter accepts."""
    match parameter:
        case Choice():
            return {"enum": list(parameter.choices)}
        case Real(infinite=True):
            infinite = [{"const": "inf"}, {"type": "number", "exclusiveMinimum": _LARGEST_FLOAT}]
            return {"anyOf": [_interval(parameter), *infinite]}
        case Real() | Integer():
            return _interval(parameter)
        case Text():
            return {"type": ["string", "number"]}
    raise TypeError(f"Expected a kind of parameter with a schema, got {parameter!r}.")


def _interval(parameter: Real | Integer) -> Schema:
    """Return the schema of the finite values of a number."""
    if isinstance(parameter, Integer):
        return {"type": "integer", "minimum": parameter.lower, "maximum": parameter.upper}
    lower = "exclusiveMinimum" if parameter.lower_open else "minimum"
    upper = "exclusiveMaximum" if parameter.upper_open else "maximum"
    return {"type": "number", lower: parameter.lower, upper: parameter.upper}


def _rules(parameter: Real | Integer) -> Schema:
    """Return the schema of a table with one rule."""
    end = _interval(parameter)
    whole = "integer" if isinstance(parameter, Integer) else "number"
    count = {"type": "integer", "minimum": 2, "maximum": _LARGEST}
    step = {"type": whole, "exclusiveMinimum": 0, "maximum": _LARGEST}
    above = {"exclusiveMinimum": max(0, end.get("exclusiveMinimum", 0))}
    tuples = {"linear": [end, end, count], "geometric": [end | above, end, count], "range": [end, end, step]}
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": {
            rule: {
                "description": f"{RULE_TEXTS[rule]}: [{numbers}].",
                "type": "array",
                "prefixItems": tuples[rule],
                "items": {"type": "number"},
                "minItems": 3,
                "maxItems": 3,
            }
            for rule, numbers in RULES.items()
        },
    }


RULE_TEXTS = {
    "linear": "Values at equal distances, both ends included",
    "geometric": "Values with equal ratios, both ends included",
    "range": "Values from the first in equal steps, none above the last",
}
