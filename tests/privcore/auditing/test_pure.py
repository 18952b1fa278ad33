"""Audits at delta 0, and the refuted mu and noise multiplier as answers of their own."""

import math
from itertools import product
from operator import eq

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from privcore import Status
from tests.privcore.draws import answer


@pytest.mark.thorough
@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_audit_of_pure_privacy_is_the_binomial_test(k: int) -> None:
    """Under epsilon-DP the count is stochastically at most binomial, which randomized responses attain."""
    for guesses, correct in ((100, 75), (40, 40), (500, 300), (3000, 1700)):
        counts = {"canaries": 2 * guesses, "guesses": guesses, "correct": correct, "delta": 0}
        counts["alternatives"] = k
        epsilon = answer("audit-epsilon", "auditing.tightest", **counts).lower
        rates = [1.0 / (1.0 + (k - 1.0) * math.exp(-epsilon * off)) for off in (1.0, 1.001)]
        tails = [float(binom.sf(correct - 1, guesses, rate)) for rate in rates]
        assert tails[0] <= 0.05 < tails[1], (guesses, correct)
        bound = answer("audit-tail", "auditing.revealed", **counts, claimed_epsilon=epsilon).upper
        assert bound == pytest.approx(tails[0], rel=1e-6)


@pytest.mark.parametrize("k", [3, 4])
def test_no_private_mechanism_is_guessed_more_often_than_the_bound_at_delta_0(k: int) -> None:
    """Mechanisms that publish both canaries, shifted at random, with weights between 1 and e^epsilon."""
    rng, epsilon = np.random.default_rng(k), 0.7
    pairs = list(product(range(k), repeat=2))
    fields = {"canaries": 2, "guesses": 2, "alternatives": k, "delta": 0, "claimed_epsilon": epsilon}
    bounds = [answer("audit-tail", "auditing.revealed", correct=c, **fields).upper for c in (1, 2)]
    for draw in range(40):
        weights = np.exp(epsilon * (rng.random(k * k) if draw % 2 else rng.integers(0, 2, k * k)))
        posterior = weights / weights.sum()  # of both canaries, given the output; equal for all outputs
        for needed, bound in enumerate(bounds, 1):
            right = [
                sum(p for p, v in zip(posterior, pairs, strict=True) if sum(map(eq, v, guess)) >= needed)
                for guess in pairs
            ]
            assert max(right) <= bound


def test_many_runs_refute_more_at_delta_0_than_at_any_larger_delta() -> None:
    counts = {"runs_with": 1000, "true_positives": 900, "runs_without": 1000, "false_positives": 50}
    pure, other = (answer("audit-runs-epsilon", "auditing.runs", **counts, delta=d).lower for d in (0, 1e-3))
    assert pure > other > 0.0


@pytest.mark.parametrize("method", ["auditing.gaussian", "auditing.tightestmu", "auditing.independent"])
def test_no_gaussian_epsilon_is_given_at_delta_0(method: str) -> None:
    counts = {"canaries": 100, "guesses": 100, "correct": 75, "delta": 0}
    found = answer("audit-epsilon", method, **counts)
    assert found.status is Status.NOT_APPLICABLE
    assert "at delta = 0" in found.detail


@pytest.mark.thorough
def test_the_refuted_mu_is_below_that_of_a_mechanism_that_attains_the_counts() -> None:
    """All guesses are made about independent Gaussian canaries, whose counts are binomial."""
    mu, m = 0.8, 200
    for correct in range(110, 180, 12):
        found = answer("audit-mu", "auditing.mu", canaries=m, guesses=m, correct=correct)
        assert found.confidence == 0.95
        if found.lower > mu:
            assert binom.sf(correct - 1, m, float(ndtr(0.5 * mu))) <= 0.05
    few = answer("audit-mu", "auditing.mu", canaries=1000, guesses=1000, correct=691)
    assert few.lower > 0.3


@pytest.mark.thorough
def test_the_refuted_noise_multiplier_is_that_of_the_refuted_epsilon() -> None:
    counts = {"canaries": 1000, "guesses": 100, "correct": 90, "sampling_probability": 0.01, "steps": 1000}
    noise = answer("audit-dpsgd-noise", "auditing.noise", **counts)
    epsilon = answer("audit-dpsgd-epsilon", "auditing.tightestdpsgd", **counts, delta=1e-5)
    assert noise.confidence == 0.95
    named = float(epsilon.detail.partition("noise multiplier ")[2].partition(" ")[0])
    assert noise.upper == pytest.approx(named, rel=1e-3)
    none = answer("audit-dpsgd-noise", "auditing.noise", **{**counts, "correct": 50})
    assert none.upper == math.inf
