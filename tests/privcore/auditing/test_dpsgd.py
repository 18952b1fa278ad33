"""The family of composed DP-SGD: its trade-off functions, and the noise multipliers that counts refute."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from privcore import Answer, Method, Point, evaluate, find, find_problem
from privcore.auditing.recursion import (
    APPROXIMATE,
    GAUSSIAN,
    LINES,
    NO_LINES,
    inverse,
    lines_of,
    supporting_lines,
    unlikely,
)
from privcore.likelihood_ratio.distribution import Resolution, mixed, product_of
from privcore.likelihood_ratio.steps import lognormal
from privcore.numerics.gaussian import gaussian_epsilon_bounds

pytestmark = pytest.mark.sampled(8)

DATA = Path(__file__).parents[1] / "data" / "auditing.csv"
COARSE = {"282", "286", "287", "288"}
"""Rows of the reference whose error exceeds their tolerance, as tests below prove."""
FINE = Resolution(fineness=0.03, tail=1e-15)


def rows(kind: str) -> list[dict[str, str]]:
    with DATA.open(newline="") as file:
        return [
            row
            for row in csv.DictReader(file)
            if row["mechanism"].startswith("subsampled-gaussian") and row["quantity"] == kind
        ]


def audit(
    guesses: int,
    correct: int,
    *,
    canaries: int = 5000,
    rate: float = 0.08192,
    steps: int = 2500,
    tolerance: float = 0.004,
) -> Answer:
    problem = find_problem("audit-dpsgd-epsilon").from_fields(
        {
            "canaries": canaries,
            "guesses": guesses,
            "correct": correct,
            "sampling_probability": rate,
            "steps": steps,
            "delta": 1e-5,
        }
    )
    return evaluate(Point(problem=problem, method=method_with("auditing.dpsgd", tolerance=tolerance)))


def poisson(row: dict[str, str], method: str, **knobs: float) -> Answer:
    fields = dict(word.split("=") for word in row["params"].split() if "=" in word)
    problem = find_problem("poisson-epsilon").from_fields(
        {
            "sigma": float(fields["sigma"]),
            "sampling_probability": float(fields["q"]),
            "steps": int(fields["T"]),
            "delta": float(row["delta"]),
        }
    )
    return evaluate(Point(problem=problem, method=method_with(method, **knobs)))


def method_with(name: str, **knobs: Any) -> Method:
    return find(name)(**knobs)


def noise(answer: Answer) -> float:
    return float(answer.detail.split("noise multiplier ")[1].split()[0])


def fine(kind: str) -> list[dict[str, str]]:
    """Return the rows whose error by a coarse grid of losses is within their tolerance."""
    return [row for row in rows(kind) if row["id"] not in COARSE]


@pytest.mark.parametrize("row", fine("eps_lb"), ids=lambda row: row["id"])
def test_the_refuted_epsilon_agrees(row: dict[str, str]) -> None:
    answer = audit(int(row["guesses"]), int(row["correct"]))
    assert answer.value == pytest.approx(float(row["value"]), rel=float(row["rtol"]))


@pytest.mark.parametrize("row", fine("sigma_rejected_min"), ids=lambda row: row["id"])
def test_the_refuted_noise_agrees(row: dict[str, str]) -> None:
    answer = audit(int(row["guesses"]), int(row["correct"]), tolerance=0.001)
    assert noise(answer) == pytest.approx(float(row["value"]), rel=float(row["rtol"]))


@pytest.mark.parametrize("row", fine("eps_of_delta"), ids=lambda row: row["id"])
def test_the_epsilon_of_dp_sgd_agrees(row: dict[str, str]) -> None:
    answer = poisson(row, "poisson.certified", tolerance=0.001)
    truth, rtol = float(row["value"]), float(row["rtol"])
    assert answer.lower * (1.0 - rtol) <= truth <= answer.upper * (1.0 + rtol)


def test_four_reference_values_come_from_a_grid_of_losses_of_a_thousandth() -> None:
    """With this grid dp-accounting gives the reference value, and with a finer grid the certified value."""
    (row,) = [row for row in rows("eps_of_delta") if row["id"] in COARSE]
    certified = poisson(row, "poisson.certified", tolerance=0.001)
    assert float(row["value"]) > 1.002 * certified.upper
    step = from_gaussian_mechanism(15.507, sampling_prob=0.08192, value_discretization_interval=1e-3)
    assert step.self_compose(2500).get_epsilon_for_delta(1e-5) == pytest.approx(float(row["value"]), rel=1e-9)
    step = from_gaussian_mechanism(15.507, sampling_prob=0.08192, value_discretization_interval=3e-5)
    assert certified.lower < step.self_compose(2500).get_epsilon_for_delta(1e-5) < certified.upper


@pytest.mark.parametrize(
    ("identity", "guesses", "correct", "refuted", "accepted"),
    [("286", 500, 317, 27.5, 27.2), ("288", 300, 228, 12.70, 12.60)],
)
def test_noise_below_a_coarse_reference_is_refuted(
    identity: str, guesses: int, correct: int, refuted: float, accepted: float
) -> None:
    counts = 5000.0, float(guesses), float(correct), 2.0
    (row,) = [row for row in rows("sigma_rejected_min") if row["id"] == identity]
    assert float(row["value"]) * (1.0 - float(row["rtol"])) > refuted
    for noise_multiplier, end, verdict in ((refuted, "upper", True), (accepted, "lower", False)):
        law = product_of(mixed(lognormal(1.0 / noise_multiplier, FINE), 0.08192, FINE), 2500, FINE)
        lines = lines_of(getattr(law, end))
        assert unlikely((LINES, 0.0, 0.0), lines, counts, 0.05) is verdict


@pytest.mark.parametrize(("guesses", "correct", "steps"), [(100, 80, 1), (100, 90, 7), (300, 170, 64)])
def test_steps_with_everybody_are_gaussian_noise(guesses: int, correct: int, steps: int) -> None:
    problem = find_problem("audit-epsilon").from_fields(
        {"canaries": 1000, "guesses": guesses, "correct": correct, "delta": 1e-5}
    )
    exact = evaluate(Point(problem=problem, method=find("auditing.gaussian")())).value
    found = audit(guesses, correct, canaries=1000, rate=1.0, steps=steps).value
    assert exact is not None
    assert found is not None
    assert 0.99 * exact <= found <= exact * (1.0 + 1e-9), "a family with rounded distributions refutes less"


def test_counts_by_chance_refute_no_noise() -> None:
    assert audit(500, 255).value == 0.0
    assert audit(0, 0).value == 0.0


def test_counts_that_no_noise_explains_give_the_least_noise_that_can_be_computed() -> None:
    """100 of 100 correct guesses are impossible about an example with sampling probability 1e-4."""
    answer = audit(100, 100, rate=1e-4, steps=1)
    assert answer.value is not None
    assert answer.value > 50.0
    assert "the least that can be computed" in answer.detail
    assert "the least that can be computed" not in audit(100, 80, canaries=1000, steps=100).detail


def test_more_correct_guesses_refute_more() -> None:
    found = [audit(200, correct, steps=200).value for correct in (130, 150, 170, 190)]
    assert found == sorted(found, key=lambda x: x or 0.0)
    assert len(set(found)) == 4


def test_lines_stay_below_the_curve_and_near_it() -> None:
    law = lognormal(1.0, FINE)
    lines = lines_of(law.upper)
    for y in np.concatenate([np.logspace(-9, -1, 30), np.linspace(0.1, 1.0, 30)]).tolist():
        exact = inverse((GAUSSIAN, 1.0, 0.0), NO_LINES, y)
        found = inverse((LINES, 0.0, 0.0), lines, y)
        assert found <= exact * (1.0 + 1e-12)
        assert found >= 0.98 * exact - 1e-12


def test_one_point_of_the_profile_gives_the_lines_of_approximate_privacy() -> None:
    lines = supporting_lines(np.array([0.0, 1.0]), np.array([1.0, 0.01]))
    for y in np.linspace(0.0, 1.0, 21).tolist():
        expected = inverse((APPROXIMATE, 1.0, 0.01), NO_LINES, y)
        assert inverse((LINES, 0.0, 0.0), lines, y) == pytest.approx(expected, abs=1e-15)


def test_the_epsilon_of_the_refuted_noise_is_not_rounded_up() -> None:
    """For one step with sampling probability 1, the epsilon is at most that of the noise in the detail."""
    answer = audit(100, 80, canaries=1000, rate=1.0, steps=1)
    assert answer.value is not None
    assert answer.value <= gaussian_epsilon_bounds(noise(answer), 1e-5)[1] * (1.0 + 1e-5)


@pytest.mark.parametrize("drawn", [{"alternatives": 3}, {"design": "pairs"}])
def test_records_that_are_replaced_are_refused_in_one_sentence(drawn: dict[str, Any]) -> None:
    counts = {"canaries": 100, "guesses": 10, "correct": 5}
    problem = find_problem("audit-dpsgd-epsilon").from_fields(
        {**counts, **drawn, "sampling_probability": 0.1, "steps": 10, "delta": 1e-5}
    )
    assert find("auditing.dpsgd")().applies(problem) == (
        "The trade-off function is for guesses of inclusion only (alternatives=2, not pairs)."
    )
