"""Helpers for the tests of all papers' figures: made-up stores, and checks of drawings."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from flows.figures.draw import canvas, draw
from flows.figures.figure import Figure, Picture
from flows.figures.figure import picture as figure_from
from flows.figures.panels import Kind, Panel
from flows.figures.papers import PAPERS
from flows.figures.stored import Stored
from privcore import Answer, Direction, Point, evaluate
from storage import Row, publish, to_table
from storage.place.located import located
from tests.storage.made_up import with_store


def points_of(figure: Figure) -> list[Point]:
    """The points of a figure."""
    return list(with_store(Path("none"), lambda store: Stored.of(figure.sweeps, figure.wants, store)).points)


def picture(figure: Figure, folder: Path) -> Picture:
    """The figure with the points of a store, which need not exist."""
    return with_store(folder, lambda store: figure_from(figure, store))


class Pictures(dict[str, Picture]):
    """The figures of a paper by name, each made when it is first asked for."""

    def __init__(self, figures: Sequence[Figure], folder: Path) -> None:
        self._figures, self._folder = {figure.name: figure for figure in figures}, folder

    def __missing__(self, name: str) -> Picture:
        """Make the figure."""
        return self.setdefault(name, picture(self._figures[name], self._folder))


def store_of(path: Path, answers: Mapping[Point, Answer]) -> Path:
    """Return a store that holds these answers."""
    by_problem: dict[str, list[Row]] = {}
    for point, answer in answers.items():
        row = Row(
            point=point,
            answer=answer,
            seconds=0.1,
            cpu_seconds=0.1,
            attempt=1,
            finished_at=datetime(2026, 11, 1, tzinfo=UTC),
            sweep="made-up",
        )
        by_problem.setdefault(point.problem.name, []).append(row)
    for rows in by_problem.values():
        publish(located(path), to_table(rows))
    return path


def _share(point: Point) -> float:
    """A number in [0, 1) that differs from point to point."""
    return int(point.id[:4], 16) / 0x10000


def _of_its_kind(point: Point, value: float) -> Answer:
    """An answer with the ends that the method of the point gives."""
    match point.method.direction:
        case Direction.UPPER:
            return Answer.at_most(value)
        case Direction.LOWER:
            return Answer.enclosure(value, point.problem.largest)
        case Direction.ESTIMATE:
            return Answer.about(value, detail="made up")
        case _:
            return Answer.enclosure(value, 1.2 * value, value=value)


def _allocation(point: Point) -> Answer:
    shift = 1.0 + _share(point)
    return Answer.enclosure(shift, 3.0 * shift, value=2.0 * shift)


def _auditing(point: Point) -> Answer:
    fields = point.problem.as_fields()
    if point.problem.asks == "correct":  # else no count would be the expected one
        return evaluate(point)
    if point.problem.name in ("unamplified-epsilon", "poisson-epsilon"):
        return Answer.enclosure(5.0 / float(fields["sigma"]), 5.0 / float(fields["sigma"]))
    return _of_its_kind(point, 0.1 + 3.0 * _share(point))


def _labels(point: Point) -> Answer:
    value = min(point.problem.largest, 10.0) * (0.1 + 0.6 * _share(point))
    if point.problem.name == "label-ratio-quantile" and _share(point) > 0.8:
        return Answer.enclosure(5.0, math.inf, value=math.inf)
    return Answer.enclosure(0.9 * value, 1.1 * value, value=value)


def _membership(point: Point) -> Answer:
    if point.method.applies(point.problem) is not None:
        return evaluate(point)
    return _of_its_kind(point, 0.001 + 0.8 * _share(point))


MADE_UP: dict[str, Callable[[Point], Answer]] = {
    "allocation": _allocation,
    "labels": _labels,
    "auditing": _auditing,
    "membership": _membership,
}
"""By paper: an answer that fits a point and its method, and differs from point to point."""


class DrawnPaper:
    """The figures of a paper with a store that answers all their points."""

    def __init__(self, name: str, folder: Path) -> None:
        figures = PAPERS[name]
        self.answers = {point: MADE_UP[name](point) for figure in figures for point in points_of(figure)}
        self.store = store_of(folder / "store", self.answers)
        self.pictures = Pictures(figures, self.store)


def axes_of(picture: Picture) -> list[tuple[Panel, Axes]]:
    """The panels of a picture with the axes on which they were drawn."""
    drawn = canvas(picture).axes
    columns = max(map(len, picture.rows)) + 1
    return [
        (panel, drawn[row * columns + column])
        for row, panels in enumerate(picture.rows)
        for column, panel in enumerate(panels)
    ]


def check_traces(picture: Picture) -> None:
    """Check that every trace is on the axes of its panel."""
    for panel, axes in axes_of(picture):
        lines = [
            (line.get_color(), np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float))
            for line in axes.get_lines()
        ]
        clouds = [np.asarray(cloud.get_offsets()) for cloud in axes.collections]
        for trace in panel.traces:
            if trace.kind is Kind.DOTS:
                expected = np.column_stack([trace.x, trace.y])
                assert any(np.array_equal(cloud, expected) for cloud in clouds)
            else:
                x = np.where(np.isfinite(trace.x), trace.x, np.nan)
                assert any(
                    color == trace.color
                    and np.array_equal(xs, x, equal_nan=True)
                    and np.array_equal(ys, np.array(trace.y))
                    for color, xs, ys in lines
                ), trace.label


def check_page(picture: Picture, path: Path) -> None:
    """Check that a drawn page is not empty, and has the colours of all its traces."""
    draw(picture, path, "png")
    with Image.open(path) as image:
        assert min(image.size) > 500
        pixels = np.asarray(image.convert("RGB"), dtype=np.int64) @ [0x10000, 0x100, 1]
    colors = {f"#{color:06X}" for color in np.unique(pixels).tolist()}
    traces = [trace for row in picture.rows for panel in row for trace in panel.traces]
    assert {trace.color.upper() for trace in traces if trace.x and trace.label} <= colors


def check_legends(picture: Picture) -> None:
    """Check that the legend next to a row, or of a row above, names its traces once."""
    shown: list[str] = []
    axes = canvas(picture).axes
    columns = len(axes) // len(picture.rows)
    for number, row in enumerate(picture.rows):
        legend = axes[(number + 1) * columns - 1].get_legend()
        labels = list(dict.fromkeys(trace.label for panel in row for trace in panel.traces if trace.label))
        if legend is None:
            assert labels == shown, "the legend above serves this row too"
        else:
            shown = [text.get_text() for text in legend.get_texts()]
            assert shown == labels
        looks = {(t.color, t.kind, t.style) for p in row for t in p.traces if t.label}
        assert len(looks) == len(labels)
