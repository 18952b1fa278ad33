"""The figures on label inference: questions of their sweeps, drawings of a store, and missing points."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from flows.cli.app import run
from flows.figures.draw import canvas, draw
from flows.figures.figure import Figure, Picture
from flows.figures.labels import rates, scatter
from flows.figures.labels.paper import FIGURES
from flows.figures.labels.theme import COLORS, DATA, PRIORS
from flows.figures.panels import Kind, Panel, Trace
from flows.figures.stored import Stored
from flows.spec.grid import expand
from flows.spec.sweep import load, parse
from privcore import Answer, Point, Status, evaluate
from tests.flows.support.figures import (
    MADE_UP,
    axes_of,
    picture,
    points_of,
    store_of,
)

pytestmark = pytest.mark.sampled(3)

PAPER = "labels"
made_up = MADE_UP[PAPER]
BY_NAME = {figure.name: figure for figure in FIGURES}
# ------------------------------------------------------------------------------------ questions


def test_the_table_has_the_figures_of_both_papers_and_the_rates() -> None:
    assert list(BY_NAME) == [f"labels{n}" for n in range(1, 6)] + ["workshop1", "workshop2", "rates"]


def test_the_advantage_sweep_has_every_setting_of_the_paper_once() -> None:
    points = list(expand(load("labels-advantage").grids))
    problems = Counter(point.problem for point in points)
    assert set(problems.values()) == {1}
    by_mechanism = Counter(point.problem.as_fields()["mechanism"] for point in points)
    assert by_mechanism == {"rr": 40, "llp": 40, "llp-laplace": 400, "llp-geometric": 400}
    priors = {point.problem.as_fields()["prior"] for point in points}
    assert priors == set(PRIORS)
    epsilons = {point.problem.as_fields()["label_epsilon"] for point in points} - {math.inf}
    assert epsilons == {2.0**n for n in range(-4, 6)}
    assert {point.problem.as_fields()["bag_size"] for point in points} == {2**n for n in range(10)}


@pytest.mark.parametrize("name", ["labels-advantage", "labels-quantile", "labels-ratio", "labels-rates"])
def test_every_method_of_a_sweep_applies_to_its_points(name: str) -> None:
    for point in expand(load(name).grids):
        assert point.method.applies(point.problem) is None, point.canonical


SHOWN_BESIDES = {
    "labels3": ["label-ratio-quantile"],
    "labels5": ["label-ratio-quantile"],
    "workshop1": ["label-learning-loss"],
}


@pytest.mark.parametrize("name", SHOWN_BESIDES)
def test_every_setting_that_is_learned_from_has_both_advantages(name: str) -> None:
    """Else a point of a curve could not be placed."""
    points = points_of(BY_NAME[name])
    settings: dict[str, set[tuple[object, ...]]] = {}
    for point in points:
        fields = point.problem.as_fields()
        law = fields.get("prior") or DATA[str(fields["data"])]
        setting = (law, fields["mechanism"], fields["bag_size"], fields["label_epsilon"])
        settings.setdefault(point.problem.name, set()).add(setting)
    learned = settings.pop("label-learning")
    assert settings.keys() == {"label-advantage", *SHOWN_BESIDES[name]}
    assert all(others == learned for others in settings.values())


def test_the_stand_ins_say_that_they_are() -> None:
    assert all("(stand-in)" in PRIORS[prior] for prior in DATA.values())
    titles = {panel.title for panel in picture(BY_NAME["labels1"], Path("none")).rows[0]}
    assert titles == set(PRIORS.values())


# ------------------------------------------------------------------------------------ drawings


TINY = """
name = "tiny"

[[grid]]
problem = "label-ratio-tail"
methods = ["labels.sampling"]

[grid.product]
prior = "uniform"
bag_size = 8
mechanism = "llp"
log_ratio = [0, 1, 4]

[[grid]]
problem = "label-ratio-tail"
methods = ["labels.response"]

[grid.product]
prior = "uniform"
mechanism = "rr"
label_epsilon = 1
log_ratio = [0, 1, 4]
"""


@pytest.mark.thorough
def test_what_is_computed_is_what_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {point: evaluate(point) for point in expand(parse(TINY.encode(), "tiny").grids)}
    store = store_of(tmp_path / "store", answers)
    assert report("--store", store, "--figure", "labels2", "--out", tmp_path) == 1
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'labels2.png'}\n"
    assert err.startswith("privsweep: Figure labels2 lacks 2014 of 2020 points, which are not stored")
    middle = picture(BY_NAME["labels2"], store).rows[1]
    curves = {trace.label: trace for trace in middle[0].traces}
    bags = [answer for point, answer in answers.items() if point.problem.as_fields()["mechanism"] == "llp"]
    assert curves["LLP"].x == (0.0, 1.0, 4.0)
    assert curves["LLP"].y == tuple(1.0 - (answer.value or 0.0) for answer in bags)
    assert curves["LLP"].band[0] == tuple(1.0 - answer.upper for answer in bags)
    assert curves["LLP"].band[1] == tuple(1.0 - answer.lower for answer in bags)
    assert 0.67 < curves["LLP"].y[1] < 0.70
    assert curves["RR"].y == (0.0, 1.0, 1.0)
    assert [panel.traces for panel in middle[1:]] == [()] * 3


@pytest.mark.parametrize("figure", ["labels1", "labels4"])
def test_a_cloud_has_a_thousand_releases_each_a_probability(
    figure: str, pictures: dict[str, Picture]
) -> None:
    for panel in (panel for row in pictures[figure].rows for panel in row):
        assert panel.diagonal
        for trace in panel.traces:
            if trace.kind is Kind.DOTS:
                assert len(trace.x) == len(trace.y) == scatter.RELEASES
                assert 0.0 <= min(trace.y) <= max(trace.y) <= 1.0


def test_randomized_response_moves_the_logit_by_epsilon(pictures: dict[str, Picture]) -> None:
    uniform = pictures["labels1"].rows[1][0]
    assert [trace.label != "" for trace in uniform.traces] == [True, False] * len(scatter.RESPONSES)
    for epsilon, above, below in zip(
        scatter.RESPONSES, uniform.traces[::2], uniform.traces[1::2], strict=True
    ):
        middle = len(above.x) // 2
        odds = above.x[middle] / (1.0 - above.x[middle])
        for trace, factor in ((above, math.exp(epsilon)), (below, math.exp(-epsilon))):
            assert trace.y[middle] == pytest.approx(odds * factor / (1.0 + odds * factor), rel=1e-12)
            assert (trace.x[0], trace.y[0], trace.x[-1], trace.y[-1]) == (0.0, 0.0, 1.0, 1.0)


def test_shares_above_an_advantage_fall_to_none(pictures: dict[str, Picture]) -> None:
    for panel in pictures["labels2"].rows[2]:
        for trace in panel.traces:
            if trace.color != COLORS["rr"]:  # made up in this store
                assert list(trace.y) == sorted(trace.y, reverse=True)
                assert 1.0 > trace.y[0] > trace.y[-1] == 0.0


def test_the_shares_of_bags_with_rare_labels_are_apart_on_the_axes(pictures: dict[str, Picture]) -> None:
    """On linear axes from 0 these curves were on the frame."""
    panel, axes = next(pair for pair in axes_of(pictures["labels2"]) if "additive" in pair[0].x_label)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    for panel in pictures["labels2"].rows[2]:
        bags, noisy = (next(t for t in panel.traces if t.label == name) for name in ("LLP", "LLP+Geom"))
        assert bags.y[0] > 1.1 * noisy.y[0]


@pytest.mark.thorough
def test_an_infinite_percentile_is_at_a_marked_place_beyond_all_others(pictures: dict[str, Picture]) -> None:
    panel, axes = next(pair for pair in axes_of(pictures["labels3"]) if "percentile" in pair[0].x_label)
    finite = [x for trace in panel.traces for x in trace.x if math.isfinite(x)]
    infinite = [y for trace in panel.traces for x, y in zip(trace.x, trace.y, strict=True) if x == math.inf]
    assert infinite
    assert r"$\infty$" in {text.get_text() for text in axes.texts}
    place = 2.0 * max(finite)
    marked = [
        line
        for line in axes.get_lines()
        if line.get_linestyle() == "None" and set(np.asarray(line.get_xdata(), float)) == {place}
    ]
    assert sorted(y for line in marked for y in np.asarray(line.get_ydata(), float)) == sorted(infinite)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["labels5", "workshop1"])
def test_a_score_has_bars_of_the_standard_error_that_its_detail_states(name: str, tmp_path: Path) -> None:
    stated = Answer.about(0.75, detail="10 trials, standard error 0.0123, learning rate 0.01")
    answers = {
        point: stated if point.method.name == "labels.trained" else made_up(point)
        for point in points_of(BY_NAME[name])
    }
    drawn = axes_of(picture(BY_NAME[name], store_of(tmp_path / "store", answers)))
    for panel, axes in drawn:
        lines = [each for each in axes.collections if isinstance(each, LineCollection)]
        bars = [bar for each in lines for bar in each.get_segments()]
        assert len(bars) >= sum(len(trace.x) for trace in panel.traces) > 0
        ends = {(round(low[1], 4), round(high[1], 4)) for low, high in (bar for bar in bars if len(bar))}
        assert ends == {(0.7377, 0.7623)}


def test_what_is_finite_has_no_such_mark() -> None:
    trace = Trace(label="one", color="#000000", x=(1.0, 2.0), y=(0.1, 0.2))
    drawn = canvas(
        picture(Figure(name="a", title="A", panels=lambda _: ((Panel(traces=(trace,)),),)), Path("none"))
    )
    assert [text.get_text() for text in drawn.axes[0].texts] == []


@pytest.mark.parametrize(
    ("name", "field", "noisy"), [("labels3", "bag_size", 7), ("labels5", "label_epsilon", 7)]
)
def test_the_curves_with_noise_share_a_parameter_and_vary_the_other(
    name: str, field: str, noisy: int, full: Path
) -> None:
    drawn = picture(BY_NAME[name], full)
    for panel in drawn.rows[1]:
        curves = [trace for trace in panel.traces if trace.label.startswith("LLP+Geom")]
        assert len(curves) == noisy
        assert {len(trace.x) for trace in curves} == {10 if field == "bag_size" else 7}


def test_the_rates_of_exact_powers_are_found_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def power(point: Point) -> Answer:
        fields = point.problem.as_fields()
        k = float(fields["bag_size"])
        decay = math.exp(-0.02 * k) * k**-1.5 if fields["prior"] == "point(0.3)" else 0.3 * k**-0.75
        value = 2.0 * decay if point.method.name == "labels.root" else decay
        return Answer.enclosure(0.0, value, value=value)

    store = store_of(tmp_path / "store", {point: power(point) for point in points_of(BY_NAME["rates"])})
    assert report("--store", store, "--out", tmp_path, "--figure", "rates") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == str(tmp_path / "rates.png")
    assert "  uniform: the advantage falls like k^-0.750 over bags of 64 to 512." in out
    assert "  point(0.3): the advantage falls like k^-1.5 exp(-0.0200 k) over bags of 64 to 512." in out
    drawn = picture(BY_NAME["rates"], store)
    assert drawn.notes == tuple(line.strip() for line in out[1:])
    (bound,) = [t for t in drawn.rows[0][0].traces if "upper bound" in t.label]
    assert bound.y == pytest.approx([0.6 * k**-0.75 for k in bound.x])
    assert "limit" in drawn.rows[0][0].traces[-1].label


def test_a_rate_needs_two_bag_sizes() -> None:
    assert rates.fitted(Stored(points=(), rows={})) == ()


def test_the_same_posteriors_are_drawn_every_time(pictures: dict[str, Picture]) -> None:
    assert picture(BY_NAME["labels4"], Path("none")).rows == pictures["labels4"].rows


# ---------------------------------------------------------------------------------- missing points


def report(*arguments: object) -> int:
    return run(["report", "label-figures", *map(str, arguments)])


def test_posteriors_are_drawn_without_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert report("--out", tmp_path, "--figure", "labels4") == 0
    assert capsys.readouterr() == (f"{tmp_path / 'labels4.png'}\n", "")
    assert not (tmp_path / "store").exists()


def test_what_is_stored_is_drawn_and_the_rest_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = points_of(BY_NAME["workshop2"])
    kept = [point for point in points if point.problem.as_fields()["bag_size"] != 4]
    late = Answer.without(Status.TIMEOUT, "Too slow.")
    answers = {point: made_up(point) for point in kept} | {kept[0]: late}
    store = store_of(tmp_path / "store", answers)
    assert report("--store", store, "--out", tmp_path, "--figure", "workshop2") == 1
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'workshop2.png'}\n"
    command = f"privsweep run labels-learning --store {store}"
    total, lacking = len(points), len(points) - len(kept)
    first, second = err.splitlines()
    assert first == (
        f"privsweep: Figure workshop2 lacks {lacking} of {total} points, which are not stored "
        f"(labels.trained {lacking}); `{command}` computes them."
    )
    assert second == (
        f"privsweep: Figure workshop2 lacks 1 of {total} points, which failed "
        f"(labels.trained 1); `{command} --retry` tries again."
    )
    curves = picture(BY_NAME["workshop2"], store).rows[0][0].traces
    assert not any(4.0 in trace.x for trace in curves)


def test_points_that_no_method_covers_leave_empty_axes(tmp_path: Path) -> None:
    points = points_of(BY_NAME["workshop1"])
    answers = dict.fromkeys(points, Answer.without(Status.NOT_APPLICABLE, "It is not covered."))
    drawn = picture(BY_NAME["workshop1"], store_of(tmp_path / "store", answers))
    assert (drawn.missing, drawn.failed) == ({}, {})
    assert drawn.rows[0][0].traces == ()
    draw(drawn, tmp_path / "nothing.png", "png")
