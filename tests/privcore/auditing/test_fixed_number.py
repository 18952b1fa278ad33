"""Fixed numbers of guesses: mean counts against integrals over densities, and against simulated audits."""

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from privcore import Answer
from privcore.auditing.optimal import mean_correct
from tests.privcore.draws import answered

CASES = [
    {"canaries": m, "guesses": guesses, "sigma": sigma, "sampling_probability": rate, "steps": steps}
    for (m, guesses), (sigma, rate, steps) in product(
        ((1, 1), (2, 1), (2, 2), (3, 3), (5, 2), (6, 6), (10, 3), (10, 8), (12, 4), (12, 12)),
        ((0.4, 0.5, 3), (2.0, 0.3, 20), (1.0, 1.0, 1)),
    )
]
"""Thirty small cases."""
LIMIT = 5.0
"""Standard errors by which a simulation may differ."""


def fixed(case: dict[str, Any]) -> Answer:
    return answered("audit-dpsgd-correct", "auditing.summed", **case, guess_number="fixed")


def by_density(canaries: int, guesses: int, sigma: float, sampling_probability: float, steps: int) -> float:
    """The mean number by an integral over the score of one canary: fewer than h others are more extreme."""
    times = np.arange(steps + 1)
    weights, spread = binom.pmf(times, steps, sampling_probability), sigma * math.sqrt(steps)
    total = 0.0
    for chosen, inside in ((guesses - guesses // 2, True), (guesses // 2, False)):

        def integrand(x: float, chosen: int = chosen, inside: bool = inside) -> float:
            densities = {True: weights @ norm.pdf(x, times, spread), False: norm.pdf(x, 0.0, spread)}
            tail = norm.sf if inside else norm.cdf
            beyond = 0.5 * (weights @ tail(x, times, spread) + tail(x, 0.0, spread))
            return float(0.5 * densities[inside] * binom.cdf(chosen - 1, canaries - 1, min(1.0, beyond)))

        ends = np.linspace(-9.0 * spread, steps + 9.0 * spread, 40)
        total += sum(quad(integrand, a, b, epsabs=1e-11, epsrel=1e-11)[0] for a, b in pairwise(ends.tolist()))
    return canaries * total


def simulated(case: dict[str, Any], draws: int) -> tuple[float, float]:
    """The mean number of correct guesses of simulated audits, with its standard error."""
    m, high, low = case["canaries"], case["guesses"] - case["guesses"] // 2, case["guesses"] // 2
    rng = np.random.default_rng(case["guesses"] + 100 * m + case["steps"])
    runs = draws // m
    inside = rng.random((runs, m)) < 0.5
    scores = case["sigma"] * math.sqrt(case["steps"]) * rng.standard_normal((runs, m))
    scores += inside * rng.binomial(case["steps"], case["sampling_probability"], (runs, m))
    ranked = np.take_along_axis(inside, np.argsort(scores, axis=1), axis=1)
    counts = ranked[:, m - high :].sum(axis=1) + (~ranked[:, :low]).sum(axis=1)
    return float(counts.mean()), float(counts.std()) / math.sqrt(runs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_the_mean_of_a_fixed_number_of_guesses_is_enclosed(case: dict[str, Any]) -> None:
    found, truth = fixed(case), by_density(**case)
    assert found.lower <= truth * (1.0 + 1e-9)
    assert truth * (1.0 - 1e-9) <= found.upper <= found.lower * (1.0 + 2e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_simulated_audits_with_a_fixed_number_of_guesses_have_this_mean(case: dict[str, Any]) -> None:
    """Ten million draws; a random number of guesses has another mean, in most cases beyond the error."""
    mean, error = simulated(case, 10**7)
    found = fixed(case)
    assert found.lower - LIMIT * error <= mean <= found.upper + LIMIT * error


def test_the_numbers_of_guesses_of_the_reproduction_are_two_questions() -> None:
    """Simulations gave 14.630 +- 0.010 for exactly 20 guesses."""
    case = {"canaries": 60, "guesses": 20, "sigma": 2.0, "sampling_probability": 0.3, "steps": 20}
    random = answered("audit-dpsgd-correct", "auditing.summed", **case)
    assert random.lower == pytest.approx(14.7091, abs=1e-3)
    assert fixed(case).lower == pytest.approx(14.6241, abs=1e-4)


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0, 4.0])
@pytest.mark.parametrize(("canaries", "guesses"), [(2, 1), (7, 6), (40, 12), (60, 60), (100, 24)])
def test_exactly_as_many_guesses_are_right_as_about_the_clearest_gaussian_canaries(
    canaries: int, guesses: int, mu: float
) -> None:
    fields = {"canaries": canaries, "guesses": guesses, "mu": mu}
    found = answered("audit-expected-correct", "auditing.expected", **fields, guess_number="fixed")
    assert found.value == pytest.approx(mean_correct(canaries, guesses, mu), rel=3e-5)
    assert found.lower <= mean_correct(canaries, guesses, mu) * (1.0 + 1e-9)
    cap = answered("audit-expected-correct", "auditing.expected", **fields)
    assert found.lower <= cap.lower * (1.0 + 1e-9)
    assert found.upper == cap.upper


def test_without_a_leak_half_of_any_number_of_guesses_is_right() -> None:
    for guesses in (0, 1, 5, 9):
        case = {"canaries": 9, "guesses": guesses, "sigma": 1e6, "sampling_probability": 0.1, "steps": 2}
        assert fixed(case).value == pytest.approx(0.5 * guesses, abs=1e-4)
