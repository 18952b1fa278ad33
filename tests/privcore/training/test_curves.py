"""Membership tests on runs of phases: reference values, closed forms, order of phases, both directions."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from privcore import Answer, Point, evaluate, find
from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.profile import powers_lower, powers_upper
from privcore.likelihood_ratio.questions import (
    AdvantageQuestion,
    MuQuestion,
    PowerQuestion,
    Question,
    RateQuestion,
)
from privcore.likelihood_ratio.ratios import Composed, Gaussian, Sampled
from privcore.training.brackets import closed_form, enclosed_run
from privcore.training.samplers import Above, Bounds
from tests.privcore.draws import problem

TABLE = (Path(__file__).parents[1] / "data" / "runs.csv").read_text()
ASKED = {
    "tpr": ("run-tpr", {"fpr": "false_positive_rate"}),
    "advantage": ("run-advantage", {}),
    "bayes_accuracy": ("run-accuracy", {"prior": "member_probability"}),
}
ROWS = [row for row in csv.DictReader(TABLE.splitlines()) if row["quantity"] in ASKED]
NOISY = "none(sigma=2,steps=3)"
SAMPLED = "poisson(sigma=1,sampling_probability=0.02,steps=100)"
SHUFFLED = "shuffling(sigma=2,steps=50,epochs=2,redraw=each-epoch)"
CUT = "truncated-poisson(sigma=1,sampling_probability=0.05,examples=1000,largest_batch=70,steps=10)"
QUESTIONS: list[tuple[str, dict[str, float]]] = [
    ("run-tpr", {"false_positive_rate": 1e-3}),
    ("run-fpr", {"true_positive_rate": 0.1}),
    ("run-advantage", {}),
    ("run-accuracy", {"member_probability": 0.4}),
    ("run-mu", {"smallest_false_positive_rate": 1e-6}),
]
each_question = pytest.mark.parametrize(("name", "fields"), QUESTIONS, ids=[name for name, _ in QUESTIONS])


def answer(name: str, phases: str, adjacency: str, **fields: float) -> Answer:
    asked = problem(name, phases=phases, adjacency=adjacency, **fields)
    found = evaluate(Point(problem=asked, method=find("runs.curves")()))
    assert found.ok, found.detail
    return found


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_reference_values_are_enclosed_within_one_percent(row: dict[str, str]) -> None:
    given, (name, fields) = json.loads(row["params"]), ASKED[row["quantity"]]
    rate = f",sampling_probability={given['rate']}" if "rate" in given else ""
    scheme = "poisson" if "rate" in given else "none"
    phases = f"{scheme}(sigma={given['sigma']}{rate},steps={given['steps']})"
    found = answer(name, phases, "remove", **{field: given[key] for key, field in fields.items()})
    truth = float(row["value"])
    slack = 0.5 * 10.0 ** (1 - int(row["digits_or_kind"].split(":")[1])) * truth
    assert found.lower - slack <= truth <= found.upper + slack
    assert found.upper <= 1.01 * found.lower


def gaussian(name: str, fields: dict[str, float], mu: float) -> float:
    """Return the quantity of the Gaussian mechanism in plain doubles."""
    at = next(iter(fields.values()), 0.5)
    half = 2.0 * float(special.ndtr(0.5 * mu)) - 1.0
    cut = 0.5 * mu + math.log((1.0 - at) / at) / mu
    values = {
        "run-tpr": special.ndtr(special.ndtri(at) + mu),
        "run-fpr": special.ndtr(special.ndtri(at) - mu),
        "run-advantage": half,
        "run-accuracy": at * special.ndtr(mu - cut) + (1.0 - at) * special.ndtr(cut),
        "run-mu": mu,
    }
    return float(values[name])


@each_question
def test_a_run_without_sampling_has_the_closed_form(name: str, fields: dict[str, float]) -> None:
    mu = math.sqrt(3 / 4 + 5 / 0.64)
    found = answer(name, f"{NOISY}; none(sigma=0.8,steps=5)", "add-remove", **fields)
    truth = gaussian(name, fields, mu)
    assert found.lower * (1.0 - 1e-12) <= truth <= found.upper * (1.0 + 1e-12)
    assert found.upper <= (1.0 + 1e-9) * found.lower
    twice = answer(name, f"{NOISY}; none(sigma=0.8,steps=5)", "replace-one", **fields)
    assert twice.lower <= gaussian(name, fields, 2.0 * mu) * (1.0 + 1e-12)


@each_question
def test_the_order_of_phases_and_their_division_do_not_matter(name: str, fields: dict[str, float]) -> None:
    half = SAMPLED.replace("steps=100", "steps=50")
    found = [
        answer(name, phases, "add-remove", **fields)
        for phases in (f"{NOISY}; {SAMPLED}", f"{SAMPLED}; {NOISY}", f"{half}; {NOISY}; {half}")
    ]
    assert max(each.lower for each in found) <= min(each.upper for each in found)
    assert all(each.upper <= 1.01 * each.lower for each in found)


@each_question
def test_a_further_phase_reveals_more(name: str, fields: dict[str, float]) -> None:
    few, many = (
        answer(name, SAMPLED, "remove", **fields),
        answer(name, f"{SAMPLED}; {NOISY}", "remove", **fields),
    )
    if name == "run-fpr":
        few, many = many, few
    assert few.upper < many.lower


@each_question
def test_the_relation_is_as_bad_as_its_worse_direction(name: str, fields: dict[str, float]) -> None:
    both, *each = (
        answer(name, SAMPLED, adjacency, **fields) for adjacency in ("add-remove", "remove", "add")
    )
    worse = min if name == "run-fpr" else max
    assert both.lower <= worse(one.upper for one in each)
    assert both.upper >= worse(one.lower for one in each)
    if name in ("run-advantage", "run-accuracy"):  # the same in both directions
        assert max(one.lower for one in each) <= min(one.upper for one in each)


@each_question
@pytest.mark.parametrize(
    ("phases", "adjacency"), [(SHUFFLED, "zero-out"), (CUT, "remove"), (CUT, "replace-one")]
)
def test_ends_of_different_laws_do_not_cross(
    phases: str, adjacency: str, name: str, fields: dict[str, float]
) -> None:
    found = answer(name, phases, adjacency, **fields)
    assert found.lower <= found.upper
    if phases == SHUFFLED:
        revealed = gaussian(name, fields, math.sqrt(2.0) / 2.0)
        assert (
            found.lower >= revealed * (1.0 - 1e-9)
            if name == "run-fpr"
            else found.upper <= revealed * (1.0 + 1e-9)
        )


def test_a_law_within_a_distance_bounds_a_pair_that_moved_by_it() -> None:
    ratio, distance = Composed(Sampled(Gaussian(1.0), 0.05), 20), 0.003
    bounds = Bounds(above=(Above(ratio, distance),), below=())
    exact = Bounds.exact(ratio)
    # With probability `distance`, P and Q are replaced by two different outcomes.
    for rate in (1e-4, 0.01, 0.3):
        inner = rate / (1.0 - distance)
        low = enclosed_run(exact, PowerQuestion(at=inner, adjacency="remove"), 1e-3, 40.0)[0]
        moved = enclosed_run(bounds, PowerQuestion(at=rate, adjacency="remove"), 1e-3, 40.0)[1]
        assert distance + (1.0 - distance) * low <= moved <= 1.0
        power = (rate - distance) / (1.0 - distance)
        least = enclosed_run(bounds, RateQuestion(at=rate, adjacency="remove"), 1e-3, 40.0)[0]
        if power <= 0.0:
            assert least < 1e-100
        else:
            high = enclosed_run(exact, RateQuestion(at=power, adjacency="remove"), 1e-3, 40.0)[1]
            assert least <= (1.0 - distance) * high
            assert least > 0.0 or rate < 0.1
    gain = enclosed_run(exact, AdvantageQuestion(), 1e-3, 40.0)[0]
    assert distance + (1.0 - distance) * gain <= enclosed_run(bounds, AdvantageQuestion(), 1e-3, 40.0)[1]
    known = enclosed_run(bounds, MuQuestion(at=1e-3, adjacency="remove"), 1e-3, 40.0)
    assert known[1] == pytest.approx(40.0)


def test_a_closed_form_covers_the_error_of_the_distance() -> None:
    for question in (
        PowerQuestion(at=1e-6, adjacency="remove"),
        RateQuestion(at=0.3, adjacency="remove"),
        MuQuestion(at=1e-6, adjacency="remove"),
        AdvantageQuestion(),
        Question(asks="epsilon", at=1e-6, adjacency="remove"),
        Question(asks="delta", at=0.4, adjacency="remove"),
    ):
        low, high = closed_form(question, 1.7)
        for mu in (np.nextafter(1.7, 0.0), 1.7, np.nextafter(1.7, 2.0)):
            inner = question.gaussian(float(mu))
            assert low <= inner[0]
            assert inner[1] <= high


def test_the_power_of_a_run_lies_on_the_curve_of_its_law() -> None:
    ratio = Composed(Sampled(Gaussian(1.0), 0.02), 100)
    found = answer("run-tpr", SAMPLED, "add", false_positive_rate=0.05)
    bracket = ratio.bracket(Resolution(fineness=0.02, tail=1e-20))
    rates = np.array([0.05])
    assert found.lower <= powers_upper(bracket.upper, rates, "add")[0]
    assert found.upper >= powers_lower(bracket.lower, rates, "add")[0]
