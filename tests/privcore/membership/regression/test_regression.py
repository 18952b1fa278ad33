"""Least squares: the likelihood ratio against real regressions, oracle values, and the loss threshold."""

import csv
import math
import re
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from privcore import Answer, Point, Status, evaluate, find
from privcore.membership.regression.likelihood_ratio import RegressionDraws, _log_bessel, draw, log_ratio
from privcore.membership.regression.threshold import LossRates, best_root
from tests.privcore.draws import problem

pytestmark = pytest.mark.sampled(6)

ORACLE = Path(__file__).parents[2] / "data" / "membership.csv"
Array = NDArray[np.float64]
Row = dict[str, str]


def rows(quantity: str) -> list[Row]:
    with ORACLE.open(newline="") as file:
        return [
            row
            for row in csv.DictReader(file)
            if row["distribution"].startswith("OLS") and row["quantity"].startswith(quantity)
        ]


def coordinates(row: Row) -> int:
    found = re.search(r"d=(\d+)", row["distribution"])
    assert found
    return int(found[1])


def ask(method: str, knobs: dict[str, Any] | None = None, **fields: Any) -> Answer:
    asked = problem("membership-regression-advantage", **fields)
    return evaluate(Point(problem=asked, method=find(method).from_knobs(knobs or {})))


def standard_error(answer: Answer) -> float:
    return float(answer.detail.rpartition(" ")[2])


@pytest.mark.thorough
def test_the_oracle_agrees_with_sobol_points_and_with_independent_draws() -> None:
    found = rows("Delta(gamma=1)")
    assert len(found) == 7
    for row in found:
        fields = {"coordinates": coordinates(row), "records": int(row["n"])}
        estimate = ask("membership.sobol", {"samples": 2**16}, **fields)
        assert estimate.value is not None
        allowed = 4.0 * math.hypot(float(row["std_error"]), standard_error(estimate))
        assert abs(estimate.value - float(row["value"])) < allowed, row
        interval = ask("membership.sampling", {"samples": 100_000}, **fields)
        assert interval.lower < float(row["value"]) < interval.upper, row
        assert interval.confidence == 0.99


def test_the_oracle_agrees_with_the_limit_of_many_records() -> None:
    found = rows("lim sqrt(n) Delta")
    assert len(found) == 3
    for row in found:
        answer = ask("membership.influence", coordinates=coordinates(row), records=10**10)
        assert answer.value is not None
        assert 1e5 * answer.value == pytest.approx(float(row["value"]), rel=1e-12)


def test_the_oracle_agrees_with_the_attack_by_the_loss() -> None:
    (row,) = rows("best loss-threshold")
    answer = ask("membership.threshold", coordinates=coordinates(row), records=int(row["n"]))
    assert answer.lower == pytest.approx(float(row["value"]), abs=1e-10)
    assert answer.lower <= float(row["value"])
    assert answer.detail == "threshold 0.987676"


def regressions(
    draws: int, records: int, features: int, seed: int
) -> tuple[RegressionDraws, RegressionDraws]:
    """Fit simulated data; return the statistics of the fit with a training record and with a fresh record."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((draws, records, features))
    noise = rng.standard_normal((draws, records))
    gram = np.einsum("ijk,ijl->ikl", x, x)
    error = np.linalg.solve(gram, np.einsum("ijk,ij->ik", x, noise)[:, :, None])[:, :, 0]

    def seen(features_of: Array, noise_of: Array) -> RegressionDraws:
        off = (features_of * error).sum(axis=1)
        return RegressionDraws((features_of**2).sum(axis=1), off, noise_of - off, (error**2).sum(axis=1))

    fresh = rng.standard_normal((draws, features)), rng.standard_normal(draws)
    return seen(x[:, 0], noise[:, 0]), seen(*fresh)


@pytest.mark.parametrize(
    ("records", "features", "odds"), [(6, 2, 1.0), (3, 1, 1.5), (9, 5, 0.6), (4, 3, 1.0)]
)
def test_real_regressions_have_these_likelihood_ratios(records: int, features: int, odds: float) -> None:
    """The attack by the formula has the advantage of the formula on simulated data."""
    member, fresh = regressions(200_000, records, features, seed=records)
    inside, outside = (np.exp(log_ratio(drawn, records, features)) for drawn in (member, fresh))
    gains = np.maximum(0.0, 1.0 - odds / inside), np.maximum(0.0, outside - odds)
    attack = (inside > odds) - odds * (outside > odds)
    exact = ask("membership.sobol", {"samples": 2**17}, coordinates=features, records=records, odds=odds)
    assert exact.value is not None
    asked = exact.value if odds >= 1.0 else odds * exact.value + 1.0 - odds
    for gain in (gains[0], attack):
        off = abs(float(gain.mean()) - asked)
        assert off < 4.0 * math.hypot(float(gain.std()) / math.sqrt(gain.size), standard_error(exact))


@pytest.mark.thorough
@pytest.mark.parametrize(("records", "features"), [(2, 1), (7, 3), (50, 5), (1000, 1), (300, 100)])
def test_draws_have_the_law_of_real_regressions(records: int, features: int) -> None:
    """A weighted bounded function of the likelihood ratio has the same mean under both distributions."""
    uniforms = np.random.default_rng(3).random((6, 200_000))
    inside, outside = (
        log_ratio(draw(uniforms, records, features, member=member), records, features)
        for member in (True, False)
    )
    one, other = 1.0 / (1.0 + np.exp(inside)), np.exp(outside) / (1.0 + np.exp(outside))
    off = abs(float(one.mean() - other.mean()))
    assert off < 4.0 * math.hypot(float(one.std()), float(other.std())) / math.sqrt(200_000)


def test_bessel_functions_are_those_of_30_digits() -> None:
    for order in (0.5, 1.0, 7.0, 39.5, 40.0, 100.0, 1e5):
        for b in (0.0, 1e-9, 1e-3, 1.0, 30.0, 1e3):
            with mp.workdps(30):
                x = mp.sqrt(mp.mpf(max(b, 1e-40)))
                truth = mp.log(2 * (x / 2) ** order * mp.besselk(order, x) / mp.gamma(order))
            assert _log_bessel(order, np.array([b]))[0] == pytest.approx(float(truth), rel=1e-9, abs=1e-9)


def test_no_more_records_than_features_are_recognised_for_certain() -> None:
    for records, features in ((1, 1), (3, 3), (2, 9)):
        for odds in (1e-3, 1.0, 1e3):
            answer = ask("membership.interpolation", coordinates=features, records=records, odds=odds)
            assert (answer.lower, answer.upper) == (1.0, 1.0)
    x = np.random.default_rng(1).standard_normal((3, 4))
    fitted = np.linalg.lstsq(x[:, :3], x[:, 3])[0]
    assert np.abs(x[:, :3] @ fitted - x[:, 3]).max() < 1e-9
    for method in ("sobol", "sampling", "threshold"):
        answer = ask(f"membership.{method}", coordinates=3, records=3)
        assert answer.detail == (
            "With no more records than features the regression interpolates, and the advantage is 1."
        )


def test_one_record_more_than_features_is_not_recognised_for_certain() -> None:
    """The advantage is not continuous in the number of records: it jumps here."""
    for features, truth in ((1, 0.37876), (5, 0.67270)):
        answer = ask("membership.sampling", {"samples": 10**5}, coordinates=features, records=features + 1)
        assert answer.lower < truth < answer.upper < 0.7


def test_the_attack_by_the_loss_gains_on_real_regressions_what_it_says() -> None:
    records, features, odds = 8, 3, 1.2
    member, fresh = regressions(200_000, records, features, seed=8)
    answer = ask("membership.threshold", coordinates=features, records=records, odds=odds)
    threshold = float(answer.detail.removeprefix("threshold "))
    gain = (member.residual**2 <= threshold) - odds * (fresh.residual**2 <= threshold)
    assert abs(float(gain.mean()) - answer.lower) < 4.0 * float(gain.std()) / math.sqrt(200_000)


@pytest.mark.parametrize(
    ("records", "features", "odds"), [(2, 1, 1.0), (6, 5, 1.0), (10, 5, 1.5), (9, 2, 0.5)]
)
def test_the_attack_by_the_loss_gains_what_thirty_digits_say(
    records: int, features: int, odds: float
) -> None:
    answer = ask("membership.threshold", coordinates=features, records=records, odds=odds)
    rates = LossRates.of(records, features, 4)
    root = best_root(rates, odds)
    with mp.workdps(30):
        a, b = mp.mpf(records - features) / 2, mp.mpf(features) / 2

        def rate(a: mp.mpf, inside: Any) -> mp.mpf:
            # the Beta distribution of the squared sine of an angle
            def weighed(angle: mp.mpf) -> mp.mpf:
                share = mp.sin(angle) ** (2 * a - 1) * mp.cos(angle) ** (2 * b - 1) * 2 / mp.beta(a, b)
                return share * inside(mp.sin(angle))

            return mp.quad(weighed, [0, mp.pi / 8, mp.pi / 4, mp.pi / 2])

        hit = rate(a, lambda sine: mp.erf(root / sine / mp.sqrt(2)) if sine else mp.mpf(1))
        alarm = rate(a + mp.mpf(1) / 2, lambda sine: mp.erf(root * sine / mp.sqrt(2)))
        truth = hit - odds * alarm if odds >= 1.0 else 1 - alarm - (1 - hit) / odds
    assert answer.lower <= truth
    assert answer.lower == pytest.approx(float(truth), rel=1e-8)


def test_no_threshold_is_better_than_the_best() -> None:
    for records, features, odds in ((10, 5, 1.0), (40, 1, 1.5), (12, 9, 0.5)):
        rates = LossRates.of(records, features, 16)
        best = rates.advantage(best_root(rates, odds), odds)[0]
        assert all(rates.advantage(float(t), odds)[0] <= best + 1e-9 for t in np.geomspace(1e-4, 20.0, 200))


@pytest.mark.thorough
def test_the_attack_by_the_loss_is_below_the_best_attack() -> None:
    for records, features, odds in ((2, 1, 1.0), (100, 20, 1.0), (30, 10, 2.0), (30, 10, 0.5)):
        fields: dict[str, Any] = {"coordinates": features, "records": records, "odds": odds}
        best = ask("membership.sampling", {"samples": 100_000}, **fields)
        assert ask("membership.threshold", **fields).lower < best.upper


@pytest.mark.soak
def test_intervals_of_draws_contain_the_truth_as_often_as_they_say() -> None:
    truth = 0.11077329631273883
    fields = {"coordinates": 5, "records": 50}
    asked = problem("membership-regression-advantage", **fields)
    method = find("membership.sampling").from_knobs({"samples": 2000, "confidence": 0.9})
    answers = [method.answer(asked, seed) for seed in range(400)]
    assert sum(answer.lower <= truth <= answer.upper for answer in answers) >= 360 - 3 * 6


def test_large_numbers_of_records_keep_their_digits() -> None:
    for features in (1, 30):
        exact = ask("membership.sobol", coordinates=features, records=10**12)
        limit = ask("membership.influence", coordinates=features, records=10**12)
        assert exact.value == pytest.approx(limit.value, rel=5e-3)


def test_what_no_point_shows_is_no_estimate() -> None:
    answer = ask("membership.sobol", coordinates=10, records=271, odds=1e-6)
    assert answer.status is Status.FAILED
    assert answer.detail == "Too few points distinguish a member from a fresh record; increase `samples`."


def test_an_interval_much_wider_than_a_normal_one_says_so() -> None:
    details = [
        find("membership.sampling")
        .from_knobs({"samples": 100_000})
        .answer(problem("membership-regression-advantage", records=records, coordinates=1), 1)
        .detail
        for records in (100, 10**8)
    ]
    assert details[0] == "100000 draws"
    assert re.fullmatch(r"100000 draws, [67]\d normal widths", details[1])
