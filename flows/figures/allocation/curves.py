"""What a store holds for a figure: the curves of each panel, and what is missing for them."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.figures.allocation.paper import Figure
from flows.figures.allocation.series import Series, Shows
from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import Point, Problem, Status
from privcore.answer import FAILURES
from privcore.parameter import Parameter, Value
from storage import open_store

Row = Mapping[str, Any]

_ENDS = {
    Shows.BRACKET: ("lower", "upper"),
    Shows.UPPER: ("upper",),
    Shows.LOWER: ("lower",),
    Shows.VALUE: ("value",),
    Shows.SPREAD: ("value", "lower", "upper"),
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A series in one panel.

    Attributes:
        series: What it is.
        x: Coordinates, rising.
        ends: One tuple as long as `x` for each number that is drawn: lower and upper of a bracket, value with
            lower and upper of a spread, else one. NaN where no answer is stored, infinite where it is void.
    """

    series: Series
    x: tuple[float, ...]
    ends: tuple[tuple[float, ...], ...]

    @property
    def empty(self) -> bool:
        """Whether no end says anything: 0 is a trivial lower one, and has no place on a logarithmic axis."""
        return not any(0.0 < end < math.inf for ends in self.ends for end in ends)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes.

    Attributes:
        fields: What tells it from the other panels.
        curves: In the order of the legend; empty ones are left out.
    """

    fields: Mapping[str, Value]
    curves: tuple[Curve, ...]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure with everything that is drawn.

    Attributes:
        figure: Which one.
        title: Of its sweep.
        asks: The quantity on the vertical axis, such as epsilon.
        parameters: Every field of its problems, by name.
        fixed: Fields that have one value in the whole figure.
        panels: In the order of the sweep.
        points: Number of points of the sweep.
        missing: Number of points that are not stored, by method.
        failed: Number of points that are stored without an answer though the method applies, by method.
    """

    figure: Figure
    title: str
    asks: str
    parameters: Mapping[str, Parameter]
    fixed: Mapping[str, Value]
    panels: tuple[Panel, ...]
    points: int
    missing: Mapping[str, int]
    failed: Mapping[str, int]

    @property
    def empty(self) -> bool:
        """Whether nothing of it is stored."""
        return sum(self.missing.values()) == self.points


def picture(figure: Figure, store: Path) -> Picture:
    """Return a figure with what is stored for it; nothing is computed.

    Args:
        figure: Which one.
        store: Folder of the store; it need not exist.

    Raises:
        StoreError: The store cannot be read.
    """
    sweep = load(figure.sweep)
    points = list(expand(sweep.grids))
    rows = stored_rows(points, store)
    statuses = {point.id: rows[point.id]["status"] for point in points if point.id in rows}
    return Picture(
        figure=figure,
        title=sweep.title,
        asks=points[0].problem.asks,
        parameters={name: one for point in points for name, one in point.problem.parameters.items()},
        fixed=_fixed(figure, [point.problem for point in points]),
        panels=tuple(_panels(figure, points, rows)),
        points=len(points),
        missing=Counter(p.method.name for p in points if p.id not in statuses),
        failed=Counter(p.method.name for p in points if statuses.get(p.id) in FAILURES),
    )


def stored_rows(points: Sequence[Point], store: Path) -> dict[str, Row]:
    """Return the stored answers of points, by point id."""
    if not store.exists():
        return {}
    ids = ", ".join(f"'{point.id}'" for point in points)
    query = f"select point_id, lower, upper, value, status from results where point_id in ({ids})"
    with open_store(store) as opened:
        table = opened.sql(query)
    return {row["point_id"]: row for row in table.to_pylist()}


def coordinate(problem: Problem, field: str) -> float:
    """Return where a problem stands on the horizontal axis.

    Poisson sampling has no fixed number of participations; the expected number stands in for it.
    """
    fields = problem.as_fields()
    if field == "participations" and field not in fields:
        return float(fields["sampling_probability"]) * float(fields["steps"])
    return float(fields[field])


def _fixed(figure: Figure, problems: Sequence[Problem]) -> dict[str, Value]:
    """Return the fields that never change, but for those that nobody wrote: they have their defaults."""
    varied = {figure.x, *figure.panels, "adjacency"}
    values: dict[str, set[Value]] = {}
    for problem in problems:
        for name, value in problem.identity().items():
            values.setdefault(name, set()).add(value)
    return {name: min(some) for name, some in values.items() if len(some) == 1 and name not in varied}


def _panels(figure: Figure, points: Sequence[Point], rows: Mapping[str, Row]) -> Iterator[Panel]:
    """Yield the panels, each with its curves."""
    keys = dict.fromkeys(_key(figure, point) for point in points)
    for key in keys:
        inside = [point for point in points if _key(figure, point) == key]
        curves = [_curve(figure, series, inside, rows) for series in figure.series]
        yield Panel(
            fields=dict(zip(figure.panels, key, strict=True)), curves=tuple(c for c in curves if not c.empty)
        )


def _key(figure: Figure, point: Point) -> tuple[Value, ...]:
    fields = point.problem.as_fields()
    return tuple(fields[name] for name in figure.panels)


def belongs(point: Point, series: Series, figure: Figure) -> bool:
    """Return whether a series of a figure draws a point."""
    scheme = point.problem.name.removesuffix(f"-{point.problem.asks}")
    adjacency = point.problem.as_fields().get("adjacency", series.adjacency)
    same = adjacency == series.adjacency or "adjacency" in figure.panels
    return same and (scheme, point.method.name) == (series.scheme, series.method)


def _curve(figure: Figure, series: Series, points: Sequence[Point], rows: Mapping[str, Row]) -> Curve:
    """Return what is stored of a series, in the order of x."""
    places = [(coordinate(p.problem, figure.x), rows.get(p.id)) for p in points if belongs(p, series, figure)]
    places.sort(key=lambda place: place[0])
    return Curve(
        series=series,
        x=tuple(x for x, _ in places),
        ends=tuple(tuple(_end(row, name) for _, row in places) for name in _ENDS[series.shows]),
    )


def _end(row: Row | None, name: str) -> float:
    """Return an end of an answer; NaN, a gap in the curve, where there is none."""
    if row is None or row["status"] != Status.OK or row[name] is None:
        return math.nan
    return float(row[name])
