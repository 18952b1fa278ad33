"""Data of the page: a catalogue of problems, and for each problem the columns of its stored brackets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.catalogue import meaning_of
from flows.answers.typical import typical_row
from flows.page.statements import SENTENCES, neighbours_of
from flows.page.symbols import asked, plain
from flows.page.tabs import COMPARED, ENGINE, TABS
from privcore import METHODS, Problem
from privcore.parameter import Choice, Integer, Parameter, Real
from privcore.problem import Constraint
from privcore.registry import versions
from privcore.training import MORE_STEPS, SIZES, sampler_of
from storage import Store

_ENDS = ("lower", "upper", "lower_method", "upper_method", "lower_point", "upper_point")
_STATED = ("lower", "upper", "confidence", "method", "point")


@dataclass(frozen=True, kw_only=True)
class ProblemTable:
    """The stored answers to one problem.

    Attributes:
        kind: The problem.
        tie: How a lookup chooses among equal ends: `nearest` corner, or the `first` row.
        brackets: Columns of the best rigorous brackets, sorted by the fields.
        stated: Columns of answers with a confidence below 1, which hold only for their own problem.
        date: Date of the latest answer.
    """

    kind: type[Problem]
    tie: str
    brackets: Mapping[str, Sequence[Any]]
    stated: Mapping[str, Sequence[Any]]
    date: str

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.brackets["lower"]) + len(self.stated["lower"])

    @property
    def methods(self) -> list[str]:
        """Names of the methods of the answers."""
        names = {*self.brackets["lower_method"], *self.brackets["upper_method"], *self.stated["method"]}
        return sorted(names - {None})


def tables(store: Store) -> list[ProblemTable]:
    """Return the stored answers of each problem that has answers, in the order of the registry."""
    stored = set(store.sql("select distinct problem from results where status = 'ok'")["problem"].to_pylist())
    found = (_table(store, kind) for tab in TABS for kind in tab.problems if kind.name in stored)
    return [table for table in found if table.rows]


def _table(store: Store, kind: type[Problem]) -> ProblemTable:
    view, names = kind.name.replace("-", "_"), list(kind.parameters)
    fields = ", ".join(f'"{name}"' for name in names)
    tabulated = store.sql(f'select count(*) as n from axes."{view}"')["n"].to_pylist()[0]
    brackets = store.sql(f'select {fields}, {", ".join(_ENDS)} from brackets."{view}" order by {fields}')
    current = " or ".join(f"(method = '{name}' and method_version >= {n})" for name, n in versions().items())
    stated = store.sql(
        f"""
        select {fields}, lower, upper, confidence, method, point_id as point from "{view}"
        where status = 'ok' and confidence < 1 and (lower > 0 or upper < 'inf') and ({current})
        order by {fields}, method, point
        """
    )
    date = store.sql(f"select max(finished_at)::varchar as t from \"{view}\" where status = 'ok'")
    return ProblemTable(
        kind=kind,
        tie="nearest" if tabulated else "first",
        brackets=_columns(brackets, [*names, *_ENDS]),
        stated=_columns(stated, [*names, *_STATED]),
        date=(date["t"].to_pylist()[0] or "")[:10],
    )


def _without_rows(kind: type[Problem]) -> ProblemTable:
    """Return a table for a problem whose answers only the browser computes."""
    ends: dict[str, Sequence[Any]] = {name: [] for name in (*kind.parameters, *_ENDS)}
    stated: dict[str, Sequence[Any]] = {name: [] for name in (*kind.parameters, *_STATED)}
    return ProblemTable(kind=kind, tie="first", brackets=ends, stated=stated, date="")


def _columns(table: Any, names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: table[name].to_pylist() for name in names}


def content(table: ProblemTable) -> dict[str, list[Any]]:
    """Return the columns of a problem: its brackets, then its answers with a confidence below 1."""
    brackets, stated = table.brackets, table.stated
    columns = {name: [*brackets[name], *stated[name]] for name in (*table.kind.parameters, "lower", "upper")}
    columns["confidence"] = [1.0] * len(brackets["lower"]) + list(stated["confidence"])
    for end in ("lower", "upper"):
        columns[f"{end}_method"] = [*brackets[f"{end}_method"], *stated["method"]]
        columns[f"{end}_point"] = [*brackets[f"{end}_point"], *stated["point"]]
    return columns


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
    shown = {kind.name: stored.get(kind.name) or _without_rows(kind) for kind in kinds}
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
        "compare": COMPARED,
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
                "trend": kind.monotone[name].trend.value if name in kind.monotone else 0,
                "proof": kind.monotone[name].proof if name in kind.monotone else "",
                "typical": [] if table.rows else _typical(parameter),
                **_domain(parameter),
            }
            for name, parameter in kind.parameters.items()
        ],
    }


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
