"""The stored answers of the page: for each problem, the columns of its brackets and of its simulations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flows.answers.sweep_table import ENDS
from flows.page.tabs import TABS
from privcore import Problem
from privcore.registry import used_versions
from storage import Store
from storage.schema import IMPORTS

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
        sources: The lookup table of each row that came from one, by the row's id.
    """

    kind: type[Problem]
    tie: str
    brackets: Mapping[str, Sequence[Any]]
    stated: Mapping[str, Sequence[Any]]
    date: str
    sources: Mapping[str, str] = field(default_factory=dict)

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
    sources = store.tables()
    found = (_table(store, kind, sources) for tab in TABS for kind in tab.problems if kind.name in stored)
    return [table for table in found if table.rows]


def _table(store: Store, kind: type[Problem], sources: Mapping[str, str]) -> ProblemTable:
    view, names = kind.name.replace("-", "_"), list(kind.parameters)
    fields = ", ".join(f'"{name}"' for name in names)
    tabulated = store.sql(f'select count(*) as n from axes."{view}"')["n"].to_pylist()[0]
    brackets = store.sql(f'select {fields}, {", ".join(ENDS)} from brackets."{view}" order by {fields}')
    current = " or ".join(
        f"(method = '{name}' and method_version >= {n})" for name, n in used_versions().items()
    )
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
        brackets=_columns(brackets, [*names, *ENDS]),
        stated=_columns(stated, [*names, *_STATED]),
        date=(date["t"].to_pylist()[0] or "")[:10],
        sources=sources,
    )


def without_rows(kind: type[Problem]) -> ProblemTable:
    """Return a table for a problem whose answers only the browser computes."""
    ends: dict[str, Sequence[Any]] = {name: [] for name in (*kind.parameters, *ENDS)}
    stated: dict[str, Sequence[Any]] = {name: [] for name in (*kind.parameters, *_STATED)}
    return ProblemTable(kind=kind, tie="first", brackets=ends, stated=stated, date="")


def _columns(table: Any, names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: table[name].to_pylist() for name in names}


def content(table: ProblemTable) -> dict[str, list[Any]]:
    """Return the columns of a problem to download: its brackets, then its answers with a confidence below 1.

    Two more columns name the lookup tables of rows that came from one, if there are any.
    """
    brackets, stated = table.brackets, table.stated
    columns = {name: [*brackets[name], *stated[name]] for name in (*table.kind.parameters, "lower", "upper")}
    columns["confidence"] = [1.0] * len(brackets["lower"]) + list(stated["confidence"])
    for end in ("lower", "upper"):
        columns[f"{end}_method"] = [*brackets[f"{end}_method"], *stated["method"]]
        columns[f"{end}_point"] = points = [*brackets[f"{end}_point"], *stated["point"]]
        if not table.sources.keys().isdisjoint(points):
            columns[f"{end}_{IMPORTS}"] = [table.sources.get(point) for point in points]
    return columns


def browser_content(table: ProblemTable, columns: Mapping[str, list[Any]]) -> dict[str, dict[str, list[Any]]]:
    """Return the columns of `content` for the browser: brackets, and answers with a confidence below 1.

    A method is its number in the catalogue, or -1; "=" is the id of an upper row that is also the lower row.
    """
    columns, number = dict(columns), {None: -1} | {name: k for k, name in enumerate(table.methods)}
    for name in ("lower_method", "upper_method"):
        columns[name] = [number[method] for method in columns[name]]
    ids = zip(columns["lower_point"], columns["upper_point"], strict=True)
    columns["upper_point"] = ["=" if upper == lower else upper for lower, upper in ids]
    first = len(table.brackets["lower"])
    return {
        "brackets": {name: values[:first] for name, values in columns.items()},
        "stated": {name: values[first:] for name, values in columns.items()},
    }
