"""The command profile: numbers, words, files of phases, charts, and one sentence for every mistake."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from flows.answers.ask import ask
from flows.answers.question import question, typed
from flows.reports.profile_chart import draw_profile, profile_report
from privcore import DomainError, Point, evaluate, find, find_problem
from privcore.likelihood_ratio.questions import Question
from privcore.training.brackets import Profile
from privcore.training.notation import phases as read
from privcore.training.numbers import USUAL, RunProfile, run_profile
from tests.flows.small_store import Command

pytestmark = pytest.mark.sampled(8)

PUBLIC = "none(sigma=2,steps=4)"
SAMPLED = "poisson(sigma=1,sampling_probability=0.02,steps=100)"
SHUFFLED = "shuffling(sigma=3,steps=100,epochs=2,redraw=each-epoch)"
CUT = "truncated-poisson(sigma=1,sampling_probability=0.05,examples=1000,largest_batch=70,steps=10)"
MU = 1.0
"""Distance of the means in the run `PUBLIC`."""


@pytest.fixture(scope="module")
def public() -> RunProfile:
    return run_profile(PUBLIC, "add-remove", {})


@pytest.fixture(scope="module")
def sampled() -> RunProfile:
    return run_profile(f"{SAMPLED}; {PUBLIC}", "add-remove", {})


def gaussian(quantity: str, at: dict[str, float]) -> float:
    """Return a number of the Gaussian mechanism with `MU`, in plain doubles."""
    first = next(iter(at.values()), 0.0)
    power = float(special.ndtr(special.ndtri(at.get("false_positive_rate", 0.5)) + MU))
    if quantity == "delta":
        return float(special.ndtr(MU / 2 - first / MU) - math.exp(first) * special.ndtr(-MU / 2 - first / MU))
    if quantity == "accuracy":
        cut = MU / 2 + math.log((1 - first) / first) / MU
        return float(first * special.ndtr(MU - cut) + (1 - first) * special.ndtr(cut))
    if quantity == "precision":
        return first * power / (first * power + (1 - first) * at["false_positive_rate"])
    if quantity == "true_positive_rate":
        return power
    if quantity == "false_positive_rate":
        return float(special.ndtr(special.ndtri(first) - MU))
    return {"advantage": 2 * float(special.ndtr(MU / 2)) - 1, "mu": MU}[quantity]


def test_every_number_of_a_run_without_sampling_is_that_of_the_gaussian_mechanism(public: RunProfile) -> None:
    for line in public.lines:
        if line.quantity != "epsilon":
            truth = gaussian(line.quantity, line.at)
            assert line.lower * (1 - 1e-9) <= truth <= line.upper * (1 + 1e-9), line
            assert line.upper <= line.lower * (1 + 1e-8)
    for rate, low, high in zip(public.rates, *public.powers, strict=True):
        assert low <= special.ndtr(special.ndtri(rate) + MU) * (1 + 1e-9) <= high * (1 + 2e-9)


def test_a_profile_has_every_quantity_at_the_usual_numbers(sampled: RunProfile) -> None:
    found: dict[str, list[dict[str, float]]] = {}
    for line in sampled.lines:
        found.setdefault(line.quantity, []).append(line.at)
    assert list(found) == [
        "epsilon",
        "delta",
        "true_positive_rate",
        "false_positive_rate",
        "advantage",
        "accuracy",
        "precision",
        "mu",
    ]
    assert [at["delta"] for at in found["epsilon"]] == list(USUAL["delta"])
    assert [at["smallest_false_positive_rate"] for at in found["mu"]] == [1e-6, 1e-3]


def test_the_profile_agrees_with_the_problems_about_each_number(sampled: RunProfile) -> None:
    names = {
        "epsilon": ("run-epsilon", "runs.certified"),
        "delta": ("run-delta", "runs.certified"),
        "true_positive_rate": ("run-tpr", "runs.curves"),
        "false_positive_rate": ("run-fpr", "runs.curves"),
        "advantage": ("run-advantage", "runs.curves"),
        "accuracy": ("run-accuracy", "runs.curves"),
        "mu": ("run-mu", "runs.curves"),
    }
    seen = set()
    for line in sampled.lines:
        if line.quantity in names and line.quantity not in seen:
            seen.add(line.quantity)
            name, method = names[line.quantity]
            fields = {"phases": sampled.phases, "adjacency": sampled.adjacency, **line.at}
            answer = evaluate(Point(problem=find_problem(name).from_fields(fields), method=find(method)()))
            assert max(answer.lower, line.lower) <= min(answer.upper, line.upper), line
            assert line.upper <= 1.01 * line.lower


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("phases", "adjacency"), [(SHUFFLED, "zero-out"), (CUT, "remove"), (CUT, "zero-out-add")]
)
def test_ends_never_cross_if_they_come_from_different_laws(phases: str, adjacency: str) -> None:
    profile = run_profile(phases, adjacency, {"delta": [1e-5], "epsilon": [0.5], "true_positive_rate": [0.2]})
    assert all(line.lower <= line.upper for line in profile.lines)
    lower, upper = (np.array(ends) for ends in profile.powers)
    assert np.all(lower <= upper)
    assert np.all(lower >= np.array(profile.rates))
    asks = {line.quantity for line in profile.lines}
    assert ("precision" in asks) == (adjacency != "zero-out-add")  # this direction shows absence


def test_a_run_beyond_doubles_keeps_its_closed_forms() -> None:
    profile = run_profile("poisson(sigma=0.05,sampling_probability=0.5,steps=100)", "add-remove", {})
    assert all(line.lower <= line.upper for line in profile.lines)
    assert all(line.upper > 0.9 for line in profile.lines if line.quantity == "true_positive_rate")


def test_lower_ends_of_a_run_beyond_doubles_are_those_of_fewer_steps() -> None:
    phases = "poisson(sigma=0.7,sampling_probability=0.1,steps={})"
    many = run_profile(phases.format(10_000), "add-remove", {"delta": [1e-6]})
    few = run_profile(phases.format(10_000 // 2**5), "add-remove", {"delta": [1e-6]})
    for line, fewer in zip(many.lines, few.lines, strict=True):
        if line.quantity in ("epsilon", "true_positive_rate", "advantage", "mu"):
            assert 0.98 * fewer.lower <= line.lower <= line.upper, line
    assert many.powers[0][-1] >= 0.98 * few.powers[0][-1]


def test_bounds_that_hold_within_a_distance_count_in_a_profile() -> None:
    run, question = read(SHUFFLED), Question(asks="epsilon", at=1e-5, adjacency="zero-out")
    profile = Profile(run, "zero-out", [question])
    moved = any(above.moved > 0.0 for above in profile.bounds.above)
    ((lower, upper),) = profile.answers()
    assert lower < upper <= profile.unamplified**2 / 2 + profile.unamplified * 5
    assert moved or len(profile.bounds.above) == 1


def test_the_table_has_both_ends_and_mu_only_with_its_smallest_rate(privsweep: Command) -> None:
    words = ("profile", "--sampling", "poisson", "--sigma", 1, "--steps", 50, "--sampling-probability", 0.02)
    assert privsweep(*words, "--fpr", 0.01, "--delta", 1e-5, "--smallest-fpr", 1e-4) == 0
    lines = privsweep.out.splitlines()
    assert lines[0] == "poisson(sigma=1,sampling_probability=0.02,steps=50) adjacency=add-remove"
    assert lines[1].split() == ["quantity", "at", "lower", "upper"]
    (mu,) = [
        line for line in lines if line.startswith("mu ") and "smallest_false_positive_rate=0.0001" in line
    ]
    lower, upper = (float(word) for word in mu.split()[-2:])
    assert 0.0 < lower < upper < 1.02 * lower
    assert lines[-1].startswith(
        "mu holds for false positive rates from the smallest rate to 1 minus this rate"
    )
    assert lines[-1].endswith("without sampling, 7.07107")
    assert sum(line.startswith("epsilon ") for line in lines) == 1


def test_json_has_all_digits_and_the_curve(privsweep: Command) -> None:
    content = privsweep.told("profile", "--run", PUBLIC, "--adjacency", "remove", "--tpr", 0.1)
    assert content["phases"] == PUBLIC
    assert content["mu_without_sampling"] == pytest.approx(MU)
    assert {"quantity", "at", "lower", "upper"} == set(content["profile"][0])
    assert [line["at"] for line in content["profile"] if line["quantity"] == "false_positive_rate"] == [
        {"true_positive_rate": 0.1}
    ]
    assert all(point["lower"] <= point["upper"] for point in content["curve"])


def phase(sampling: str, **options: str) -> tuple[str, str, list[str]]:
    found = question(typed({"sampling": sampling, **options}))
    return found.run["phases"], found.run["adjacency"], found.notes


def test_a_batch_size_gives_steps_and_rate_rounded_to_the_safe_side() -> None:
    text, relation, notes = phase("poisson", sigma="1", examples="1024", batch_size="30")
    assert text == "poisson(sigma=1,sampling_probability=0.029296875,steps=35)"
    assert relation == "add-remove"
    assert "rounded up" in notes[0]
    assert (
        phase("allocation", sigma="1", examples="1024", batch_size="30")[0] == "allocation(sigma=1,steps=34)"
    )


def test_the_options_of_one_phase_mean_the_same_as_for_epsilon() -> None:
    assert (
        phase("none", sigma="2", steps="1000", participations="2", epochs="3")[0]
        == "none(sigma=2,steps=2,epochs=3)"
    )
    for sampling, options in (
        ("none", {"sigma": "2", "steps": "1000", "participations": "2", "epochs": "3"}),
        ("poisson", {"sigma": "1", "steps": "20", "sampling_probability": "0.1", "epochs": "2"}),
        ("allocation", {"sigma": "1", "steps": "20", "participations": "2"}),
        ("fixed-size", {"sigma": "1", "steps": "20", "sampling_probability": "0.1", "adjacency": "zero-out"}),
        ("shuffling", {"sigma": "2", "steps": "20", "adjacency": "replace-one"}),
    ):
        kind, fields, _ = question(typed({"sampling": sampling, **options}))
        text, relation, _ = phase(sampling, **options)
        asked = ask(kind.asked({**fields, "delta": 1e-6}))
        line = run_profile(text, relation, {"delta": [1e-6]}).lines[0]
        assert max(asked.lower, line.lower) <= min(asked.upper, line.upper), sampling


def test_a_file_of_a_run_gives_its_phases_its_relation_and_its_delta(
    tmp_path: Path, privsweep: Command
) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'adjacency = "remove"\ndelta = 1e-7\n'
        '[[phase]]\nsampling = "none"\nsigma = 2\nsteps = 4\n'
        '[[phase]]\nsampling = "poisson"\nsigma = 1\nsampling_probability = 0.02\nsteps = 100\n'
    )
    content = privsweep.told("profile", "--run", path)
    assert (content["phases"], content["adjacency"]) == (f"{PUBLIC}; {SAMPLED}", "remove")
    assert [line["at"] for line in content["profile"] if line["quantity"] == "epsilon"] == [{"delta": 1e-7}]
    assert privsweep("profile", "--run", path, "--adjacency", "add", "--delta", 1e-3, "--json") == 0
    assert privsweep.json["adjacency"] == "add"
    assert privsweep.json["profile"][0]["at"] == {"delta": 1e-3}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["svg", "png", "pdf", "html"])
def test_a_chart_is_written_in_every_format(kind: str, sampled: RunProfile, tmp_path: Path) -> None:
    path = tmp_path / "charts" / f"roc.{kind}"
    draw_profile(sampled, path)
    content = path.read_bytes()
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!doctype html>"}
    assert content.startswith(starts[kind])
    draw_profile(sampled, path)
    assert path.read_bytes() == content


def test_the_report_has_the_table_and_both_ends_of_the_curve(sampled: RunProfile) -> None:
    report = profile_report(sampled)
    (plot,) = report.plots
    assert [(mark.bracket.lower, mark.bracket.upper) for mark in plot.marks] == list(
        zip(*sampled.powers, strict=True)
    )
    assert [mark.x for mark in plot.marks] == list(sampled.rates)


def test_a_chart_inside_a_store_is_refused(tmp_path: Path, sampled: RunProfile) -> None:
    from storage import open_store

    with open_store(tmp_path / "store", create=True):
        pass
    with pytest.raises(DomainError, match="outside of every store"):
        draw_profile(sampled, tmp_path / "store" / "roc.svg")
