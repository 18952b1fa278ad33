"""Catalogue of the page: its tabs, problems and methods."""

from collections.abc import Mapping, Sequence
from typing import Any

from flows.answers.catalogue import meaning_of, typical_row
from flows.answers.show import NEIGHBOURS
from flows.page.statements import SENTENCES, neighbours_of
from flows.page.stored import ProblemTable, without_rows
from flows.page.symbols import asked, plain
from flows.page.tabs import ENGINE, TABS
from privcore import METHODS, Problem
from privcore.constraint import Constraint
from privcore.parameter import Choice, Integer, Parameter, Real, Text
from privcore.training import MORE_STEPS, SIZES, sampler_of


def catalogue(
    found: Sequence[ProblemTable], files: Mapping[str, str], version: str, release: str
) -> dict[str, Any]:
    """Return the catalogue, which the page loads first.

    Args:
        found: The stored answers.
        files: Address of the data of each problem with rows.
        version: Version of the lookup table.
        release: Version of this package.
    """
    stored = {table.kind.name: table for table in found}
    kinds = [kind for tab in TABS for kind in tab.problems if kind.name in stored or kind.name in ENGINE]
    shown = {kind.name: stored.get(kind.name) or without_rows(kind) for kind in kinds}
    used = {name for table in found for name in table.methods}
    return {
        "release": release,
        "version": version,
        "date": max((table.date for table in found), default=""),
        "rows": sum(table.rows for table in found),
        "tabs": [
            {
                "name": tab.name,
                "title": tab.title,
                "sweep": tab.sweep,
                "problems": [kind.name for kind in tab.problems if kind.name in shown],
            }
            for tab in TABS
        ],
        "problems": {
            name: _problem(table) | {"file": files.get(name), "rows": table.rows}
            for name, table in shown.items()
        },
        "methods": {
            method.name: {
                "direction": method.direction.value,
                "reference": method.reference,
                "version": method.version,
            }
            for method in METHODS
            if method.name in used
        },
        "statement": SENTENCES,
    }


def _problem(table: ProblemTable) -> dict[str, Any]:
    kind = table.kind
    defaults = kind.defaults()
    return {
        "name": kind.name,
        "asks": kind.asks,
        "symbol": plain(asked(kind.asks)) or kind.asks,
        "latex": asked(kind.asks),
        "meaning": meaning_of(kind),
        "largest": kind.largest,
        "rounded": _rounded(kind),
        "tie": table.tie,
        "methods": table.methods,
        "constraints": [each.as_content() for each in constraints(kind)],
        "start": _start(table),
        "neighbours": neighbours_of(kind),
        "relation": _relation(kind),
        "convex": dict(kind.exp_convex),
        "axes": [
            {
                "factors": axis.factors,
                "trend": axis.monotone.trend.value if axis.monotone else 0,
                "proof": axis.monotone.proof if axis.monotone else "",
            }
            for axis in kind.lookup_axes()
        ],
        "fields": [
            {
                "name": name,
                "symbol": plain(parameter.symbol),
                "latex": parameter.symbol,
                "unit": "" if parameter.unit == "1" else parameter.unit,
                "meaning": parameter.meaning,
                "domain": parameter.domain,
                "default": defaults.get(name),
                **_stated(kind, name),
                "trend": kind.monotone[name].trend.value if name in kind.monotone else 0,
                "proof": kind.monotone[name].proof if name in kind.monotone else "",
                "typical": [] if table.rows else _typical(parameter),
                **_domain(parameter),
                **_assumed(table, name, parameter),
            }
            for name, parameter in kind.parameters.items()
        ],
    }


def _relation(kind: type[Problem]) -> dict[str, str] | None:
    """Return the neighbouring relation of an audit for coins of inclusion and for records, in words."""
    if kind.relation is Problem.relation:
        return None
    return {"inclusion": NEIGHBOURS["add-remove"], "records": NEIGHBOURS["replace-one"]}


def _rounded(kind: type[Problem]) -> str | None:
    """Return the safe rounding of the steps that follow from examples and batch size; None without sizes."""
    sampler = sampler_of(kind)
    if sampler is None or SIZES.keys() & kind.parameters.keys():
        return None
    return "up" if sampler in MORE_STEPS else "down"


def constraints(kind: type[Problem]) -> list[Constraint]:
    """Return the constraints of a problem that compare only fields, without properties of its class."""
    return [each for each in kind.constraints if each.names <= set(kind.parameters)]


def _domain(parameter: Parameter) -> dict[str, Any]:
    """Return the domain of a parameter in JSON types."""
    match parameter:
        case Real():
            return {
                "kind": "real",
                "lower": parameter.lower,
                "upper": parameter.upper,
                "lower_open": parameter.lower_open,
                "upper_open": parameter.upper_open,
                "infinite": parameter.infinite,
            }
        case Integer():
            return {"kind": "integer", "lower": parameter.lower, "upper": parameter.upper}
        case Choice():
            return {"kind": "choice", "choices": list(parameter.choices)}
    return {"kind": "text"}


def _assumed(table: ProblemTable, name: str, parameter: Parameter) -> dict[str, dict[str, str]]:
    """Return the assumptions behind stored texts that take a column of a file as a distribution."""
    if not isinstance(parameter, Text) or parameter.assumes is None:
        return {}
    texts = sorted({*table.brackets[name], *table.stated[name]})
    found = {text: said for text in texts if (said := parameter.assumes(text))}
    return {"assumed": found} if found else {}


def _stated(kind: type[Problem], name: str) -> dict[str, Any]:
    """Return the reason to state a field, and its values other than the default; empty if it is optional."""
    return {"stated": kind.stated[name], "others": kind.others(name)} if name in kind.stated else {}


def _typical(parameter: Parameter) -> list[Any]:
    """Return typical values, in order, over which sliders move if nothing is stored."""
    values = parameter.typical_values()
    return sorted(values) if isinstance(parameter, Real | Integer) else list(values)


def _start(table: ProblemTable) -> dict[str, Any]:
    """Return the problem that the page shows first: a stored one, or else one of middle values."""
    if not table.rows:
        values = {name: _typical(parameter) for name, parameter in table.kind.parameters.items()}
        middle = {
            name: values[name][len(values[name]) // 2 if isinstance(parameter, Real | Integer) else 0]
            for name, parameter in table.kind.parameters.items()
        }
        return middle | table.kind.defaults()
    source = table.brackets if table.brackets["lower"] else table.stated
    row = typical_row(table.kind, source)
    return {name: source[name][row] for name in table.kind.parameters}
