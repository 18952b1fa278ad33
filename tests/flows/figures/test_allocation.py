"""The figures of the paper: questions of their sweeps, drawings of a store, and missing points."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from flows.answers.parse import SAMPLING
from flows.answers.training.palette import LIGHT
from flows.cli.app import run
from flows.figures.allocation.curves import Curves
from flows.figures.allocation.paper import CURVES
from flows.figures.allocation.series import Series, Shows
from flows.figures.draw import canvas, draw
from flows.figures.figure import Picture
from flows.figures.panels import Panel
from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import Answer, Point, Status
from privcore.parameter import Value
from storage.catalog import open_store
from tests.flows.small_store import Command
from tests.flows.support import figures
from tests.flows.support.figures import MADE_UP, store_of

pytestmark = pytest.mark.sampled(4)

Run = Callable[..., tuple[int, str, str]]

PAPER = "allocation"
made_up = MADE_UP[PAPER]
numbered = pytest.mark.parametrize("figure", CURVES, ids=lambda figure: figure.sweep)


def picture(figure: Curves, store: Path) -> Picture:
    return figures.picture(figure.figure, store)


def panels_of(drawn: Picture) -> list[Panel]:
    return [panel for row in drawn.rows for panel in row]


def points_of(figure: Curves) -> list[Point]:
    return list(expand(load(figure.sweep).grids))


# ------------------------------------------------------------------------------------ questions


@numbered
def test_every_point_is_drawn_and_every_series_has_points(figure: Curves) -> None:
    points = points_of(figure)
    owners = [{s.method for s in figure.series if figure.belongs(point, s)} for point in points]
    assert [len(methods) for methods in owners] == [1] * len(points)
    for series in figure.series:
        assert any(figure.belongs(point, series) for point in points), series.label


@numbered
def test_no_two_points_of_a_curve_share_a_place(figure: Curves) -> None:
    for series in figure.series:
        drawn = [point for point in points_of(figure) if figure.belongs(point, series)]
        places = Counter(
            (figure.coordinate(p.problem), *(p.problem.as_fields()[name] for name in figure.split))
            for p in drawn
        )
        assert set(places.values()) == {1}


CAPTIONS: dict[int, tuple[dict[str, Value], int, float, float, int]] = {
    # fixed fields, panels, first and last x, points on a curve of the first panel
    1: ({"delta": 1e-10, "steps": 10**6, "sampling_probability": 1e-6}, 1, 0.2, 2.0, 20),
    2: ({"delta": 1e-10}, 3, 0.8, 2.5, 10),
    3: ({"delta": 1e-10, "steps": 1000, "proportion": 0.9}, 3, 1e2, 1e5, 7),
    4: ({"delta": 1e-10, "steps": 10**6, "sampling_probability": 1e-6}, 2, 0.2, 2.0, 20),
    5: (
        {"delta": 1e-10, "steps": 10**6, "participations": 10, "sampling_probability": 1e-5},
        2,
        0.5,
        4.0,
        20,
    ),
    6: ({"delta": 1e-4, "sigma": 0.3}, 1, 25, 525, 11),
    7: ({"delta": 1e-8, "sigma": 1.0, "steps": 10**4, "sampling_probability": 1e-4}, 2, 1, 1001, 10),
    8: ({}, 4, 0.5, 4.0, 10),
    9: ({"delta": 1e-6, "sigma": 0.6, "steps": 1024}, 1, 1, 64, 7),
}


@numbered
def test_the_parameters_are_those_of_the_captions(figure: Curves, full: Path) -> None:
    fixed, panels, first, last, count = CAPTIONS[figure.number]
    drawn = picture(figure, full)
    assert figure.fixed([point.problem for point in points_of(figure)]) == fixed
    assert len(drawn.title.splitlines()) == (2 if fixed else 1)
    assert len(panels_of(drawn)) == panels
    for trace in panels_of(drawn)[0].traces:
        assert (trace.x[0], trace.x[-1], len(trace.x)) == (first, last, count), trace.label


@pytest.mark.parametrize("number", [1, 2, 4, 6, 7, 8])
def test_poisson_sampling_expects_one_participation(number: int) -> None:
    for point in points_of(CURVES[number - 1]):
        if point.problem.name.startswith("poisson"):
            assert CURVES[8].coordinate(point.problem) == pytest.approx(1.0, rel=1e-15)


def test_the_places_of_poisson_sampling_are_those_of_allocation_in_figure_9(full: Path) -> None:
    (panel,) = panels_of(picture(CURVES[8], full))
    assert {trace.x for trace in panel.traces} == {(1, 2, 4, 8, 16, 32, 64)}


@pytest.mark.parametrize("command", [("status",), ("lookup",), ("plan",), ("report", "--out", "reports")])
def test_a_sweep_of_a_figure_is_the_same_under_its_stored_name(
    command: Sequence[str],
    full: Path,
    privsweep: Command,
) -> None:
    said = []
    for name in ("figure7", "allocation-figure7"):
        code = privsweep(command[0], name, *command[1:], "--store", full, "--json")
        said.append((code, privsweep.out, privsweep.err))
    assert said[0] == said[1]
    assert "allocation-figure7" not in privsweep.out + privsweep.err


# ------------------------------------------------------------------------------------ drawings


def lines_of(axes: Axes, series: Series) -> list[tuple[list[float], list[float]]]:
    """The data of the lines that have the look of a series, with the edges of its band in order."""
    lines = [
        (np.asarray(line.get_xdata(), float).tolist(), np.asarray(line.get_ydata(), float).tolist())
        for line in axes.get_lines()
        if (line.get_color(), line.get_linewidth()) == (series.color, series.width)
        and line.get_linestyle() != "None"
    ]
    return sorted(lines, key=lambda line: line[1][0])


@pytest.mark.thorough
def test_what_is_computed_is_what_is_drawn(process: Run, folder: Path) -> None:
    code, _, errors = process("run", "figure7", "--store", folder / "seven", "--engine", "serial")
    assert (code, errors.count("Traceback")) == (0, 0), errors
    code, out, errors = process("run", "allocation-figure7", "--store", "seven", "--engine", "serial")
    assert out.startswith("figure7: 50 points, nothing to compute, 0 failed"), "the stored name is the same"
    with open_store(folder / "seven") as store:
        assert [manifest.name for manifest in store.manifests()] == ["figure7"]
    code, out, errors = process("report", "figures", "--store", "seven", "--figure", 7, "--out", "drawn")
    assert (code, out, errors) == (0, "drawn/figure7.png\n", "")
    figure = CURVES[6]
    whole, closer = canvas(picture(figure, folder / "seven")).axes
    for series in figure.series:
        with open_store(folder / "seven") as store:
            table = store.sql(
                f"""select epochs, lower, upper from results
                where problem = '{series.scheme}-epsilon' and method = '{series.method}'
                and adjacency = '{series.adjacency}' order by epochs"""
            )
        epochs, lower, upper = (column.to_pylist() for column in table.columns)
        assert epochs == [1, 2, 5, 10, 22, 46, 100, 216, 465, 1001]
        expected = [(epochs, lower), (epochs, upper)] if series.shows is Shows.BRACKET else [(epochs, upper)]
        assert lines_of(whole, series) == lines_of(closer, series) == expected


@numbered
def test_every_number_of_a_curve_is_stored_under_its_method(figure: Curves, full: Path) -> None:
    stored = {(figure.coordinate(p.problem), p.method.name, made_up(p)) for p in points_of(figure)}
    methods = {series.label: series.method for series in figure.series}
    for panel in panels_of(picture(figure, full)):
        method = ""
        for trace in panel.traces:
            method = methods[trace.label] if trace.label else method  # a lower edge follows its upper one
            ends = {
                (x, end) for values in (trace.y, *trace.band) for x, end in zip(trace.x, values, strict=True)
            }
            known = {
                (x, end)
                for x, stored_under, answer in stored
                if stored_under == method
                for end in (answer.lower, answer.upper, answer.value)
            }
            assert ends <= known


@numbered
def test_a_lower_bound_is_dotted_and_says_what_it_is(figure: Curves, full: Path) -> None:
    drawn = canvas(picture(figure, full))
    (legend,) = drawn.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == [series.label for series in figure.series]
    for series in figure.series:
        styles = {
            line.get_linestyle() for line in drawn.axes[0].get_lines() if line.get_color() == series.color
        }
        assert (series.shows is Shows.LOWER) == ("lower bound" in series.label)
        if series.shows is Shows.LOWER:
            assert ":" in styles


@numbered
def test_series_of_one_figure_can_be_told_apart(figure: Curves) -> None:
    looks = [(series.color, series.marker, series.shows) for series in figure.series]
    labels = [series.label for series in figure.series]
    assert len(set(looks)) == len(looks)
    assert len(set(labels)) == len(labels)


@numbered
def test_a_colour_of_a_sampler_is_that_of_no_other_curve(figure: Curves) -> None:
    words = {problem.rpartition("-")[0]: word for word, problem in SAMPLING.items()}
    for series in figure.series:
        own = LIGHT[words[series.scheme]]
        assert series.color not in set(LIGHT.values()) - {own}
        if series.shows is Shows.BRACKET:
            assert series.color == own


def test_infinity_is_no_bound_and_is_not_drawn(tmp_path: Path) -> None:
    figure = CURVES[5]
    answers = {p: made_up(p) for p in points_of(figure)}
    void = [p for p in answers if p.method.name == "allocation.direct"][:2]
    answers |= dict.fromkeys(void, Answer.at_most(math.inf))
    drawn = canvas(picture(figure, store_of(tmp_path / "store", answers)))
    (series,) = (s for s in figure.series if s.method == "allocation.direct")
    ((_, heights),) = lines_of(drawn.axes[0], series)
    assert np.isnan(heights).tolist() == [True] * 2 + [False] * 9
    assert drawn.axes[0].get_ylim()[1] < 10.0


# ---------------------------------------------------------------------------------- missing points


def report(*arguments: object) -> int:
    return run(["report", "figures", *map(str, arguments)])


def test_what_is_stored_is_drawn_and_the_rest_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [p for p in points_of(CURVES[6]) if p.method.name != "poisson.renyi"]
    (late,) = (
        p for p in points if p.method.name == "poisson.certified" and p.problem.as_fields()["epochs"] == 1001
    )
    store = store_of(tmp_path / "store", {p: made_up(p) for p in points if p is not late})
    assert report("--store", store, "--out", tmp_path, "--figure", 7, "--figure", 6) == 3
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'figure7.png'}\n"
    lacking, empty = err.splitlines()
    assert lacking == (
        "privsweep: Figure 7 lacks 11 of 50 points, which are not stored "
        f"(poisson.renyi 10, poisson.certified 1); `privsweep run figure7 --store {store}` computes them."
    )
    assert empty.startswith("privsweep: Figure 6 is not drawn")
    panel, closer = panels_of(picture(CURVES[6], store))
    assert panel.traces == closer.traces
    assert closer.y_limits is not None, "one bound reaches 500"
    assert closer.y_limits[1] < 5.0
    uppers = {trace.label: trace.y for trace in panel.traces}
    assert np.isnan(uppers["Poisson, certified enclosure"]).tolist() == [False] * 9 + [True]
    assert "Poisson, Rényi" not in uppers
    assert report("--store", store, "--out", tmp_path, "--figure", 7) == 1


def test_points_that_failed_are_named_and_those_without_a_theorem_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {p: made_up(p) for p in points_of(CURVES[6])}
    late = Answer.without(Status.TIMEOUT, "Too slow.")
    not_covered = Answer.without(Status.NOT_APPLICABLE, "The theorem covers one epoch.")
    answers |= dict.fromkeys([p for p in answers if p.method.name == "poisson.renyi"], not_covered)
    answers |= dict.fromkeys([p for p in answers if p.method.name == "poisson.certified"][:2], late)
    store = store_of(tmp_path / "store", answers)
    assert report("--store", store, "--out", tmp_path, "--figure", 7) == 1
    assert capsys.readouterr().err == (
        "privsweep: Figure 7 lacks 2 of 50 points, which failed (poisson.certified 2); "
        f"`privsweep run figure7 --store {store} --retry` tries again.\n"
    )


@pytest.mark.parametrize("answer", [Answer.without(Status.NOT_APPLICABLE, "No."), Answer.at_most(math.inf)])
def test_a_panel_without_any_bound_is_empty_axes(answer: Answer, tmp_path: Path) -> None:
    answers = {p: made_up(p) for p in points_of(CURVES[3])}
    answers |= {p: answer for p in answers if p.problem.as_fields()["adjacency"] == "add"}
    drawn = canvas(picture(CURVES[3], store_of(tmp_path / "store", answers)))
    assert [len(axes.get_lines()) > 0 for axes in drawn.axes] == [False, True]
    nothing = store_of(tmp_path / "nothing", dict.fromkeys(answers, answer))
    draw(picture(CURVES[3], nothing), tmp_path / "nothing.png", "png")


def test_the_table_has_the_nine_figures_in_order() -> None:
    assert [figure.number for figure in CURVES] == list(range(1, 10))
