"""The mean of Gaussian records: oracle values, 30 digits, simulated attacks, and relations."""

import csv
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from privcore import Answer, Point, Problem, evaluate, find
from privcore.membership.gaussian_mean.gamma_ratio import log_half_ratio, mean_norm, stirling
from privcore.membership.gaussian_mean.leading import MembershipProposition, leading
from privcore.membership.gaussian_mean.problems import MembershipMeanAdvantage
from privcore.membership.gaussian_mean.quadrature import mean_advantage
from tests.privcore.draws import problem

ORACLE = Path(__file__).parents[2] / "data" / "membership.csv"
EXACT = 1e-10
Row = dict[str, str]


def rows(distribution: str, quantity: str) -> list[Row]:
    with ORACLE.open(newline="") as file:
        return [
            row
            for row in csv.DictReader(file)
            if row["distribution"].startswith(distribution) and row["quantity"].startswith(quantity)
        ]


def number(text: str, name: str, default: float) -> float:
    found = re.search(rf"\b{name}=([0-9.]+)", text)
    return float(found[1]) if found else default


def ask(method: str = "membership.quadrature", **fields: Any) -> Answer:
    return evaluate(Point(problem=problem("membership-mean-advantage", **fields), method=find(method)()))


def asked(row: Row) -> dict[str, Any]:
    return {
        "coordinates": int(number(row["distribution"], "d", 1)),
        "release_noise": number(row["distribution"], "tau", 0.0),
        "records": int(row["n"]),
        "odds": number(row["quantity"], "gamma", 1.0),
    }


def test_the_oracle_agrees() -> None:
    found = rows("gaussian mean", "Delta")
    assert len(found) >= 16
    for row in found:
        answer, value = ask(**asked(row)), float(row["value"])
        if row["std_error"]:
            assert abs(answer.lower - value) < 4.0 * float(row["std_error"]), row
        else:
            assert answer.lower == pytest.approx(value, rel=EXACT), row
            assert answer.upper == pytest.approx(value, rel=EXACT), row
        assert answer.upper - answer.lower < 1e-11 * answer.upper


def test_the_limit_of_many_records_agrees() -> None:
    found = rows("gaussian mean", "lim sqrt(n) Delta")
    assert len(found) == 4
    for row in found:
        coordinates = int(number(row["distribution"], "d", 1))
        assert leading(coordinates, 1.0) == pytest.approx(float(row["value"]), rel=1e-12)
        many = ask(coordinates=coordinates, records=10**12)
        assert 1e6 * many.lower == pytest.approx(float(row["value"]), rel=1e-5)


def by_bessel_functions(coordinates: int, surplus: float, odds: float) -> mp.mpf:
    """The log-likelihood ratio is linear in a difference of chi-squared numbers, whose density is known."""
    with mp.workdps(30):
        d, q, gamma = mp.mpf(coordinates), mp.mpf(surplus), mp.mpf(odds)
        rho = 1 / mp.sqrt(1 + q)
        cut = (2 * mp.log(gamma) + d * mp.log(1 - rho**2)) / rho
        order = (d - 1) / 2
        constant = 1 / (mp.power(2, d) * mp.sqrt(mp.pi) * mp.gamma(d / 2))

        def density(x: mp.mpf) -> mp.mpf:
            return constant * abs(x) ** order * mp.besselk(order, abs(x) / 2)

        def gain(x: mp.mpf) -> mp.mpf:
            if odds >= 1:
                return -mp.expm1(-rho * (x - cut) / 2) * density(x)
            return mp.expm1(rho * (cut - x) / 2) / gamma * density(x)

        edges = [cut, *(cut + (1 if odds >= 1 else -1) * s for s in (1, 5, 20, 60, 200, 600))]
        edges = sorted({*edges, mp.mpf(0)} if min(edges) < 0 < max(edges) else set(edges))
        return mp.quad(gain, edges)


EVEN = [  # Bessel functions of half-integer order are elementary
    (6, 1.0, 1.0),
    (4, 999.0, 1.0),
    (2, 1599.0, 2.0),
    (8, 30.0, 0.5),
    (12, 4.0, 1e-3),
    (4, 0.01, 3.0),
    (40, 500.0, 1.0),
    (4, 20.0, 1e4),
]
ODD = [(1, 1.0, 1.0), (3, 1599.0, 2.0), (7, 30.0, 0.5), (5, 0.01, 3.0)]


@pytest.mark.parametrize(
    ("coordinates", "surplus", "odds"),
    [*EVEN, *(pytest.param(*case, marks=pytest.mark.soak) for case in ODD)],
)
def test_thirty_digits_lie_between_the_ends(coordinates: int, surplus: float, odds: float) -> None:
    lower, upper = mean_advantage(coordinates, surplus, odds, below=odds < 1.0)
    truth = by_bessel_functions(coordinates, surplus, odds)
    assert lower <= truth <= upper
    assert upper - lower < 2e-12 * upper


@pytest.mark.parametrize("coordinates", [1, 2, 9, 1000, 10**6])
@pytest.mark.parametrize("surplus", [0.5, 9.0, 1e6])
@pytest.mark.parametrize("odds", [1.0, 1.001, 0.98])
def test_members_and_fresh_records_give_the_same_integral(
    coordinates: int, surplus: float, odds: float
) -> None:
    one = mean_advantage(coordinates, surplus, odds, below=False)
    other = mean_advantage(coordinates, surplus, odds, below=True)
    assert max(one[0], other[0]) <= min(one[1], other[1])
    assert one[1] - one[0] < 1e-9


def test_a_simulated_attack_by_the_likelihood_ratio_gains_as_much() -> None:
    coordinates, records, noise, odds = 2, 3, 0.2, 1.4
    rng = np.random.default_rng(1)
    draws = 400_000
    data = rng.standard_normal((draws, records, coordinates))
    release = data.mean(axis=1) + noise * rng.standard_normal((draws, coordinates))
    fresh = rng.standard_normal((draws, coordinates))
    variance = 1 / records + noise**2

    def log_ratio(z: NDArray[np.float64]) -> NDArray[np.float64]:
        rest = variance - 1 / records**2
        given = -0.5 * ((release - z / records) ** 2 / rest).sum(axis=1) - coordinates / 2 * math.log(rest)
        marginal = 0.5 * (release**2 / variance).sum(axis=1) + coordinates / 2 * math.log(variance)
        return np.asarray(given + marginal)

    gain = (log_ratio(data[:, 0]) > math.log(odds)) * 1.0 - odds * (log_ratio(fresh) > math.log(odds))
    answer = ask(coordinates=coordinates, records=records, release_noise=noise, odds=odds)
    assert abs(gain.mean() - answer.lower) < 4.0 * gain.std() / math.sqrt(draws)


def test_two_coordinates_have_a_closed_form() -> None:
    for records in (1, 2, 17, 10**6):
        for odds in (1e-3, 0.7, 1.0, 1.2, 100.0):
            fields: dict[str, Any] = {
                "coordinates": 2,
                "records": records,
                "release_noise": 0.1,
                "odds": odds,
            }
            exact, integral = ask("membership.plane", **fields), ask(**fields)
            assert exact.lower <= integral.upper
            assert integral.lower <= exact.upper
            assert exact.upper - exact.lower < 1e-9 * exact.upper + 1e-290


def test_one_record_without_noise_is_recognised_and_nearly_so_with_little_noise() -> None:
    for odds in (1e-6, 0.5, 1.0, 1e6):
        certain = ask(coordinates=1, records=1, odds=odds)
        assert (certain.lower, certain.upper) == (1.0, 1.0)
        nearly = ask(coordinates=3, records=1, release_noise=1e-9, odds=odds)
        assert nearly.lower > 1.0 - 1e-5
        assert nearly.upper == 1.0


def test_what_is_too_small_to_be_represented_is_at_least_0_and_at_most_a_little() -> None:
    answer = ask(coordinates=1000, records=10**6, odds=1e-3)
    assert answer.lower == 0.0
    assert 0.0 < answer.upper < 1e-290


def test_the_advantage_is_largest_for_equal_odds() -> None:
    """The published bounds do not need their factor max(1, gamma)."""
    for coordinates, records in ((3, 5), (200, 1000)):
        fields: dict[str, Any] = {"coordinates": coordinates, "records": records}
        found = [ask(**fields, odds=odds) for odds in (0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0)]
        for one, other in pairwise(found[:4]):
            assert one.upper < other.lower
        for one, other in pairwise(found[3:]):
            assert one.lower > other.upper


def test_the_advantage_as_a_function_of_the_odds_is_convex_and_decreasing() -> None:
    """The largest TPR - gamma FPR is a supremum of lines."""
    grid = np.linspace(1.0, 3.0, 9)
    values = [ask(coordinates=4, records=6, odds=float(odds)).upper for odds in grid]
    assert (np.diff(values) < 0.0).all()
    assert (np.diff(values, 2) > 0.0).all()


def test_the_bounds_are_above_the_exact_value_and_the_limit_is_near_it() -> None:
    for coordinates, records in ((1, 2), (5, 50), (100, 10**4), (10**6, 10**9)):
        exact = ask(coordinates=coordinates, records=records)
        for method in ("membership.information", "membership.proposition"):
            assert exact.upper <= ask(method, coordinates=coordinates, records=records).upper
        estimate = ask("membership.leading", coordinates=coordinates, records=records).value
        assert estimate == pytest.approx(exact.lower, rel=0.6 / records**0.5 + coordinates / records)


def test_the_published_proposition_fails_for_one_record() -> None:
    """Half of 1 and half of E|z| are less than the distance, which is 1."""
    assert 0.5 + 0.5 * mean_norm(1) < 1.0
    one = MembershipMeanAdvantage(coordinates=1, records=1)
    assert MembershipProposition().applies(one) == "The proposition needs at least two records."


def test_gamma_functions_are_those_of_30_digits() -> None:
    for x in (0.5, 1.0, 7.5, 31.9, 32.0, 100.5, 1e6, 5e11):
        with mp.workdps(40):
            y = mp.mpf(x)
            ratio = mp.loggamma(y + mp.mpf("0.5")) - mp.loggamma(y)
            rest = mp.loggamma(y) - (y - 0.5) * mp.log(y) + y - mp.log(2 * mp.pi) / 2
        assert log_half_ratio(x) == pytest.approx(float(ratio), rel=1e-14, abs=3e-14)
        assert stirling(x) == pytest.approx(float(rest), rel=1e-9, abs=3e-14)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("coordinates", 0, "Expected coordinates in {1, ..., 1000000}, got coordinates=0."),
        ("records", 1.5, "Expected records in {1, ..., 1000000000000}, got records=1.5."),
        ("release_noise", -1.0, "Expected release_noise in [0, 1000000], got release_noise=-1.0."),
        ("odds", 0.0, "Expected odds in [1e-06, 1000000], got odds=0.0."),
    ],
)
def test_a_bad_field_is_refused(field: str, value: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        problem("membership-mean-advantage", **({"coordinates": 1, "records": 2} | {field: value}))


def test_the_typical_questions_are_answered_by_every_method_that_applies() -> None:
    asked: Problem = problem("membership-mean-advantage", coordinates=2, records=10)
    names = ["quadrature", "plane", "information", "proposition", "leading"]
    assert all(find(f"membership.{name}")().applies(asked) is None for name in names)
