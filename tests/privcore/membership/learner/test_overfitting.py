"""Overfitting: the security given two shares of losses, and the smallest possible loss of a fresh record."""

import csv
import math
import re
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from privcore import Answer, Point, evaluate, find
from privcore.membership.learner.overfitting import theorem11
from tests.privcore.draws import problem

ORACLE = Path(__file__).parents[2] / "data" / "membership.csv"
Array = NDArray[np.float64]


def security(method: str, unfitted: float, fresh: float, odds: float = 1.0) -> Answer:
    asked = problem("membership-overfitting-security", unfitted_share=unfitted, fresh_share=fresh, odds=odds)
    return evaluate(Point(problem=asked, method=find(f"membership.{method}")()))


def cap(level: float, deviation: float) -> Answer:
    asked = problem("membership-interpolation-cap", loss_level=level, noise_deviation=deviation)
    return evaluate(Point(problem=asked, method=find("membership.concentration")()))


def advantage(joint: Array, odds: float) -> float:
    """Advantage for a joint distribution of release (rows) and record (columns)."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    gain = joint - odds * product if odds >= 1.0 else product - joint / odds
    return float(np.maximum(gain, 0.0).sum())


def test_the_oracle_agrees_on_how_small_fresh_losses_can_be() -> None:
    with ORACLE.open(newline="") as file:
        found = [row for row in csv.DictReader(file) if "squared loss" in row["quantity"]]
    assert len(found) == 5
    for row in found:
        level = float(row["quantity"].split("<=")[1].split(")")[0])
        deviation = 0.1 * (math.sqrt(2.0) if row["distribution"].startswith("1-NN") else 1.0)
        answer = cap(level, deviation)
        assert answer.lower == pytest.approx(float(row["value"]), rel=1e-10)
        assert answer.upper == pytest.approx(float(row["value"]), rel=1e-10)


def test_the_cap_is_that_of_30_digits() -> None:
    for level, deviation in ((0.0, 1.0), (1e-12, 0.3), (1e-6, 0.1), (0.5, 0.5), (4.0, 1.0), (1e12, 1e-6)):
        answer = cap(level, deviation)
        with mp.workdps(30):
            truth = mp.erf(mp.sqrt(mp.mpf(level) / 2) / mp.mpf(deviation))
        assert answer.lower <= truth <= answer.upper


def test_no_regressor_is_closer_than_the_true_function() -> None:
    noise = 0.3 * np.random.default_rng(1).standard_normal(200_000)
    for error in (0.0, 0.2, 0.4, 1.0):
        share = float(((noise - error) ** 2 <= 0.01).mean())
        assert share <= cap(0.01, 0.3).upper + 4.0 * math.sqrt(0.25 / 200_000)
        assert (abs(share - cap(0.01, 0.3).lower) < 0.004) is (error == 0.0)


def test_the_shares_of_the_papers_first_figure_leave_little_security() -> None:
    fresh = cap(1e-6, 0.1).upper
    assert security("overfitting", 0.05, fresh).upper == pytest.approx(0.05798, abs=1e-5)


def arcs(values: int, length: int, inside: float) -> Array:
    """Return the joint distribution of an arc and a record; the arc covers it with probability `inside`."""
    joint = np.zeros((values, values))
    for start in range(values):
        covered = [(start + step) % values for step in range(length)]
        joint[start] = (1.0 - inside) / (values - length)
        joint[start, covered] = inside / length
    return joint / values


@pytest.mark.parametrize("odds", [0.3, 0.9, 1.0, 1.4, 5.0])
def test_a_learner_of_arcs_attains_the_security_that_the_shares_leave(odds: float) -> None:
    for length in (1, 4, 10, 19):
        for inside in (0.0, 0.2, 0.5, 0.95, 1.0):
            found = 1.0 - advantage(arcs(20, length, inside), odds)
            answer = security("arcs", 1.0 - inside, length / 20, odds)
            assert answer.lower - 1e-12 <= found <= answer.upper + 1e-12, (length, inside)
            assert found <= security("overfitting", 1.0 - inside, length / 20, odds).upper + 1e-12


def test_no_random_learner_is_more_secure_than_its_shares_allow() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        joint = rng.dirichlet(np.full(20, 0.3)).reshape(4, 5)
        small = rng.random((4, 5)) < 0.5
        product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        shares = (float(joint[~small].sum()), float(product[small].sum()))
        for odds in (0.4, 1.0, 2.5):
            assert 1.0 - advantage(joint, odds) <= security("arcs", *shares, odds).upper + 1e-12


def test_the_published_bound_is_that_of_the_best_of_two_attacks_or_above() -> None:
    for odds in (0.2, 1.0, 4.0):
        for unfitted in (0.0, 0.3, 1.0):
            for fresh in (0.0, 0.2, 1.0):
                exact = security("arcs", unfitted, fresh, odds)
                assert exact.lower <= security("overfitting", unfitted, fresh, odds).upper
    turned = security("arcs", 0.9, 0.8)
    assert turned.upper == pytest.approx(0.3)
    assert turned.detail.endswith("the attack is reversed")
    assert security("overfitting", 0.9, 0.8).upper == 1.0


def test_a_vanishing_level_leaves_the_share_that_is_not_fitted() -> None:
    """Remark 12: max(1, 1 / gamma) alpha."""
    for odds in (0.5, 1.0, 3.0):
        fresh = cap(1e-24, 0.1).upper
        found = security("overfitting", 0.05, fresh, odds).upper
        assert found == pytest.approx(max(1.0, 1.0 / odds) * 0.05, rel=1e-8)


def test_stopping_at_a_training_loss_fits_all_but_a_share() -> None:
    """Proposition 10: if the mean is at most epsilon alpha, at most the share alpha is above epsilon."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        losses = rng.exponential(size=50) ** rng.uniform(0.2, 5.0)
        level, alpha = 1e-3, rng.uniform(0.01, 0.9)
        losses *= level * alpha / losses.mean()
        assert float((losses > level).mean()) <= alpha
    assert theorem11(0.0, 0.0, 1.0) == 0.0


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        (
            "membership-overfitting-security",
            {"unfitted_share": 1.5, "fresh_share": 0.0},
            "Expected unfitted_share in [0, 1], got unfitted_share=1.5.",
        ),
        (
            "membership-interpolation-cap",
            {"loss_level": 1e-6, "noise_deviation": 0.0},
            "Expected noise_deviation in [1e-06, 1000000], got noise_deviation=0.0.",
        ),
    ],
)
def test_a_bad_field_is_refused(kind: str, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        problem(kind, **fields)
