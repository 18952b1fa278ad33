"""The Gaussian profile encloses 80-digit values over the whole domain, and far beyond it."""

import math
import random

import mpmath as mp
import pytest

from privcore.numerics.gaussian import (
    gaussian_delta_bounds,
    gaussian_epsilon_bounds,
    last_true,
    log_gaussian_delta,
)
from privcore.numerics.rounding import GAUSSIAN_LOG_DELTA

DIGITS = 80  # the difference of two normal tails cancels 20 of them at worst


def exact_log_delta(sigma: mp.mpf, epsilon: float) -> mp.mpf:
    """Return log(delta) to more than 50 digits, by the textbook formula."""
    a = mp.mpf(epsilon) * sigma - 1 / (2 * sigma)
    b = a + 1 / sigma
    return mp.log((mp.erfc(a / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(b / mp.sqrt(2))) / 2)


def draw(rng: random.Random) -> tuple[float, float]:
    """Return sigma and epsilon: anywhere, around epsilon 0, or while delta falls from 1 to 0."""
    shift = 10.0 ** rng.uniform(-6.0, 10.5)  # sigma 1e-3 over sqrt(1e15) participations is 3e-11
    anywhere = rng.uniform(-100.0, 1e4)
    small = rng.choice((-1.0, 1.0)) * 10.0 ** rng.uniform(-300.0, 2.0)
    decisive = shift * (rng.uniform(-2.0, 40.0) + 0.5 * shift)
    return 1.0 / shift, rng.choice((anywhere, small, decisive))


def test_bounds_of_delta_enclose_the_exact_profile() -> None:
    rng = random.Random(1)
    with mp.workdps(DIGITS):
        for _ in range(1500):
            sigma, epsilon = draw(rng)
            lower, upper = gaussian_delta_bounds(sigma, epsilon)
            delta = mp.exp(exact_log_delta(mp.mpf(sigma), epsilon))
            assert lower <= delta <= upper, (sigma, epsilon)
            assert 0.0 <= lower < upper <= 1.0, (sigma, epsilon)


def test_the_logarithm_is_exact_to_a_tenth_of_its_slack() -> None:
    """Exact except for the rounding of the argument a, which the move of sigma accounts for."""
    rng = random.Random(2)
    with mp.workdps(DIGITS):
        for _ in range(1500):
            sigma, epsilon = draw(rng)
            exact = exact_log_delta(mp.mpf(sigma), epsilon)
            terms = abs(epsilon) * sigma + 0.5 / sigma
            a = abs(epsilon) * sigma - 0.5 / sigma
            argument = 2.0**-51 * terms * (max(a, 0.0) + 1.5)
            error = abs(exact - log_gaussian_delta(sigma, epsilon))
            assert error <= argument + 0.1 * GAUSSIAN_LOG_DELTA * max(1.0, -exact), (sigma, epsilon)


def test_bounds_of_delta_are_tight() -> None:
    for sigma in (1e-3, 0.1, 1.0, 10.0, 1e6):
        for a in (-3.0, 0.0, 5.0, 30.0):
            lower, upper = gaussian_delta_bounds(sigma, (a + 0.5 / sigma) / sigma)
            assert upper <= lower * (1.0 + 1e-9), (sigma, a)


def test_bounds_of_epsilon_enclose_the_exact_inverse() -> None:
    """Sigma is rounded by intermediate operations, as in a composition."""
    rng = random.Random(3)
    with mp.workdps(DIGITS):
        for _ in range(400):
            sigma = 10.0 ** rng.uniform(-3.0, 6.0)
            copies = rng.choice((1, int(10.0 ** rng.uniform(0.0, 15.0))))
            tail = 10.0 ** rng.uniform(-307.0, -0.1)
            delta = rng.choice((tail, 1.0 - 10.0 ** rng.uniform(-15.0, -0.5)))
            lower, upper = gaussian_epsilon_bounds(sigma / math.sqrt(copies), delta)
            exact_sigma, log_delta = sigma / mp.sqrt(copies), mp.log(delta)
            where = (sigma, copies, delta)
            assert exact_log_delta(exact_sigma, upper) <= log_delta, where
            assert lower == 0.0 or exact_log_delta(exact_sigma, lower) >= log_delta, where
            if delta < 0.9:  # closer to 1 the slack of log(delta) matters
                assert upper - lower <= 1e-11 * max(upper, 1e-3 / sigma), where


def test_epsilon_is_zero_where_delta_exceeds_the_total_variation() -> None:
    total_variation = math.erf(0.5 / math.sqrt(2.0))
    assert gaussian_epsilon_bounds(1.0, total_variation * (1.0 + 1e-9)) == (0.0, 0.0)
    lower, upper = gaussian_epsilon_bounds(1.0, total_variation * (1.0 - 1e-9))
    assert 0.0 < lower <= upper < 1e-8


def test_an_underflowing_delta_stays_positive_above_and_zero_below() -> None:
    assert gaussian_delta_bounds(1.0, 1e4) == (0.0, 5e-324)
    assert gaussian_delta_bounds(1e6, 1e4) == (0.0, 5e-324)


def test_delta_is_almost_one_for_a_very_negative_epsilon() -> None:
    lower, upper = gaussian_delta_bounds(1e6, -100.0)
    assert 1.0 - 1e-13 < lower < upper == 1.0


def test_delta_falls_in_epsilon_and_in_sigma() -> None:
    rng = random.Random(4)
    for _ in range(2000):
        sigma, epsilon = draw(rng)
        lower, upper = gaussian_delta_bounds(sigma, epsilon)
        farther = epsilon + 10.0 ** rng.uniform(-12.0, 1.0)
        noisier = sigma * (1.0 + 10.0 ** rng.uniform(-12.0, 1.0))
        assert gaussian_delta_bounds(sigma, farther)[0] <= upper
        assert gaussian_delta_bounds(noisier, epsilon)[0] <= upper
        assert lower <= upper


def test_remove_and_add_are_reflections_of_each_other() -> None:
    """delta(eps) = 1 - e^eps + e^eps delta(-eps); the Gaussian pair is symmetric."""
    for sigma in (0.3, 1.0, 5.0):
        for epsilon in (0.1, 1.0, 3.0):
            direct = math.exp(log_gaussian_delta(sigma, epsilon))
            mirrored = math.exp(log_gaussian_delta(sigma, -epsilon))
            assert mirrored == pytest.approx(1.0 - math.exp(-epsilon) * (1.0 - direct), rel=1e-12)


def test_the_search_ends_on_both_sides_of_the_step() -> None:
    low, high = last_true(lambda x: x < 0.3, 0.0, 1.0)
    assert low < 0.3 <= high <= low * (1.0 + 2e-12)
    assert last_true(lambda x: False, 0.5, 1.0) == (0.5, 0.5)


def test_a_guess_spares_calls_and_changes_nothing_else() -> None:
    calls = 0

    def small(x: float) -> bool:
        nonlocal calls
        calls += 1
        return x * x < 2.0

    plain, calls_without = last_true(small, 0.0, 2.0), calls
    for guess in (math.sqrt(2.0), 1.4, 0.0, 2.0, 3.0, math.inf, math.nan):
        calls = 0
        assert last_true(small, 0.0, 2.0, guess) == plain, guess
        assert calls < 0.5 * calls_without if guess == math.sqrt(2.0) else calls <= calls_without + 4, guess
