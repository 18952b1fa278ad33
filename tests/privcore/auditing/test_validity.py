"""Validity of p-values: they are at least the probabilities attained by mechanisms, exact or simulated."""

import itertools
import math
import random

import numpy as np
import pytest
from scipy.stats import binom

from privcore import find_problem
from privcore.auditing.optimal import few_errors, thresholds
from privcore.auditing.recursion import (
    APPROXIMATE,
    GAUSSIAN,
    NO_LINES,
    inverse,
    largest_refuted,
    smallest_level,
    unlikely,
)
from tests.privcore.draws import answer


def literal(claim: tuple[int, float, float], counts: tuple[float, ...], tau: float) -> bool:
    """Return the result of the algorithm as printed, without an early exit."""
    m, guesses, correct, k = counts
    if correct == 0 or guesses == 0:
        return False
    r, h = tau * correct / m, tau * (guesses - correct) / m
    for i in range(int(correct) - 1, -1, -1):
        following = (k - 1) * inverse(claim, NO_LINES, r)
        if math.isinf(following):
            return True
        r += i / (guesses - i) * (following - h)
        h = following
    return r + h >= guesses / m


def test_near_a_fixed_point_rounding_neither_lowers_a_p_value_nor_goes_on_for_ever() -> None:
    """There r and h grow by one rounding per guess: the recursion as printed, with 64 bits, still refutes."""
    epsilon, m, correct = 0.403, 1_000_000, 600_000
    tau = smallest_level((APPROXIMATE, epsilon, 1e-12), NO_LINES, (float(m), float(m), float(correct), 2.0))
    slope, delta = np.exp(np.longdouble(-epsilon)), np.longdouble(1e-12)
    r, h = np.longdouble(tau) * correct / m, np.longdouble(tau) * (m - correct) / m
    for i in range(correct - 1, -1, -1):
        following = max(slope * (r - delta), 1 - delta - (1 - r) / slope, np.longdouble(0))
        if r + h >= 1 or following <= h:
            break
        r, h = r + np.longdouble(i) / (m - i) * (following - h), following
    assert r + h >= 1
    assert correct - i < 20_000


def test_the_early_exits_decide_as_the_printed_algorithm_does() -> None:
    rng = random.Random(1)
    decided = 0
    for _ in range(3000):
        m = rng.choice((10, 100, 3000))
        guesses = rng.randint(1, m)
        correct = rng.randint(0, guesses)
        counts = float(m), float(guesses), float(correct), float(rng.choice((2, 2, 5)))
        family = rng.choice((GAUSSIAN, APPROXIMATE))
        claim = (
            family,
            rng.choice((0.0, rng.uniform(0, 3))),
            rng.choice((0.0, 1e-3)) * (family == APPROXIMATE),
        )
        tau = rng.choice((0.05, 0.5, 1e-3))
        with np.errstate(over="ignore"):
            assert unlikely(claim, NO_LINES, counts, tau) == literal(claim, counts, tau), (claim, counts, tau)
        decided += literal(claim, counts, tau)
    assert decided > 100


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
def test_p_values_for_pure_privacy_are_above_the_binomial_tail(epsilon: float) -> None:
    """Randomized responses are epsilon-DP, and the number of correct guesses is exactly binomial."""
    for m, guesses in ((10, 10), (100, 60), (1000, 1000)):
        for correct in range(0, guesses + 1, max(1, guesses // 12)):
            truth = float(binom.sf(correct - 1, guesses, 1.0 / (1.0 + math.exp(-epsilon))))
            counts = {"canaries": m, "guesses": guesses, "correct": correct}
            for method in ("auditing.recursion", "auditing.revealed"):
                found = answer("audit-tail", method, claimed_epsilon=epsilon, delta=1e-300, **counts)
                assert found.upper >= truth * (1.0 - 1e-9)


def test_without_errors_and_without_privacy_loss_a_p_value_is_a_power_of_two() -> None:
    for guesses in (1, 5, 30, 200):
        level = smallest_level((GAUSSIAN, 0.0, 0.0), NO_LINES, (200.0, float(guesses), float(guesses), 2.0))
        assert level == pytest.approx(2.0**-guesses, rel=1e-9)
        pure = smallest_level((APPROXIMATE, 1.5, 0.0), NO_LINES, (200.0, float(guesses), float(guesses), 4.0))
        assert pure == pytest.approx((math.exp(1.5) / (math.exp(1.5) + 3.0)) ** guesses, rel=1e-9)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_p_values_for_gaussians_are_above_the_law_of_independent_canaries(mu: float) -> None:
    for m, guesses in ((100, 20), (1000, 100), (1000, 1000)):
        for errors in range(0, guesses // 2, max(1, guesses // 12)):
            truth = few_errors(m, guesses, errors, mu)
            counts = {"canaries": m, "guesses": guesses, "correct": guesses - errors}
            for method in ("auditing.recursion", "auditing.revealed"):
                assert answer("audit-gaussian-tail", method, mu=mu, **counts).upper >= truth * (1.0 - 1e-9)


@pytest.mark.thorough
def test_upper_and_lower_p_values_never_cross() -> None:
    rng = random.Random(4)
    for _ in range(60):
        m = rng.choice((20, 100, 1000, 100_000))
        guesses = rng.randint(1, min(m, 2000))
        correct = rng.randint(0, guesses)
        counts = {"canaries": m, "guesses": guesses, "correct": correct}
        claims: list[tuple[str, dict[str, float]]] = [
            (
                "audit-tail",
                {"claimed_epsilon": rng.uniform(0.0, 4.0), "delta": rng.choice((1e-8, 1e-4, 1e-2))},
            ),
            ("audit-gaussian-tail", {"mu": rng.uniform(0.0, 3.0)}),
        ]
        for name, claim in claims:
            low = answer(name, "auditing.attaining", **counts, **claim).lower
            methods = ["auditing.recursion", "auditing.revealed"] + ["auditing.programme"] * (guesses <= 120)
            for method in methods:
                assert low <= answer(name, method, **counts, **claim).upper, (name, counts, claim, method)


def test_the_programme_is_never_worse_than_the_recursion_it_contains() -> None:
    rng = random.Random(5)
    for _ in range(25):
        guesses = rng.randint(2, 60)
        counts = {"canaries": 100, "guesses": guesses, "correct": rng.randint(guesses // 2, guesses)}
        claim = {"claimed_epsilon": rng.uniform(0.1, 2.0), "delta": rng.choice((1e-6, 1e-3))}
        programme = answer("audit-tail", "auditing.programme", **counts, **claim).upper
        assert programme <= answer("audit-tail", "auditing.recursion", **counts, **claim).upper * (1.0 + 1e-4)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_mechanism_of_two_canaries_beats_the_p_values(epsilon: float) -> None:
    """Random mechanisms with few outputs and known epsilon; the best attacker guesses both bits."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        outputs = 6
        base = rng.dirichlet(np.ones(outputs))
        rows = {}
        for bits in itertools.product((0, 1), repeat=2):
            tilt = np.exp(sum(rng.uniform(-0.25, 0.25, outputs) * epsilon * bit for bit in bits))
            rows[bits] = base * tilt / (base * tilt).sum()
        worst = max(
            float(np.max(np.log(rows[a] / rows[b])))
            for a, b in itertools.permutations(rows, 2)
            if sum(x != y for x, y in zip(a, b, strict=True)) == 1
        )
        joint = np.array([0.25 * rows[bits] for bits in itertools.product((0, 1), repeat=2)])
        both = float(joint.max(axis=0).sum())
        counts = {"canaries": 2, "guesses": 2, "correct": 2}
        bound = answer("audit-tail", "auditing.recursion", claimed_epsilon=worst, delta=1e-300, **counts)
        assert both <= bound.upper


def simulated_counts(rng: np.random.Generator, m: int, guesses: int, mu: float) -> int:
    inside = rng.random(m) < 0.5
    order = np.argsort(mu * inside + rng.standard_normal(m))
    return int((~inside[order[: guesses // 2]]).sum() + inside[order[m - guesses // 2 :]].sum())


def test_the_idealised_game_comes_out_as_computed_and_never_exceeds_the_truth_too_often() -> None:
    rng = np.random.default_rng(8)
    found = np.array([simulated_counts(rng, 10_000, 422, 1.0) for _ in range(1000)])
    assert found.mean() == pytest.approx(392.999, abs=4.0 * found.std() / math.sqrt(1000.0))
    refuted = [
        largest_refuted(GAUSSIAN, 0.0, (1e4, 422.0, float(c), 2.0), 0.05, 60.0) for c in set(found.tolist())
    ]
    of = dict(zip(set(found.tolist()), refuted, strict=True))
    assert np.mean([of[c] > 1.0 for c in found.tolist()]) <= 0.05
    t = float(thresholds(1.0, np.array([0.0422]))[0])
    assert 1.5 < t < 3.0


def test_a_mechanism_of_two_levels_is_not_rejected_but_by_the_rule_that_assumes_independence() -> None:
    """1.051-GDP by construction: its canaries are answered together, with probability 0.2."""
    rng = np.random.default_rng(9)
    accuracy = math.exp(2.0) / (1.0 + math.exp(2.0))
    together = rng.random(400) < 0.2
    correct = rng.binomial(1000, np.where(together, accuracy, 0.5))
    recursion = [
        smallest_level((GAUSSIAN, 1.051, 0.0), NO_LINES, (1000.0, 1000.0, float(c), 2.0)) for c in correct
    ]
    assert min(recursion) > 0.05
    independent = [few_errors(1000, 1000, int(1000 - c), 1.051) for c in correct.tolist()]
    assert np.mean(np.array(independent) <= 0.05) > 0.1


def test_more_correct_guesses_and_fewer_canaries_refute_more() -> None:
    mus = [
        largest_refuted(GAUSSIAN, 0.0, (m, 100.0, 90.0, 2.0), 0.05, 60.0) for m in (1e2, 1e3, 1e4, 1e5, 1e6)
    ]
    assert mus == sorted(mus, reverse=True)
    assert [round(mu, 4) for mu in mus] == [0.8414, 0.6025, 0.4821, 0.4107, 0.3629]
    by_correct = [largest_refuted(GAUSSIAN, 0.0, (1e3, 100.0, c, 2.0), 0.05, 60.0) for c in range(50, 101, 5)]
    assert by_correct == sorted(by_correct)


def test_counts_that_contradict_one_another_are_refused_in_a_sentence() -> None:
    for fields, sentence in (
        ({"canaries": 10, "guesses": 11, "correct": 5}, "Expected guesses <= canaries"),
        ({"canaries": 10, "guesses": 5, "correct": 6}, "Expected correct <= guesses"),
        ({"canaries": 10, "guesses": 5, "correct": 5, "alternatives": 1}, "Expected alternatives in"),
        (
            {"canaries": 10, "guesses": 5, "correct": 5, "audit_confidence": 1.0},
            "Expected audit_confidence in",
        ),
        ({"canaries": 0, "guesses": 0, "correct": 0}, "Expected canaries in"),
    ):
        with pytest.raises(ValueError, match=sentence):
            find_problem("audit-epsilon").from_fields({"delta": 1e-5} | fields)
