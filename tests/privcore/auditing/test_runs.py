"""Audits by many runs: exact error rates, the epsilon they refute, and the share of wrong refutations."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtri

from privcore import Answer, DomainError, Point, evaluate, find, find_problem
from privcore.numerics.clopper_pearson import rate_at_least, rate_at_most
from privcore.numerics.gaussian import gaussian_epsilon_bounds

DELTA = 1e-5
FOUR_ERRORS = 4.0
"""Standard errors by which a simulation may differ."""
ROUNDED = 5e-9
"""Relative change of a rate that rounding to the safe side may cause."""


@cache
def asked(
    method: str,
    runs_with: int,
    true_positives: int,
    runs_without: int,
    false_positives: int,
    delta: float = DELTA,
    confidence: float = 0.95,
) -> Answer:
    problem = find_problem("audit-runs-epsilon").from_fields(
        {
            "runs_with": runs_with,
            "true_positives": true_positives,
            "runs_without": runs_without,
            "false_positives": false_positives,
            "delta": delta,
            "audit_confidence": confidence,
        }
    )
    found = evaluate(Point(problem=problem, method=find(method)()))
    assert found.ok, found
    return found


def law(trials: int, p: float) -> list[float]:
    return [math.comb(trials, x) * p**x * (1.0 - p) ** (trials - x) for x in range(trials + 1)]


# --------------------------------------------------------------------------------------- the rates


@pytest.mark.parametrize("error", [0.3, 0.025, 1e-6])
@pytest.mark.parametrize(("trials", "successes"), [(1, 0), (1, 1), (7, 2), (100, 0), (100, 99), (5000, 4321)])
def test_rates_are_those_of_an_independent_computation_rounded_outward(
    trials: int, successes: int, error: float
) -> None:
    from scipy.stats import binomtest

    # Two one-sided tests of `error` are a two-sided interval of twice the error.
    exact = binomtest(successes, trials).proportion_ci(1.0 - 2.0 * error, method="exact")
    low, high = rate_at_least(trials, successes, error), rate_at_most(trials, successes, error)
    assert low <= exact.low + 1e-15
    assert high >= exact.high - 1e-15
    assert low == pytest.approx(exact.low, rel=ROUNDED)
    assert high == pytest.approx(exact.high, rel=ROUNDED)


@pytest.mark.parametrize(("trials", "successes"), [(12, 5), (40, 1), (40, 39)])
def test_the_tail_at_a_rate_is_just_below_the_error(trials: int, successes: int) -> None:
    low, high = rate_at_least(trials, successes, 0.05), rate_at_most(trials, successes, 0.05)
    for rate, chosen in ((low, slice(successes, None)), (high, slice(0, successes + 1))):
        tail = math.fsum(law(trials, rate)[chosen])
        assert 0.05 * (1.0 - 1e-6) <= tail <= 0.05


def test_a_rate_of_a_thousand_million_runs_keeps_its_digits() -> None:
    n = 10**9
    assert rate_at_most(n, 0, 0.05) == pytest.approx(-math.expm1(math.log(0.05) / n), rel=ROUNDED)
    assert rate_at_least(n, n // 2, 0.05) == pytest.approx(0.5 + ndtri(0.05) * 0.5 / math.sqrt(n), abs=1e-8)


def test_neither_no_success_nor_success_alone_bounds_both_sides() -> None:
    assert rate_at_least(10, 0, 0.05) == 0.0
    assert rate_at_most(10, 10, 0.05) == 1.0
    assert (rate_at_least(0, 0, 0.05), rate_at_most(0, 0, 0.05)) == (0.0, 1.0)
    assert rate_at_most(10, 0, 0.05) == pytest.approx(1.0 - 0.05**0.1)


# ------------------------------------------------------------------------------------- the epsilon


def test_each_form_refutes_nearly_what_a_normal_approximation_gives_at_half_of_the_error() -> None:
    forms = []
    for found, wrong in ((300, 20), (480, 200)):
        expected = []
        for many, few in ((found, wrong), (500 - wrong, 500 - found)):
            error = math.sqrt(1.0 / many - 1.0 / 500 + 1.0 / few - 1.0 / 500)
            expected.append(math.log(many / few) + float(ndtri(0.005)) * error)
        forms.append(expected[0] > expected[1])
        epsilon = asked("auditing.runs", 500, found, 500, wrong, confidence=0.99)
        assert epsilon.lower == pytest.approx(max(expected), rel=0.06)
        assert ("positive" in epsilon.detail) == forms[-1]
    assert forms == [True, False], "each form is the larger one in one of the cases"


def test_to_turn_all_guesses_around_exchanges_the_forms() -> None:
    one = asked("auditing.runs", 200, 180, 300, 15)
    other = asked("auditing.runs", 300, 285, 200, 20)
    assert one.lower == other.lower
    assert asked("auditing.runs", 200, 20, 300, 285).lower == 0.0, "a wrong attack is not inverted"


def test_a_perfect_attack_refutes_about_what_its_runs_allow() -> None:
    for n in (1, 10, 1000):
        allowed = 1.0 - 0.025 ** (1.0 / n)  # the largest rate of no event, at half of the error
        found = asked("auditing.runs", n, n, n, 0).lower
        assert found <= max(0.0, math.log((1.0 - DELTA) / allowed))
        assert found >= 0.9 * math.log((1.0 - allowed) / allowed)


@pytest.mark.parametrize(
    "counts", [(0, 0, 0, 0), (0, 0, 100, 0), (100, 100, 0, 0), (100, 0, 100, 0), (9, 9, 9, 9)]
)
def test_without_runs_or_without_a_difference_nothing_is_refuted(counts: tuple[int, int, int, int]) -> None:
    for method in ("auditing.runs", "auditing.nasr"):
        found = asked(method, *counts)
        assert (found.lower, found.value or 0.0) == (0.0, 0.0)


def test_a_delta_above_the_rates_explains_everything() -> None:
    assert asked("auditing.runs", 1000, 100, 1000, 0, delta=0.9).lower == 0.0
    assert asked("auditing.runs", 1000, 1000, 1000, 0, delta=0.999).lower == 0.0
    assert asked("auditing.runs", 1000, 100, 1000, 0, delta=0.05).lower > 0.0


def test_more_runs_more_confidence_and_more_delta_move_epsilon_as_they_should() -> None:
    usual = asked("auditing.runs", 500, 450, 500, 25).lower
    assert asked("auditing.runs", 5000, 4500, 5000, 250).lower > usual
    assert asked("auditing.runs", 500, 450, 500, 25, confidence=0.99).lower < usual
    assert asked("auditing.runs", 500, 450, 500, 25, delta=1e-2).lower < usual
    assert usual < math.log(0.9 / 0.05)


def test_the_gaussian_family_says_the_refuted_mu_and_its_epsilon() -> None:
    found = asked("auditing.nasr", 1000, 900, 1000, 50)
    mu = float(found.detail.removeprefix("model-based: mu = ").partition(" ")[0])
    assert found.value == pytest.approx(gaussian_epsilon_bounds(1.0 / mu, DELTA)[0], rel=1e-5)
    assert found.detail == f"model-based: mu = {mu:.6g} of Gaussian noise, confidence 0.95"
    assert (found.lower, found.upper) == (0.0, math.inf), "an estimate, which belongs to no bracket"
    assert found.value is not None
    assert found.value > asked("auditing.runs", 1000, 900, 1000, 50).lower


def test_the_gaussian_family_needs_1_64_standard_errors_of_both_quantiles() -> None:
    """Separate bounds of both rates need 1.95 of each, and refute 2.685."""
    found = asked("auditing.nasr", 1000, 900, 1000, 50)
    errors = [
        math.sqrt(rate * (1.0 - rate) / 1000 * 2.0 * math.pi) * math.exp(0.5 * float(ndtri(rate)) ** 2)
        for rate in (0.9, 0.05)
    ]
    expected = float(ndtri(0.9) - ndtri(0.05)) - 1.645 * math.hypot(*errors)
    mu = float(found.detail.removeprefix("model-based: mu = ").partition(" ")[0])
    assert 2.685 < mu < expected
    assert mu == pytest.approx(expected, abs=0.5 * math.hypot(*errors))


# ------------------------------------------------------------------------------------- the validity


@pytest.mark.parametrize("n", [5, pytest.param(20, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_the_exact_error_on_randomized_response_is_at_most_the_nominal_one(n: int, epsilon: float) -> None:
    right = 1.0 / (1.0 + math.exp(-epsilon))
    truth = math.log((right - DELTA) / (1.0 - right))
    inside, outside = law(n, right), law(n, 1.0 - right)
    for confidence in (0.5, 0.95):
        errors = math.fsum(
            inside[x] * outside[y]
            for x in range(n + 1)
            for y in range(n + 1)
            if asked("auditing.runs", n, x, n, y, confidence=confidence).lower > truth
        )
        assert errors <= 1.0 - confidence
        assert errors > 0.0 or confidence > 0.9 or n == 5, "an error is possible"


@pytest.mark.thorough
def test_runs_of_gaussian_noise_refute_its_epsilon_no_more_often_than_allowed() -> None:
    rng = np.random.default_rng(17)
    repetitions, n, mu, threshold = 400, 300, 1.0, 1.5
    truth = gaussian_epsilon_bounds(1.0 / mu, 0.01)[0]
    found = (rng.standard_normal((repetitions, n)) + mu > threshold).sum(axis=1)
    wrong = (rng.standard_normal((repetitions, n)) > threshold).sum(axis=1)
    pairs = list(zip(found.tolist(), wrong.tolist(), strict=True))
    certain = [asked("auditing.runs", n, x, n, y, delta=0.01).lower for x, y in pairs]
    modelled = [asked("auditing.nasr", n, x, n, y, delta=0.01).value for x, y in pairs]
    allowed = 0.05 + FOUR_ERRORS * math.sqrt(0.05 * 0.95 / repetitions)
    assert np.mean([x > truth for x in certain]) <= allowed
    assert np.mean([x is not None and x > truth for x in modelled]) <= allowed
    assert np.mean(certain) > 0.2
    assert np.mean([x or 0.0 for x in modelled]) > 0.5 * truth, "the model finds most of the truth"


def test_both_rates_hold_at_once_with_the_confidence_and_hardly_more() -> None:
    """If the error of each rate is attained, the error of both together is exactly 1 - 0.95."""
    error = 1.0 - math.sqrt(0.95)
    n = 4000
    inside, outside = 0.7, 0.2
    rng = np.random.default_rng(3)
    found, wrong = rng.binomial(n, inside, 4000).tolist(), rng.binomial(n, outside, 4000).tolist()

    @cache
    def least(x: int) -> float:
        return rate_at_least(n, x, error)

    @cache
    def most(y: int) -> float:
        return rate_at_most(n, y, error)

    failed = np.mean([least(x) > inside or most(y) < outside for x, y in zip(found, wrong, strict=True)])
    assert failed == pytest.approx(0.05, abs=FOUR_ERRORS * math.sqrt(0.05 * 0.95 / 4000))


# ------------------------------------------------------------------------------------- the question


def test_more_positive_runs_than_runs_are_refused() -> None:
    kind = find_problem("audit-runs-epsilon")
    counts = {
        "runs_with": 10,
        "true_positives": 10,
        "runs_without": 10,
        "false_positives": 10,
        "delta": DELTA,
    }
    kind.from_fields(counts)
    with pytest.raises(
        DomainError, match=r"^Expected true_positives <= runs_with, got true_positives=11, runs"
    ):
        kind.from_fields(counts | {"true_positives": 11})
    with pytest.raises(
        DomainError, match=r"^Expected false_positives <= runs_without, got false_positives=11"
    ):
        kind.from_fields(counts | {"false_positives": 11})
