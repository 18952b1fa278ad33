"""Panels of curves over one field of the problems, built from the stored points of a sweep."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from flows.figures.allocation.series import Series, Shows
from flows.figures.figure import Figure
from flows.figures.panels import Kind, Panel, Trace, tex
from flows.figures.stored import Row, Stored
from flows.spec.sweep import load
from privcore import Point, Problem, Status
from privcore.parameter import Value

_WORDS = {"sigma": "noise multiplier", "epsilon": "privacy parameter"}
_QUANTITIES = {"epsilon": r"privacy parameter $\varepsilon$", "delta": r"$\delta$", "error": "squared error"}
_ENDS = {
    Shows.BRACKET: ("upper", "lower"),
    Shows.UPPER: ("upper",),
    Shows.LOWER: ("lower",),
    Shows.VALUE: ("value",),
    Shows.SPREAD: ("value", "lower", "upper"),
}
_STYLES = {Shows.LOWER: ":", Shows.VALUE: "--"}
_LAYERS = {Shows.UPPER: 2, Shows.BRACKET: 3}


@dataclass(frozen=True, kw_only=True)
class Curves:
    """The points of a sweep as curves, one for each series in each panel.

    Attributes:
        number: Number of the figure in the paper.
        x: Field of the problems on the horizontal axis.
        series: The curves, in the order of the legend.
        split: Fields whose values distinguish the panels.
        scales: Scales of the horizontal and the vertical axis, `log` or `linear`.
        shares_y: Whether the panels have the same vertical axis.
        closer: Ends of the vertical axis, then linear, of a second panel with the same curves, or None.
    """

    number: int
    x: str
    series: tuple[Series, ...]
    split: tuple[str, ...] = ()
    scales: tuple[str, str] = ("log", "log")
    shares_y: bool = False
    closer: tuple[float, float] | None = None

    @property
    def sweep(self) -> str:
        """Name of the sweep."""
        return f"figure{self.number}"

    @property
    def figure(self) -> Figure:
        """The figure with these curves."""
        return Figure(
            name=str(self.number),
            title=self.title,
            panels=self.panels,
            sweeps=(self.sweep,),
            legend_below=True,
            shares_y=self.shares_y,
        )

    def title(self, stored: Stored) -> str:
        """Return number and title of the figure, with the fields that have the same value everywhere."""
        problems = [point.problem for point in stored.points]
        symbols = {name: one.symbol for each in problems for name, one in each.parameters.items()}
        fixed = ", ".join(_equation(symbols[name], value) for name, value in self.fixed(problems).items())
        return "\n".join([f"Figure {self.number}. {load(self.sweep).title}", *([fixed] if fixed else [])])

    def fixed(self, problems: Sequence[Problem]) -> dict[str, Value]:
        """Return the fields with one value everywhere, except fields at their defaults."""
        varied = {self.x, *self.split, "adjacency"}
        values: dict[str, set[Value]] = {}
        for problem in problems:
            for name, value in problem.identity().items():
                values.setdefault(name, set()).add(value)
        return {name: min(some) for name, some in values.items() if len(some) == 1 and name not in varied}

    def panels(self, stored: Stored) -> tuple[tuple[Panel, ...], ...]:
        """Return the panels in the order of the sweep, in two rows if there are four."""
        inside: dict[tuple[Value, ...], list[Point]] = {}
        for point in stored.points:
            fields = point.problem.as_fields()
            inside.setdefault(tuple(fields[name] for name in self.split), []).append(point)
        columns = 2 if len(inside) == 4 else len(inside)
        panels = []
        for place, (key, points) in enumerate(inside.items()):
            symbols = points[0].problem.parameters
            panels.append(
                Panel(
                    title=", ".join(
                        _equation(symbols[name].symbol, value)
                        for name, value in zip(self.split, key, strict=True)
                    ),
                    x_label=self._x_label(points) if place >= len(inside) - columns else "",
                    y_label=_QUANTITIES[points[0].problem.asks] if place % columns == 0 else "",
                    traces=tuple(t for each in self.series for t in self._traces(each, points, stored.rows)),
                    scales=self.scales,
                )
            )
        if self.closer is not None:
            near = replace(panels[0], y_label="", scales=(self.scales[0], "linear"), y_limits=self.closer)
            return ((panels[0], near),)
        return tuple(tuple(panels[i : i + columns]) for i in range(0, len(panels), columns))

    def belongs(self, point: Point, series: Series) -> bool:
        """Return whether a series draws a point."""
        scheme = point.problem.name.removesuffix(f"-{point.problem.asks}")
        adjacency = point.problem.as_fields().get("adjacency", series.adjacency)
        same = adjacency == series.adjacency or "adjacency" in self.split
        return same and (scheme, point.method.name) == (series.scheme, series.method)

    def coordinate(self, problem: Problem) -> float:
        """Return the position of a problem on the horizontal axis.

        Poisson sampling has no fixed number of participations; the expected number is used instead.
        """
        fields = problem.as_fields()
        if self.x == "participations" and self.x not in fields:
            return float(fields["sampling_probability"]) * float(fields["steps"])
        return float(fields[self.x])

    def _x_label(self, points: Sequence[Point]) -> str:
        """Return name and symbol of the field on the horizontal axis."""
        symbol = next(p.problem.parameters[self.x].symbol for p in points if self.x in p.problem.parameters)
        return f"{_WORDS.get(self.x, self.x)} ${symbol}$"

    def _traces(self, series: Series, points: Sequence[Point], rows: Mapping[str, Row]) -> Iterator[Trace]:
        """Yield the traces of a series, sorted by x, if any answer is a bound."""
        places = [(self.coordinate(p.problem), rows.get(p.id)) for p in points if self.belongs(p, series)]
        places.sort(key=lambda place: place[0])
        ends = [tuple(_end(row, name) for _, row in places) for name in _ENDS[series.shows]]
        # 0 is a trivial lower end, which a logarithmic axis cannot show.
        if not any(end > 0.0 for some in ends for end in some):
            return
        x = tuple(x for x, _ in places)
        layer = _LAYERS.get(series.shows, 4)
        bracket, spread = series.shows is Shows.BRACKET, series.shows is Shows.SPREAD
        yield Trace(
            label=series.label,
            color=series.color,
            x=x,
            y=ends[0],
            band=(ends[1], ends[0]) if bracket else tuple(ends[1:]),
            kind=Kind.BARS if spread else Kind.LINE,
            marker=series.marker,
            style=_STYLES.get(series.shows, "-"),
            width=series.width,
            layer=layer,
            hollow=series.scheme == "poisson",  # often close to allocation
        )
        if bracket:
            yield Trace(label="", color=series.color, x=x, y=ends[1], width=series.width, layer=layer)


def _end(row: Row | None, name: str) -> float:
    """Return an end of an answer, or NaN, which leaves a gap, if it is missing or infinite."""
    if row is None or row["status"] != Status.OK or row[name] is None:
        return math.nan
    return float(row[name]) if math.isfinite(row[name]) else math.nan


def _equation(symbol: str, value: Value) -> str:
    return f"direction: {value}" if isinstance(value, str) else f"${symbol} = {tex(value)}$"
