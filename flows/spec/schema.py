"""JSON Schema of the TOML format of sweeps: editors complete and explain keys, and mark mistakes.

Editors of TOML complete the keys in `properties`, `anyOf` and `$ref`, and ignore conditions. A grid therefore
declares the methods and fields of all problems, and conditions on its problem exclude those of the others.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flows.spec.condition import LONGEST
from flows.spec.fields import REPLACED, fields_of
from flows.spec.sweep import LONGEST_TITLE, NAME
from flows.spec.value_schema import Schema, axis, value
from privcore.method import Method
from privcore.parameter import Parameter, Value
from privcore.problem import Problem
from privcore.registry import METHODS, PROBLEMS, answering
from privcore.training import sampler_of
from tasks.guard import POINT_BYTES, POINT_SECONDS, Limits

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXTS = {
    "sweep": "A sweep of privsweep: grids of problems, and the methods that answer them.",
    "name": "Name of the sweep: lower-case letters, digits, - and _, at most 64.",
    "title": f"One line about the sweep, at most {LONGEST_TITLE} characters.",
    "limits": "Limits of one point. A point whose estimate exceeds them is not started.",
    "grid": "Grids of points: each method of a grid answers all of its problems.",
    "problem": "Name of the problem.",
    "methods": "Methods: names, or tables of a name and options.",
    "product": "Values of fields; every combination is a problem.",
    "zip": "Values of fields that advance together: lists of the same length.",
    "where": f"Condition that the fields of a point satisfy, at most {LONGEST} characters: comparisons of "
    "names, numbers and quoted words, with + - * / // % **, joined by and, or, not.",
}
"""Descriptions of the keys of a sweep and of a grid."""

Declared = tuple[Parameter, Value | None]
"""A parameter and its default; None if a value is required."""


def schema() -> Schema:
    """Return the schema of a sweep file, draft 2020-12, in JSON types."""
    fields = _variants((fields_of(kind), kind.defaults()) for kind in PROBLEMS)
    limits = {parameter.name: parameter for parameter in (POINT_SECONDS, POINT_BYTES)}
    title = {"type": "string", "maxLength": LONGEST_TITLE, "pattern": "^[^\\u0000-\\u001f\\u007f]*$"}
    return {
        "$schema": DRAFT,
        "title": "Sweep",
        **_text("sweep"),
        "type": "object",
        "required": ["name", "grid"],
        "additionalProperties": False,
        "properties": {
            "name": _text("name") | {"type": "string", "pattern": f"^{NAME.pattern}$"},
            "title": _text("title") | title,
            "limits": {
                **_text("limits"),
                "type": "object",
                "additionalProperties": False,
                "properties": {name: value(each, getattr(Limits(), name)) for name, each in limits.items()},
            },
            "grid": _text("grid") | {"type": "array", "minItems": 1, "items": _reference("grid")},
        },
        "$defs": {
            "grid": _grid(fields),
            **{f"problem.{kind.name}": _problem(kind, fields) for kind in PROBLEMS},
            **{f"options.{kind.name}": _options(kind) for kind in METHODS},
            **{_key(name, k): axis(*each) for name, some in fields.items() for k, each in enumerate(some)},
            **{f"required.{name}": _in_one_table(name, required=True) for name in fields},
            **{f"optional.{name}": _in_one_table(name, required=False) for name in fields},
        },
    }


def _grid(fields: Mapping[str, Sequence[Declared]]) -> Schema:
    """Return the schema of a grid, with the keys of all problems and conditions on the problem."""
    axes = {name: _any(_reference(_key(name, k)) for k in range(len(some))) for name, some in fields.items()}
    options = _variants((kind.knobs, vars(kind())) for kind in METHODS)
    table = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": _names("methods", METHODS)}
        | {name: _any(value(*each) for each in some) for name, some in options.items()},
    }
    methods = {"anyOf": [_names("methods", METHODS), table]}
    return {
        **_text("grid"),
        "type": "object",
        "required": ["problem", "methods"],
        "additionalProperties": False,
        "properties": {
            "problem": _names("problem", PROBLEMS),
            "methods": {
                **_text("methods"),
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": methods,
            },
            "product": _text("product") | {"type": "object", "properties": axes},
            "zip": _text("zip") | {"type": "object", "properties": axes},
            "where": _text("where") | {"type": "string", "minLength": 1, "maxLength": LONGEST},
        },
        "if": {"required": ["problem"]},
        "then": _cases("problem", {kind.name: _reference(f"problem.{kind.name}") for kind in PROBLEMS}),
    }


def _problem(kind: type[Problem], fields: Mapping[str, Sequence[Declared]]) -> Schema:
    """Return the schema of a grid of this problem: its methods, and each of its fields in one table."""
    defaults = kind.defaults()
    names = [method.name for method in answering(kind)]
    options = _cases("name", {name: _reference(f"options.{name}") for name in names})
    method: Schema = {"if": {"type": "string"}, "then": {"enum": names}}
    method["else"] = {"properties": {"name": {"enum": names}}} | options
    axes = {
        "properties": {
            name: _reference(_key(name, fields[name].index((parameter, defaults.get(name)))))
            for name, parameter in fields_of(kind).items()
        },
        "additionalProperties": False,
    }
    return {
        "title": kind.name,
        "description": first_paragraph(kind),
        "properties": {
            "methods": {"items": method},
            "product": axes,
            "zip": axes,
        },
        "allOf": [*_presence(kind)],
    }


def _presence(kind: type[Problem]) -> Iterator[Schema]:
    """Yield the conditions that each field of a grid is in one table, and the required ones in any."""
    defaults, sampler = kind.defaults(), sampler_of(kind)
    for name in fields_of(kind):
        optional = name in defaults or name not in kind.parameters
        if sampler and name in REPLACED and not optional:
            sized = {"if": _given("batch_size"), "then": _reference(f"optional.{name}")}
            yield sized | {"else": _reference(f"required.{name}")}
        else:
            yield _reference(f"{'optional' if optional else 'required'}.{name}")
    if sampler and "batch_size" not in kind.parameters:
        yield {"if": _given("batch_size"), "then": _given("examples")}


def _given(field: str) -> Schema:
    """Return the condition that a field is in one of the two tables."""
    return {
        "anyOf": [
            {"required": [table], "properties": {table: {"required": [field]}}}
            for table in ("product", "zip")
        ]
    }


def _in_one_table(field: str, *, required: bool) -> Schema:
    """Return the condition that at most one of `product` and `zip` has a field, and one a required field."""
    rule: Schema = {
        "if": {"required": ["zip"], "properties": {"zip": {"required": [field]}}},
        "then": {"properties": {"product": {"not": {"required": [field]}}}},
    }
    if required:
        rule["else"] = {"required": ["product"], "properties": {"product": {"required": [field]}}}
    return rule


def _options(kind: type[Method]) -> Schema:
    """Return the schema of a table with the name and the options of a method."""
    options = {name: value(option, getattr(kind(), name)) for name, option in kind.knobs.items()}
    return {
        "title": kind.name,
        "description": first_paragraph(kind),
        "properties": {"name": {"const": kind.name}, **options},
        "additionalProperties": False,
    }


def _cases(key: str, schemas: Mapping[str, Schema]) -> Schema:
    """Return the schema that depends on the value of a key."""
    return {"allOf": [{"if": {"properties": {key: {"const": n}}}, "then": s} for n, s in schemas.items()]}


def _names(key: str, kinds: Sequence[type[Problem] | type[Method]]) -> Schema:
    """Return the schema of a name, with a sentence about each name for the editors that show it."""
    docs = {"main": TEXTS[key], "enumValues": [first_paragraph(kind) for kind in kinds]}
    return _text(key) | {"enum": [kind.name for kind in kinds], "x-taplo": {"docs": docs}}


def _text(key: str) -> Schema:
    return {"description": TEXTS[key]}


def _any(schemas: Iterable[Schema]) -> Schema:
    """Return the schema of values that satisfy at least one of these."""
    first, *others = schemas
    return {"anyOf": [first, *others]} if others else first


def _variants(
    declared: Iterable[tuple[Mapping[str, Parameter], Mapping[str, Any]]],
) -> dict[str, list[Declared]]:
    """Return the different parameters and defaults that each name has."""
    found: dict[str, list[Declared]] = {}
    for parameters, defaults in declared:
        for name, parameter in parameters.items():
            some = found.setdefault(name, [])
            if (each := (parameter, defaults.get(name))) not in some:
                some.append(each)
    return found


def _key(name: str, variant: int) -> str:
    """Return the key of a definition of a field."""
    return f"field.{name}" if variant == 0 else f"field.{name}-{variant + 1}"


def _reference(key: str) -> Schema:
    return {"$ref": f"#/$defs/{key}"}


def first_paragraph(kind: type[Problem] | type[Method]) -> str:
    """Return the first paragraph of a docstring: the question of a problem, or the claim of a method."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
