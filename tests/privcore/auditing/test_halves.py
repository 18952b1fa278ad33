"""Power of guesses by half in and half out, and by clearest scores: simulations and independent integrals."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import beta, binom, norm

from privcore import Answer, Point, Status, evaluate, find, find_problem
from privcore.auditing.optimal import (
    few_errors,
    few_errors_of_halves,
    few_errors_of_halves_bounds,
    one_sided_error_rates,
)
from privcore.auditing.power import few_errors_bounds
from privcore.auditing.scores import guess, guess_clearest

FOUR_ERRORS = 4.0
QUADRATURE = 1e-9


def power(**fields: Any) -> Answer:
    problem = find_problem("audit-power").from_fields(fields)
    return evaluate(Point(problem=problem, method=find("auditing.power")()))


def simulated(m: int, guesses: int, mu: float, rule: str, runs: int, seed: int) -> np.ndarray:
    """Return numbers of wrong guesses of the rules that the command plays."""
    rng = np.random.default_rng(seed)
    wrong = []
    for _ in range(runs):
        included = rng.integers(0, 2, m).astype(float)
        scores = rng.standard_normal(m) + mu * included
        made = guess(scores, guesses) if rule == "halves" else guess_clearest(scores, guesses, 0.5 * mu)
        wrong.append(guesses - made.correct(included))
    return np.array(wrong)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("m", "guesses", "mu", "errors"),
    [(50, 20, 0.8, 5), (20, 20, 1.0, 6), (21, 20, 1.0, 6), (22, 20, 1.0, 6), (80, 6, 1.5, 0)],
)
def test_the_rule_of_the_command_has_this_power(m: int, guesses: int, mu: float, errors: int) -> None:
    runs = 2000
    share = float((simulated(m, guesses, mu, "halves", runs, 1) <= errors).mean())
    low, high = few_errors_of_halves_bounds(m, guesses, errors, mu)
    value = few_errors_of_halves(m, guesses, errors, mu)
    assert 0.0 < high - low <= 5e-3
    assert low <= value <= high
    assert abs(share - value) <= FOUR_ERRORS * math.sqrt(share * (1.0 - share) / runs)


@pytest.mark.thorough
def test_clearest_guesses_are_right_more_often_than_halves() -> None:
    for m, guesses, mu, errors in ((50, 20, 0.8, 5), (200, 60, 1.2, 7), (20, 20, 1.0, 6)):
        clearest, halves = few_errors(m, guesses, errors, mu), few_errors_of_halves(m, guesses, errors, mu)
        assert clearest > halves + 0.005
        share = float((simulated(m, guesses, mu, "clearest", 1500, 2) <= errors).mean())
        assert abs(share - clearest) <= FOUR_ERRORS * math.sqrt(clearest * (1.0 - clearest) / 1500)


@pytest.mark.thorough
def test_the_value_of_the_power_is_precise_to_a_billionth() -> None:
    """Adaptive quadrature over the threshold, with the error rate from its definition."""
    for m, guesses, errors, mu in ((1000, 100, 10, 1.0), (50, 20, 5, 0.8), (100, 10, 0, 2.0)):
        law = beta(guesses + 1, m - guesses)

        def integrand(t: float, mu: float, counts: tuple[int, int], law: Any) -> float:
            beyond = norm.sf(t) + norm.sf(t - mu)
            density = law.pdf(beyond) * (norm.pdf(t) + norm.pdf(t - mu))
            return float(density * binom.cdf(*counts, norm.sf(t) / beyond))

        given = (mu, (errors, guesses), law)
        ends = 0.5 * mu, 0.5 * mu + 8.0
        truth = integrate.quad(integrand, *ends, args=given, epsabs=1e-13, epsrel=1e-12, limit=500)[0]
        found = few_errors(m, guesses, errors, mu)
        assert abs(found - truth) <= QUADRATURE, (m, guesses)
        low, high = few_errors_bounds(m, guesses, errors, mu)
        assert low <= truth <= high


def by_trapezoid(m: int, half: int, errors: int, mu: float) -> float:
    """Return the probability from the joint density of both thresholds; the scores between them are two less.

    The sums are over an upper threshold and the logarithm of its distance to the lower one.
    """
    t = np.linspace(-8.5, mu + 8.5, 801)[:, None]
    x = np.linspace(-4.0, 2.4, 641)
    low = t - np.exp(0.5 * math.pi * np.sinh(x))
    share, below = 0.5 * (norm.sf(t) + norm.sf(t - mu)), 0.5 * (norm.cdf(low) + norm.cdf(low - mu))
    between = np.maximum(0.0, np.where(share < 0.5, (1.0 - below) - share, (1.0 - share) - below))
    density = (norm.pdf(t) + norm.pdf(t - mu)) * (norm.pdf(low) + norm.pdf(low - mu))
    weights = density * share**half * below**half * between ** (m - 2 * half - 2) * (t - low) * np.cosh(x)
    high_rates, low_rates = 0.5 * norm.sf(t) / share, 0.5 * norm.cdf(low - mu) / np.maximum(below, 1e-300)
    tails = sum(
        binom.pmf(e, half, high_rates) * binom.cdf(errors - e, half, low_rates) for e in range(errors + 1)
    )
    return float((weights * tails).sum() / weights.sum())


@pytest.mark.parametrize(
    ("m", "guesses", "errors", "mu"),
    [(20, 2, 0, 1.3), (12, 10, 1, 4.0), (30, 26, 2, 2.5), (50, 48, 0, 8.0), (60, 40, 1, 5.0)],
)
def test_the_value_agrees_with_the_density_of_both_thresholds(
    m: int, guesses: int, errors: int, mu: float
) -> None:
    value = few_errors_of_halves(m, guesses, errors, mu)
    assert abs(value - by_trapezoid(m, guesses // 2, errors, mu)) <= QUADRATURE
    low, high = few_errors_of_halves_bounds(m, guesses, errors, mu)
    assert low <= value <= high


@pytest.mark.parametrize(
    ("m", "guesses", "errors", "mu", "truth"),
    [
        (100, 98, 3, 4.0, 0.537036554007),
        (100, 98, 3, 6.0, 0.631738399887),
        (100, 96, 0, 7.0, 0.382571515730),
        (50, 48, 0, 8.0, 0.328187937149),
    ],
)
def test_the_value_is_precise_where_few_scores_are_left_out(
    m: int, guesses: int, errors: int, mu: float, truth: float
) -> None:
    """These values are from a finer sum, with 3,001 upper thresholds and 801 distances."""
    assert abs(few_errors_of_halves(m, guesses, errors, mu) - truth) <= QUADRATURE


@pytest.mark.parametrize("mu", [14.0, 22.0, 30.0])
@pytest.mark.parametrize(
    ("m", "guesses"), [(7, 2), (8, 4), (20, 18), (21, 20), (24, 24), (300, 270), (3000, 4)]
)
def test_a_large_mu_leaves_errors_only_to_unequal_numbers_of_canaries(
    m: int, guesses: int, mu: float
) -> None:
    """Without an error at least half the guesses are in, and as many out; numbers of them are binomial."""
    half = guesses // 2
    truth = binom.cdf(m - half, m, 0.5) - binom.cdf(half - 1, m, 0.5)
    assert abs(few_errors_of_halves(m, guesses, 0, mu) - truth) <= QUADRATURE


def test_one_sided_error_rates_are_those_of_the_definition() -> None:
    for mu in (0.3, 1.0, 3.0):
        for t in (-2.0, 0.1, 0.5 * mu, 2.0, 5.0):
            share = 0.5 * (norm.sf(t) + norm.sf(t - mu))
            rate = float(one_sided_error_rates(mu, np.array([share]))[0])
            assert rate == pytest.approx(0.5 * norm.sf(t) / share, rel=1e-9)


@pytest.mark.thorough
def test_the_power_names_its_rule_and_its_bounds() -> None:
    plan = {"canaries": 50, "guesses": 20, "mu": 1.0, "claimed_epsilon": 0.5, "delta": 1e-5}
    clearest, halves = power(**plan), power(**plan, guessing="halves")
    assert clearest.lower > halves.upper
    assert power(**plan, refutation="programmed").lower >= clearest.lower
    odd = power(**{**plan, "guesses": 21}, guessing="halves")
    assert odd.status is Status.NOT_APPLICABLE
    assert odd.detail == "Guesses of half in and half out are an even number."


@pytest.mark.thorough
def test_the_programme_needs_fewer_correct_guesses() -> None:
    plan = {"canaries": 1000, "guesses": 200, "mu": 0.4, "claimed_epsilon": 0.5, "delta": 1e-5}
    found = [power(**plan, family="gaussian", refutation=word) for word in ("published", "programmed")]
    assert found[1].lower > found[0].upper


def test_clearest_guesses_break_ties_at_the_centre_by_coins() -> None:
    made = guess_clearest(np.zeros(400), 400)
    assert 140 < made.inside.size < 260
    infinite = guess_clearest(np.array([-np.inf, 0.0, 1.0, np.inf, np.inf]), 3)
    assert sorted([*infinite.inside.tolist(), *infinite.outside.tolist()]) == [0, 3, 4]
