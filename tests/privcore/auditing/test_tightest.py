"""The best audits: they refute more, and never more than a private mechanism attains."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

from privcore import Point, evaluate, find
from privcore.auditing.counts import refuted_mu
from privcore.auditing.planned import best_guesses, with_mean_counts
from privcore.auditing.power import least_refuting
from privcore.auditing.problems import AuditBestGuesses, AuditEpsilon, AuditGaussianTail, AuditPower
from privcore.auditing.tightest import refuted_by, tightest_mu
from privcore.registry import answering
from tests.privcore.draws import answer

TIGHTER = 1.02
"""Least ratio of the mu that the programme refutes to that of Algorithm 3 at these counts."""


def test_the_exact_probability_refutes_what_two_bounds_do_not() -> None:
    counts = {"canaries": 1000, "guesses": 100, "correct": 90, "delta": 1e-4}
    best = answer("audit-epsilon", "auditing.tightest", **counts).lower
    assert best > 1.62 > answer("audit-epsilon", "auditing.combined", **counts).lower
    tails = [
        answer("audit-tail", method, claimed_epsilon=best, **counts).upper
        for method in ("auditing.exact", "auditing.recursion", "auditing.revealed")
    ]
    assert tails[0] <= 0.05 < min(tails[1:])


@pytest.mark.parametrize("method", ["approximate", "combined", "steinke", "tightest"])
@pytest.mark.parametrize(
    ("canaries", "guesses", "alternatives", "delta", "confidence"),
    [
        (500_000, 100, 2, 1e-5, 0.95),
        (1_000_000, 200, 2, 1e-5, 0.95),
        (5000, 100, 2, 1e-3, 0.95),
        (1000, 100, 2, 1e-3, 0.99),
        (400, 400, 2, 1e-3, 0.999),
        (26, 20, 10, 0.38461538423076924, 0.5),
    ],
)
def test_p_values_that_approach_the_level_without_reaching_it_refute_nothing(
    method: str, canaries: int, guesses: int, alternatives: int, delta: float, confidence: float
) -> None:
    """Canaries times delta are the error times the guesses, all correct: the p-value exceeds the error."""
    found = answer(
        "audit-epsilon",
        f"auditing.{method}",
        canaries=canaries,
        guesses=guesses,
        correct=guesses,
        alternatives=alternatives,
        delta=delta,
        audit_confidence=confidence,
    )
    if not found.ok:  # the bound of Steinke et al. is for two alternatives
        assert (method, alternatives) == ("steinke", 10)
        return
    with mpmath.workdps(60):
        by_chance = (1 + (alternatives - 1) * mpmath.exp(-found.lower)) ** -guesses
        p = by_chance + canaries * mpmath.mpf(delta) / guesses * (1 - by_chance)
        assert p <= 1 - mpmath.mpf(confidence)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("canaries", "guesses", "correct"),
    [(1000, 100, 90), (100, 100, 70), (50, 50, 35), (100, 20, 18), (40, 10, 10), (30, 30, 12), (9, 4, 4)],
)
def test_a_refuted_epsilon_or_mu_is_below_the_ceiling_of_all_audits(
    canaries: int, guesses: int, correct: int
) -> None:
    counts = {"canaries": canaries, "guesses": guesses, "correct": correct, "delta": 1e-4}
    for family, method, end in (
        ("approximate", "auditing.tightest", "lower"),
        ("gaussian", "auditing.tightestmu", "value"),
    ):
        limits = answer("audit-ceiling", "auditing.ceiling", family=family, **counts)
        found = getattr(answer("audit-epsilon", method, **counts), end)
        assert limits.lower * (1.0 - 1e-12) <= found <= limits.upper, (family, limits, found)


@pytest.mark.thorough
def test_a_refuted_mu_has_a_proved_bound_below_the_level() -> None:
    for canaries, guesses, correct in ((1000, 100, 90), (50, 50, 35)):
        counts: dict[str, Any] = {"canaries": canaries, "guesses": guesses, "correct": correct}
        mu = tightest_mu(AuditEpsilon(**counts, delta=1e-5))
        p_value = answer(
            "audit-gaussian-tail", "auditing.programme", {"profile_points": 200}, mu=mu, **counts
        )
        assert 0.0499 < p_value.upper <= 0.05001
        old = answer("audit-epsilon", "auditing.gaussian", **counts, delta=1e-5).detail
        assert mu > TIGHTER * float(old.partition("mu = ")[2].partition(" ")[0])


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "confidence"),
    [
        (2000, 2000, 1039, 0.95),
        (10_000, 1000, 528, 0.95),
        (1000, 1000, 524, 0.9),
        (35_293, 976, 522, 0.9),
        (4470, 3096, 2059, 0.9),
        (1046, 9, 7, 0.9),
        (200_000, 20, 12, 0.5),
        (600, 6, 5, 0.5),
        (500_000, 50, 32, 0.95),
        (200, 50, 35, 0.99),
    ],
)
def test_no_bound_of_the_p_value_refutes_a_mu_that_the_audit_does_not(
    canaries: int, guesses: int, correct: int, confidence: float
) -> None:
    counts = {"canaries": canaries, "guesses": guesses, "correct": correct}
    mu = answer("audit-mu", "auditing.mu", audit_confidence=confidence, **counts).lower
    assert least_p_value(mu * 1.003, **counts) > 1.0 - confidence
    # A private mechanism attains the counts with at most this probability, so the mu is refuted rightly.
    attained = answer("audit-gaussian-tail", "auditing.attaining", mu=mu, **counts).lower
    assert 0.3 * (1.0 - confidence) < attained <= 1.0 - confidence


def least_p_value(mu: float, **counts: int) -> float:
    """The least bound of all methods that bound the p-value of mu-GDP."""
    found = [
        answer("audit-gaussian-tail", kind.name, mu=mu, **counts) for kind in answering(AuditGaussianTail)
    ]
    return min(each.upper for each in found if each.ok)


@pytest.mark.parametrize(
    ("plan", "correct"),
    [
        ({"canaries": 500_000, "guesses": 50, "claimed_epsilon": 0.036}, 32),
        ({"canaries": 600, "guesses": 6, "claimed_epsilon": 1.288, "audit_confidence": 0.5}, 5),
        ({"canaries": 4470, "guesses": 3096, "claimed_epsilon": 1.2, "audit_confidence": 0.9}, 2059),
    ],
)
def test_the_power_is_that_of_the_audit_for_the_gaussian_family(plan: dict[str, Any], correct: int) -> None:
    power = AuditPower(**plan, mu=1.0, delta=1e-5, family="gaussian", refutation="programmed")
    least = least_refuting(power)
    assert least is not None
    for count in {least - 1, least, correct - 1, correct}:
        refuted = answer(
            "audit-epsilon",
            "auditing.tightestmu",
            canaries=power.canaries,
            guesses=power.guesses,
            correct=count,
            delta=power.delta,
            audit_confidence=power.audit_confidence,
        )
        assert ((refuted.value or 0.0) >= power.claimed_epsilon) == (count >= least)


def test_the_curve_of_a_gaussian_has_exact_probabilities() -> None:
    """The minimum over a fine grid of epsilons, by sums of binomial probabilities."""
    m, n, c, mu = 1000, 600, 340, 0.2
    found = answer("audit-gaussian-tail", "auditing.curve", canaries=m, guesses=n, correct=c, mu=mu)
    epsilons = np.linspace(0.0, 1.0, 2001)
    deltas = norm.cdf(mu / 2 - epsilons / mu) - np.exp(epsilons) * norm.cdf(-mu / 2 - epsilons / mu)
    right = 1.0 / (1.0 + np.exp(-epsilons))
    above, here = binom.sf(c - 1, n, right), binom.pmf(c, n, right)
    p = above * (1.0 + m * deltas / c * (1.0 - above) / here)
    assert np.isclose(found.upper, p.min(), rtol=1e-4)
    assert found.upper >= p.min() * (1.0 - 1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("counts", "least", "most"),
    [((100, 100, 62), 1.15, 1.16), ((30, 30, 29), 1.01, 1.03), ((10, 10, 10), 1.0, 1.001)],
)
def test_the_programme_gains_as_much_mu_as_the_page_on_audits_says(
    counts: tuple[int, int, int], least: float, most: float
) -> None:
    problem = AuditEpsilon(canaries=counts[0], guesses=counts[1], correct=counts[2], delta=1e-5)
    assert least <= tightest_mu(problem) / refuted_mu(problem) <= most


def test_the_programme_of_pure_privacy_is_the_binomial_tail() -> None:
    for epsilon in (0.0, 0.7, 2.0):
        found = answer(
            "audit-tail",
            "auditing.programme",
            canaries=50,
            guesses=30,
            correct=24,
            claimed_epsilon=epsilon,
            delta=1e-300,
        )
        truth = float(binom.sf(23, 30, 1.0 / (1.0 + math.exp(-epsilon))))
        assert truth <= found.upper <= truth * (1.0 + 1e-6) + 1e-9


@pytest.mark.thorough
def test_a_private_mechanism_is_refuted_at_most_as_often_as_the_confidence_allows() -> None:
    """Randomized responses for every canary: the most correct guesses that epsilon allows."""
    epsilon, m = 1.0, 40
    right = 1.0 / (1.0 + math.exp(-epsilon))
    least = next(
        c
        for c in range(m + 1)
        if answer("audit-epsilon", "auditing.tightest", canaries=m, guesses=m, correct=c, delta=1e-9).lower
        > epsilon
    )
    assert binom.sf(least - 1, m, right) <= 0.05 < binom.sf(least - 3, m, right)


def every(problem: AuditBestGuesses) -> range:
    """All numbers of guesses that the rule of guessing allows."""
    step = 2 if problem.guessing == "halves" else 1
    return range(step, problem.canaries + 1, step)


@pytest.mark.parametrize(
    ("canaries", "mu", "delta", "guessing"),
    [
        (50, 1.0, 1e-5, "clearest"),
        (20, 4.0, 1e-5, "halves"),
        (12, 6.0, 0.0, "halves"),
        (100, 4.0, 1e-5, "clearest"),
        (24, 0.8, 0.0, "clearest"),
        pytest.param(1000, 6.0, 1e-5, "halves", marks=pytest.mark.thorough),
    ],
)
def test_no_number_of_guesses_beats_the_best_one_for_either_rule(
    canaries: int, mu: float, delta: float, guessing: str
) -> None:
    """The best numbers were left out, since an approximate mean chose the numbers to try."""
    problem = AuditBestGuesses(canaries=canaries, mu=mu, delta=delta, guessing=guessing)
    epsilon, guesses = best_guesses(problem, every(problem))
    found = evaluate(Point(problem=problem, method=find("auditing.best")()))
    assert found.value == guesses > 0.0
    assert found.detail.startswith(f"refutes epsilon {epsilon:.6g} ")


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["approximate", "gaussian"])
@pytest.mark.parametrize(("canaries", "mu"), [(100, 1.0), (50, 2.0), (200, 0.5), (500, 1.0), (501, 0.5)])
def test_no_number_of_guesses_beats_the_best_one(canaries: int, mu: float, family: str) -> None:
    problem = AuditBestGuesses(canaries=canaries, mu=mu, delta=1e-5, family=family)
    epsilon, guesses = best_guesses(problem, every(problem))
    found = evaluate(Point(problem=problem, method=find("auditing.best")()))
    assert found.value == guesses
    assert found.detail.startswith(f"refutes epsilon {epsilon:.6g}")


def test_forty_guesses_are_best_about_a_hundred_canaries() -> None:
    problem = AuditBestGuesses(canaries=100, mu=1.0, delta=1e-5, family="gaussian")
    assert evaluate(Point(problem=problem, method=find("auditing.best")())).value == 40.0
    assert np.isclose(best_guesses(problem, [40])[0], 1.635430, atol=1e-6)


def test_the_best_number_of_guesses_is_that_of_the_best_audit_of_the_gaussian_family() -> None:
    """Algorithm 3 refutes most with 14 guesses, and all bounds together with 26."""
    run = {"canaries": 44, "mu": 1.3, "delta": 1e-5, "guessing": "halves"}
    problem = AuditBestGuesses.from_fields(run | {"family": "gaussian"})
    found = evaluate(Point(problem=problem, method=find("auditing.best")()))
    audits = {n: with_mean_counts(problem, n) for n in every(problem)}
    refuted = {n: refuted_by(audit, "gaussian") for n, audit in audits.items()}
    assert found.value == max(refuted, key=refuted.__getitem__) == 26
    assert found.detail.startswith(f"refutes epsilon {refuted[26]:.6g} ")
    assert max(audits, key=lambda n: refuted_mu(audits[n])) == 14


def test_an_audit_without_a_correct_guess_refutes_nothing() -> None:
    found = answer(
        "audit-epsilon",
        "auditing.tightestmu",
        canaries=1000,
        guesses=10,
        correct=0,
        alternatives=31,
        delta=5e-11,
    )
    assert found.ok
    assert found.value == 0.0
