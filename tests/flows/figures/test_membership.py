"""The figures on membership inference: drawings of a store, and missing points."""

import math
from pathlib import Path

import pytest

from flows.figures.figure import Figure, Picture
from flows.figures.membership import fitting, privacy, rates, regression, roc
from flows.figures.membership.paper import FIGURES
from flows.figures.panels import Look, Panel, Trace
from privcore import Answer, Point, evaluate
from tests.flows.small_store import Command
from tests.flows.support.figures import (
    picture,
    points_of,
    store_of,
)

pytestmark = pytest.mark.sampled(2)

PAPER = "membership"
BY_NAME = {figure.name: figure for figure in FIGURES}
TRAINED = ("membership1", "membership2")
named = pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Picture]:
    """The figures that take no training and no time, of the computed answers."""
    slow = ("membership.sobol", "membership.sampling", "membership.roc")
    names = ("membership-rates", "membership-privacy", "membership-regression")
    points = {p for name in names for p in points_of(BY_NAME[name]) if p.method.name not in slow}
    store = store_of(tmp_path_factory.mktemp("true") / "store", {p: evaluate(p) for p in points})
    return {name: picture(BY_NAME[name], store) for name in names}


def trace_of(panel: Panel, look: Look) -> Trace:
    """The curve of a panel that looks like this."""
    (found,) = [t for t in panel.traces if (t.label, t.color) == (look.label, look.color)]
    return found


# ------------------------------------------------------------------------------------ drawings


def test_the_two_figures_of_the_paper_come_first() -> None:
    assert list(BY_NAME)[:2] == list(TRAINED)
    assert len(BY_NAME) == len(FIGURES) == 6


def test_figure_1_has_a_curve_for_each_level_of_the_paper(
    pictures: dict[str, Picture], answers: dict[Point, Answer]
) -> None:
    ((train, fresh),) = pictures["membership1"].rows
    for panel, tested in ((train, "train"), (fresh, "fresh")):
        curves = [trace for trace in panel.traces if trace.label]
        assert len(curves) == len(fitting.LEVELS) == 7
        for level, curve in zip(fitting.LEVELS, curves, strict=True):
            asked = {"loss_level": level, "tested": tested, "stopping_loss": 0.0, "learner": "network"}
            shares = {
                float(point.problem.as_fields()["iterations"]): answer.value
                for point, answer in answers.items()
                if point.method.name == "membership.trained"
                and asked.items() <= point.problem.as_fields().items()
            }
            assert dict(zip(curve.x, curve.y, strict=True)) == shares
            assert curve.x[-1] == 2500.0
    assert not [trace for trace in train.traces if not trace.label], "nothing is proved of training losses"
    assert len([trace for trace in fresh.traces if not trace.label]) == 7


def test_figure_2_marks_where_there_are_as_many_coordinates_as_records(pictures: dict[str, Picture]) -> None:
    ((train, fresh, nearest),) = pictures["membership2"].rows
    for panel in (train, fresh):
        assert [set(t.x) for t in panel.traces if "as many" in t.label] == [{float(fitting.RECORDS)}]
    assert not any("as many" in trace.label for trace in nearest.traces)
    assert all(trace.x[0] == 10.0 and trace.x[-1] == 2000.0 for trace in nearest.traces)


@pytest.mark.thorough
def test_in_units_of_the_diversity_a_bound_is_its_constant(true: dict[str, Picture]) -> None:
    for panel in true["membership-rates"].rows[0]:
        curve, half = trace_of(panel, rates.EXACT), trace_of(panel, rates.SCHWARZ)
        exact = dict(zip(curve.x, curve.y, strict=True))
        assert half.y == pytest.approx([0.5] * len(half.y))
        limit = trace_of(panel, rates.LIMIT)
        assert limit.y == pytest.approx([1.0 / math.sqrt(2.0 * math.pi)] * len(limit.y))
        for look, sign in ((rates.LARGEST, 1.0), (rates.LEAST, -1.0)):
            bound = trace_of(panel, look)
            assert bound.x == tuple(exact)
            assert all(sign * (y - exact[n]) >= -1e-9 for n, y in zip(bound.x, bound.y, strict=True))


def test_the_advantage_falls_with_the_records_for_every_law_and_odds(true: dict[str, Picture]) -> None:
    laws, odds = true["membership-rates"].rows[1]
    assert len(laws.traces) == len(rates.LAWS)
    assert len(odds.traces) == len(rates.ODDS)
    for trace in (*laws.traces, *odds.traces):
        assert list(trace.y) == sorted(trace.y, reverse=True)
        assert len(trace.x) >= 5


@pytest.mark.thorough
def test_least_squares_jumps_where_there_are_as_many_records_as_features(
    pictures: dict[str, Picture], true: dict[str, Picture]
) -> None:
    ((*panels,),) = true["membership-regression"].rows
    for panel, d in zip(panels, regression.COORDINATES, strict=True):
        assert trace_of(panel, regression.CERTAIN).y == (1.0, 1.0)
        assert trace_of(panel, regression.CERTAIN).x[-1] == 1.0
        loss = trace_of(panel, regression.LOSS)
        assert loss.x[0] == (d + 1) / d
        assert list(loss.y) == sorted(loss.y, reverse=True)
    for panel in pictures["membership-regression"].rows[0]:
        lower, upper = trace_of(panel, regression.DRAWS).band
        assert all(a < b for a, b in zip(lower, upper, strict=True))
        assert trace_of(panel, regression.BEST).x == trace_of(panel, regression.LOSS).x


def test_the_sharp_bound_under_privacy_is_below_the_published_one(true: dict[str, Picture]) -> None:
    ((*panels,),) = true["membership-privacy"].rows
    assert len(panels) == len(privacy.SETTINGS)
    for panel in panels:
        sharp, paper = trace_of(panel, privacy.REPLACED), trace_of(panel, privacy.PUBLISHED)
        assert sharp.x == paper.x
        assert all(a <= b for a, b in zip(sharp.y, paper.y, strict=True))
        assert len(trace_of(panel, privacy.ADDED).band) == 2
    at_one = panels[0].traces[0].x.index(1.0)
    assert trace_of(panels[0], privacy.REPLACED).y[at_one] == pytest.approx(math.tanh(0.25))
    assert trace_of(panels[0], privacy.PUBLISHED).y[at_one] == pytest.approx(math.tanh(0.5))


def test_rates_of_positives_are_drawn_twice_with_axes_of_both_kinds(pictures: dict[str, Picture]) -> None:
    linear, logarithmic = pictures["membership-roc"].rows
    assert [panel.traces for panel in linear] == [panel.traces for panel in logarithmic]
    assert {panel.scales for panel in linear} == {("linear", "linear")}
    assert {panel.scales for panel in logarithmic} == {("log", "log")}
    for panel in linear:
        assert len(panel.traces) == len(roc.RECORDS) + 1
        assert panel.traces[-1].x == panel.traces[-1].y, "guessing"


# ---------------------------------------------------------------------------------- missing points


@named
def test_the_first_method_alone_can_be_drawn(
    figure: Figure, answers: dict[Point, Answer], tmp_path: Path
) -> None:
    points = points_of(figure)
    some = {p: answers[p] for p in points if p.method.name == points[0].method.name}
    drawn = picture(figure, store_of(tmp_path / "store", some))
    assert sum(drawn.missing.values()) == drawn.points - len(some)
    assert drawn.rows


def test_one_command_computes_what_a_figure_lacks_and_draws_it(tmp_path: Path, privsweep: Command) -> None:
    command = ["figures", "membership", "--figure", "membership-privacy"]
    folders = ["--store", str(tmp_path / "store"), "--out", str(tmp_path)]
    assert privsweep(*command, *folders) == 0
    assert "membership-privacy: 165 points, 165 computed, 0 stored before" in privsweep.out
    assert (tmp_path / "membership-privacy.png").stat().st_size > 10_000
    assert privsweep(*command, *folders) == 0
    assert "165 points, nothing to compute" in privsweep.out
