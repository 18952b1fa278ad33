"""The figures on audits in one run: questions of their sweeps, drawings of a store, and missing points."""

from pathlib import Path

import pytest

from flows.cli.app import run
from flows.figures.auditing import confidence, guesses
from flows.figures.auditing.paper import FIGURES
from flows.figures.auditing.theme import (
    APPROXIMATE,
    APPROXIMATE_CEILING,
    DPSGD,
    GAUSSIAN,
    GAUSSIAN_CEILING,
    STEINKE,
    TRUE,
)
from flows.figures.figure import Picture
from flows.figures.panels import Look, Panel, Trace
from flows.spec.grid import expand
from flows.spec.sweep import load, parse
from privcore import Answer, Point, evaluate
from tests.flows.support.figures import (
    picture,
    points_of,
    store_of,
)

pytestmark = pytest.mark.sampled(2)

PAPER = "auditing"
BY_NAME = {figure.name: figure for figure in FIGURES}

NOISE = {"audits4": 1.0, "audits5": 2.0, "audits6": 4.0, "audits7": 0.5}
"""Standard deviation of the noise of the figures over the number of guesses."""


def trace_of(panel: Panel, look: Look) -> Trace:
    """The curve of a panel that has this name."""
    (found,) = [trace for trace in panel.traces if trace.label == look.label]
    return found


def report(*arguments: object) -> int:
    return run(["report", "audit-figures", *map(str, arguments)])


# ------------------------------------------------------------------------------------ questions


def test_the_table_has_the_nine_figures_of_the_paper() -> None:
    assert list(BY_NAME) == [f"audits{n}" for n in range(1, 10)]


def test_the_noise_of_figures_4_to_7_is_that_of_their_captions() -> None:
    for name, noise in NOISE.items():
        assert f"noise {noise:g}," in str(BY_NAME[name].title)
        for point in points_of(BY_NAME[name]):
            fields = point.problem.as_fields()
            assert fields.get("sigma", noise) == noise
            assert fields.get("mu", 1.0 / noise) == 1.0 / noise


def test_every_audit_of_figure_1_has_the_same_choice_of_guesses() -> None:
    asked: dict[str, set[tuple[object, ...]]] = {}
    for point in expand(load("audits-guesses").grids):
        fields = point.problem.as_fields()
        if point.problem.name == "audit-planned-epsilon":
            asked.setdefault(f"{point.method.name} {fields['family']}", set()).add(
                (fields["canaries"], fields["guesses"], fields["mu"])
            )
    ceiling = asked.pop("auditing.planned approximate")
    assert len(asked) == 4
    (same, *others) = asked.values()
    assert all(other == same for other in others)
    assert ceiling == {place for place in same if place[0] == guesses.MOST}
    assert {place[0] for place in same} == {10**n for n in range(2, 8)}
    assert {place[2] for place in same} == {1.0 / noise for noise in guesses.NOISES}


# ------------------------------------------------------------------------------------ drawings


@pytest.mark.thorough
def test_figure_1_shows_the_largest_epsilon_over_the_numbers_of_guesses(
    pictures: dict[str, Picture], answers: dict[Point, Answer]
) -> None:
    panels = [panel for row in pictures["audits1"].rows for panel in row]
    for noise, panel in zip(guesses.NOISES, panels, strict=True):
        for look, method, family in (
            (GAUSSIAN, "auditing.plannedgaussian", "gaussian"),
            (STEINKE, "auditing.plannedsteinke", "approximate"),
            (APPROXIMATE, "auditing.plannedapproximate", "approximate"),
        ):
            curve = trace_of(panel, look)
            assert curve.x == tuple(10.0**n for n in range(2, 8))
            for canaries, epsilon in zip(curve.x, curve.y, strict=True):
                asked = {"canaries": canaries, "mu": 1.0 / noise, "family": family}
                assert epsilon == max(
                    answer.lower
                    for point, answer in answers.items()
                    if point.method.name == method and asked.items() <= point.problem.as_fields().items()
                )
        assert set(trace_of(panel, TRUE).y) == {5.0 / noise}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NOISE)
def test_a_ceiling_is_drawn_over_its_audit(
    name: str, pictures: dict[str, Picture], answers: dict[Point, Answer]
) -> None:
    ((panel,),) = pictures[name].rows
    audit, ceiling = trace_of(panel, GAUSSIAN), trace_of(panel, GAUSSIAN_CEILING)
    assert ceiling.x == audit.x == trace_of(panel, APPROXIMATE_CEILING).x
    assert len(audit.x) == 44
    upper = {
        point.problem.as_fields()["guesses"]: answer.upper
        for point, answer in answers.items()
        if point.method.name == "auditing.planned"
        and {"canaries": 10**7, "mu": 1.0 / NOISE[name], "family": "gaussian"}.items()
        <= point.problem.as_fields().items()
    }
    assert dict(zip(ceiling.x, ceiling.y, strict=True)) == upper
    assert {trace.label for trace in panel.traces if trace.marker} == {
        GAUSSIAN.label,
        APPROXIMATE.label,
        STEINKE.label,
    }


def test_what_rests_on_a_model_says_so() -> None:
    assert all("model-based" in look.label for look in (GAUSSIAN, DPSGD))
    assert all("assumption-free" in look.label for look in (APPROXIMATE, STEINKE, APPROXIMATE_CEILING))


def test_figure_2_places_audits_over_the_true_epsilon_of_their_counts(
    pictures: dict[str, Picture], answers: dict[Point, Answer]
) -> None:
    ((panel,),) = pictures["audits2"].rows
    assert panel.diagonal
    true = sorted(5.0 / noise for noise in (15.507, 8.2535, 4.5147, 2.5765))
    for look, name in ((GAUSSIAN, "auditing.gaussian"), (DPSGD, "auditing.dpsgd")):
        curve = trace_of(panel, look)
        assert curve.x == pytest.approx(true)
        counts = {(140, 93), (200, 131), (300, 194), (400, 256), (500, 317), (700, 437)}
        at_most_noise = [
            answer.value
            for point, answer in answers.items()
            if point.method.name == name
            and point.problem.as_fields()["canaries"] == 5000
            and (point.problem.as_fields()["guesses"], point.problem.as_fields()["correct"]) in counts
        ]
        assert len(at_most_noise) == len(counts)
        assert curve.y[0] == max(value or 0.0 for value in at_most_noise)


def test_figure_3_is_about_more_than_two_alternatives(pictures: dict[str, Picture]) -> None:
    ((left, right),) = pictures["audits3"].rows
    assert trace_of(left, GAUSSIAN).x[0] == 10.0
    assert trace_of(left, GAUSSIAN).x[-1] == 5000.0
    assert trace_of(right, APPROXIMATE).x == (3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0)
    assert STEINKE.label not in {trace.label for trace in left.traces}


def test_figures_8_and_9_have_a_curve_for_each_confidence(pictures: dict[str, Picture]) -> None:
    panels = [*pictures["audits8"].rows[0], *pictures["audits9"].rows[0]]
    assert len(panels) == 3
    for panel in panels:
        assert [trace.label for trace in panel.traces] == [
            TRUE.label,
            *(f"confidence {level:g}" for level in confidence.CONFIDENCES),
        ]
        assert {trace.x for trace in panel.traces} == {panel.traces[0].x}
        assert len(panel.traces[0].x) == 14


# ---------------------------------------------------------------------------------- missing points


TINY = """
name = "tiny"

[[grid]]
problem = "audit-epsilon"
methods = ["auditing.steinke"]

[grid.product]
canaries = 100_000
guesses = 1500
correct = 1429
delta = [1e-4, 1e-5]
audit_confidence = 0.95
"""


def test_what_is_computed_is_what_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    computed = {point: evaluate(point) for point in expand(parse(TINY.encode(), "tiny").grids)}
    store = store_of(tmp_path / "store", computed)
    assert report("--store", store, "--figure", "audits8", "--out", tmp_path) == 1
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'audits8.png'}\n"
    assert err.startswith("privsweep: Figure audits8 lacks 222 of 224 points, which are not stored")
    ((panel,),) = picture(BY_NAME["audits8"], store).rows
    (curve,) = panel.traces
    assert curve.label == "confidence 0.95"
    assert curve.x == (1e-5, 1e-4)
    assert curve.y == pytest.approx((2.6688, 0.9201), abs=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["audits1", "audits2", "audits3", "audits9"])
def test_one_kind_of_points_alone_can_be_drawn(
    name: str, answers: dict[Point, Answer], tmp_path: Path
) -> None:
    """The true epsilon, the counts, or a single audit."""
    by_kind: dict[str, dict[Point, Answer]] = {}
    for point in points_of(BY_NAME[name])[:: 10 if name == "audits1" else 1]:
        by_kind.setdefault(f"{point.problem.name} {point.method.name}", {})[point] = answers[point]
    for number, some in enumerate(by_kind.values()):
        drawn = picture(BY_NAME[name], store_of(tmp_path / f"store{number}", some))
        assert sum(drawn.missing.values()) == drawn.points - len(some)
        assert drawn.rows
