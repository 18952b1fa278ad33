"""Lookup: what the stored brackets prove about a problem, on the grid and off it, without interpolation."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from privcore.parameter import Value
from privcore.problem import Problem, Trend
from storage.errors import StoreError
from storage.views import quoted, view_name


@dataclass(frozen=True, kw_only=True)
class Found:
    """A rigorous bracket from the store.

    Attributes:
        lower: No truth lies below; 0 where nothing stored says more.
        upper: No truth lies above; infinity where nothing stored says more.
        exact: Whether the problem itself is stored.
        lower_from: Fields of the stored problem that gave the lower end, or None.
        upper_from: Fields of the stored problem that gave the upper end, or None.
        lower_method: Method that gave the lower end, or None.
        upper_method: Method that gave the upper end, or None.
    """

    lower: float
    upper: float
    exact: bool
    lower_from: Mapping[str, Value] | None
    upper_from: Mapping[str, Value] | None
    lower_method: str | None
    upper_method: str | None


def lookup(connection: duckdb.DuckDBPyConnection, problem: Problem) -> Found | None:
    """Return the best bracket that stored brackets and proved monotonicity give, or None without any.

    A stored problem is a corner above where every field in which the truth is proved monotone is no better
    and every other field is equal; its upper end holds here as well. Corners below give the lower end.

    Args:
        connection: A snapshot.
        problem: The question.

    Raises:
        StoreError: Two stored brackets contradict one another, so that neither can be trusted.
    """
    try:
        lower, lower_method, lower_from = _best_corner(connection, problem, "lower")
        upper, upper_method, upper_from = _best_corner(connection, problem, "upper")
    except duckdb.CatalogException:  # no method for this problem, and no row of it
        return None
    if lower_from is None and upper_from is None:
        return None
    if lower > upper:
        raise StoreError(
            f"The store contradicts itself about {problem.name}: {lower_method} proved at least {lower!r} "
            f"for {lower_from}, {upper_method} at most {upper!r} for {upper_from}; see the view conflicts."
        )
    fields = problem.as_fields()
    return Found(
        lower=lower,
        upper=upper,
        exact=fields in (lower_from, upper_from) or _is_stored(connection, problem),
        lower_from=lower_from,
        upper_from=upper_from,
        lower_method=lower_method,
        upper_method=upper_method,
    )


def _best_corner(
    connection: duckdb.DuckDBPyConnection, problem: Problem, end: str
) -> tuple[float, str | None, dict[str, Value] | None]:
    """Return the end that the best corner on one side gives, its method and its fields."""
    names = list(problem.parameters)
    corner = " and ".join(f'"{name}" {_relation(problem, name, end)} ?' for name in names)
    values = list(problem.as_fields().values())
    row = connection.execute(
        f"""
        select {end}, {end}_method, {quoted(names)}
        from brackets."{view_name(problem.name)}"
        where {corner} and {end}_method is not null
        order by {end} {"asc" if end == "upper" else "desc"}, ({_equal(names)}) desc, {quoted(names)}
        limit 1
        """,
        values + values,
    ).fetchone()
    if row is None:
        return (math.inf if end == "upper" else 0.0), None, None
    return row[0], row[1], dict(zip(names, row[2:], strict=True))


def _relation(problem: Problem, name: str, end: str) -> str:
    """Return how a corner's field compares with the question's."""
    if name not in problem.monotone:
        return "="
    grows = problem.monotone[name].trend is Trend.INCREASING
    return ">=" if grows == (end == "upper") else "<="


def _is_stored(connection: duckdb.DuckDBPyConnection, problem: Problem) -> bool:
    condition = _equal(list(problem.parameters))
    query = f'select 1 from brackets."{view_name(problem.name)}" where {condition} limit 1'
    return connection.execute(query, list(problem.as_fields().values())).fetchone() is not None


def _equal(names: list[str]) -> str:
    return " and ".join(f'"{name}" = ?' for name in names)
