"""Reference values for audits in one run: 40 digits, quadrature and the algorithm as printed."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from privcore import Answer, Point, evaluate, find, find_problem
from privcore.auditing.counts import revealed_tail
from privcore.auditing.optimal import expected_correct, few_errors
from privcore.auditing.recursion import (
    APPROXIMATE,
    GAUSSIAN,
    LAPLACE,
    NO_LINES,
    gaussian_limit,
    inverse,
    largest_refuted,
    smallest_level,
)

DATA = Path(__file__).parents[1] / "data" / "auditing.csv"
Row = dict[str, str]

PURE = 1e-300
"""Replacement for a delta of 0."""


def rows(*quantities: str, mechanism: str = "") -> list[Row]:
    with DATA.open(newline="") as file:
        found = [r for r in csv.DictReader(file) if r["quantity"] in quantities]
    return [row for row in found if row["mechanism"].startswith(mechanism)]


def counts(row: Row) -> tuple[float, float, float, float]:
    return float(row["m"]), float(row["guesses"]), float(row["correct"]), float(row["k"])


def parameter(row: Row, name: str) -> float:
    return float(dict(word.split("=") for word in row["params"].split() if "=" in word)[name])


def agrees(found: float, row: Row, *, least: float = 1e-12) -> bool:
    truth = float(row["value"])
    return math.isclose(found, truth, rel_tol=max(float(row["rtol"]), least), abs_tol=1e-12)


def audit(row: Row, method: str) -> Answer:
    canaries, guesses, correct, alternatives = counts(row)
    fields: dict[str, Any] = {
        "canaries": canaries,
        "guesses": guesses,
        "correct": correct,
        "alternatives": alternatives,
        "delta": float(row["delta"]) or PURE,
        "audit_confidence": 1.0 - float(row["tau"]),
    }
    problem = find_problem("audit-epsilon").from_fields(fields)
    return evaluate(Point(problem=problem, method=find(method)()))


@pytest.mark.parametrize("row", rows("mu_lb", mechanism="gaussian-family"), ids=lambda row: row["id"])
def test_the_refuted_mu_is_that_of_40_digits(row: Row) -> None:
    assert agrees(largest_refuted(GAUSSIAN, 0.0, counts(row), float(row["tau"]), 60.0), row)


@pytest.mark.parametrize("row", rows("eps_lb", mechanism="gaussian-family"), ids=lambda row: row["id"])
def test_the_epsilon_of_the_gaussian_family_agrees(row: Row) -> None:
    value = audit(row, "auditing.gaussian").value
    assert value is not None
    assert agrees(value, row, least=2e-9)


@pytest.mark.parametrize("mechanism", ["epsdelta-family", "pure-family"])
def test_the_epsilon_without_assumptions_agrees(mechanism: str) -> None:
    for row in rows("eps_lb", mechanism=mechanism):
        assert agrees(audit(row, "auditing.approximate").lower, row, least=1e-9), row


def test_the_laplace_family_agrees() -> None:
    for row in rows("e0_lb"):
        assert agrees(largest_refuted(LAPLACE, 0.0, counts(row), float(row["tau"]), 700.0), row), row
    for row in rows("eps_lb", mechanism="laplace-family"):
        value = audit(row, "auditing.laplace").value
        assert value is not None
        assert agrees(value, row, least=1e-9), row


def test_the_audit_of_steinke_agrees() -> None:
    found = rows("eps_lb", mechanism="steinke")
    assert len(found) >= 10
    for row in found:
        assert agrees(audit(row, "auditing.steinke").lower, row, least=2e-9), row
    for row in rows("p_steinke"):
        m, guesses, correct, _ = counts(row)
        value = revealed_tail(int(m), int(guesses), int(correct), parameter(row, "eps"), float(row["delta"]))
        assert agrees(value, row, least=1e-9), row
        assert value >= float(row["value"])


def test_p_values_of_algorithm_3_agree() -> None:
    families = {"gaussian": (GAUSSIAN, "mu"), "laplace": (LAPLACE, "e0"), "pure": (APPROXIMATE, "eps")}
    families["epsdelta"] = (APPROXIMATE, "eps")
    found = rows("p_alg3")
    assert len(found) >= 12
    for row in found:
        family, name = families[row["mechanism"]]
        delta = float(row["delta"] or 0.0)
        claim = (family, parameter(row, name), delta)
        assert agrees(smallest_level(claim, NO_LINES, counts(row)), row), row


def test_inverses_of_trade_off_functions_agree() -> None:
    families = {"gaussian": (GAUSSIAN, "mu"), "laplace": (LAPLACE, "e0"), "epsdelta": (APPROXIMATE, "eps")}
    found = [row for row in rows("fbar_inv") if row["mechanism"] in families]
    assert len(found) >= 8
    for row in found:
        family, name = families[row["mechanism"]]
        claim = (family, parameter(row, name), float(row["delta"] or 0.0))
        assert agrees(inverse(claim, NO_LINES, parameter(row, "y")), row), row


def test_the_optimal_attacker_agrees() -> None:
    for row in rows("E_correct_two_sided"):
        found = expected_correct(int(row["m"]), int(row["guesses"]), 1.0 / parameter(row, "sigma"))
        assert agrees(found, row), row
    for row in rows("p_product_exact"):
        m, guesses, correct, _ = counts(row)
        found = few_errors(int(m), int(guesses), int(guesses - correct), parameter(row, "mu"))
        assert agrees(found, row), row


def test_the_limit_of_the_first_step_agrees() -> None:
    for row in rows("mu_A_first_step"):
        m, guesses, correct, k = (int(x) for x in counts(row))
        assert agrees(gaussian_limit(m, guesses, correct, k, 0.05), row), row


def test_the_linear_programme_agrees_and_proves_its_bound() -> None:
    for row in rows("p_theorem9_lp"):
        m, guesses, correct, k = (int(x) for x in counts(row))
        problem = find_problem("audit-gaussian-tail").from_fields(
            {
                "canaries": m,
                "guesses": guesses,
                "correct": correct,
                "alternatives": k,
                "mu": parameter(row, "mu"),
            }
        )
        answers = [
            evaluate(
                Point(problem=problem, method=find("auditing.programme").from_knobs({"profile_points": n}))
            )
            for n in (60, 200)
        ]
        assert agrees(answers[0].upper, row)  # the reference has 60 points
        assert 0.99 * answers[0].upper < answers[1].upper <= answers[0].upper


def test_the_curve_of_steinke_agrees() -> None:
    for row in rows("p_min_over_eps"):
        m, guesses, correct, _ = (int(x) for x in counts(row))
        problem = find_problem("audit-gaussian-tail").from_fields(
            {"canaries": m, "guesses": guesses, "correct": correct, "mu": parameter(row, "mu")}
        )
        answer = evaluate(Point(problem=problem, method=find("auditing.revealed")()))
        assert answer.upper == pytest.approx(float(row["value"]), rel=2e-3)
        assert answer.upper <= float(row["value"]) * (1.0 + 1e-6)
