"""Shuffling: the clones against enumeration, the lower bound against the upper bound."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom

from privcore import Direction, find
from privcore.allocation.shuffling_clones import Clones, clones_delta
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds, log_gaussian_delta
from tests.privcore.draws import answer


def enumerated(pair_epsilon: float, rate: float, others: int, epsilon: float) -> float:
    """Return the divergence of the counts of clones by summing over all counts."""
    a, kappa = 1.0 / (1.0 + math.exp(-pair_epsilon)), math.exp(epsilon)
    total = 0.0
    for c in range(others + 1):
        row = [math.comb(c, x) / 2**c for x in range(c + 1)]
        before, same = np.array([0.0, *row]), np.array([*row, 0.0])
        p, q = a * before + (1.0 - a) * same, (1.0 - a) * before + a * same
        weight = math.comb(others, c) * rate**c * (1.0 - rate) ** (others - c)
        total += weight * float(np.maximum(p - kappa * q, 0.0).sum())
    return total


@pytest.mark.parametrize(
    ("pair_epsilon", "rate", "others", "epsilon"),
    [
        (1.0, 0.5, 100, 0.1),
        (2.0, 0.1, 40, 0.5),
        (3.0, 0.05, 300, 1.0),
        (0.5, 0.9, 7, 0.0),
        (0.5, 0.3, 1, 0.4),
        (1.0, 0.7, 300, 0.2),
        (5.0, 0.3, 300, 0.6),
        (8.0, 0.001, 300, 2.0),
    ],
)
def test_clones_bound_the_enumerated_divergence(
    pair_epsilon: float, rate: float, others: int, epsilon: float
) -> None:
    exact = enumerated(pair_epsilon, rate, others, epsilon)
    assert exact * (1.0 - 1e-12) <= clones_delta(pair_epsilon, rate, others, epsilon) <= 1.2 * exact + 1e-20


def test_without_clones_the_randomized_response_remains() -> None:
    a, kappa = 1.0 / (1.0 + math.exp(-2.0)), math.exp(0.5)
    assert clones_delta(2.0, 1e-30, 10, 0.5) == pytest.approx(a - kappa * (1.0 - a), rel=1e-8)
    assert clones_delta(2.0, 0.5, 10, 2.0) == 0.0


def test_binomial_probabilities_are_as_precise_as_claimed() -> None:
    """Counts of up to 1e9 against Stirling's series with 40 digits, and tails against their sums."""
    with mp.workdps(40):
        for count, z in ((10**4, 5.0), (10**6, 9.0), (10**9, 3.0), (10**9, 25.0)):
            k = round(0.5 * count + 0.5 * z * math.sqrt(count))
            log_pmf = mp.loggamma(count + 1) - mp.loggamma(k + 1) - mp.loggamma(count - k + 1)
            exact = mp.exp(log_pmf - count * mp.log(2))
            assert float(binom.pmf(k, count, 0.5)) == pytest.approx(float(exact), rel=1e-10)
            # Pr(A >= k) / Pr(A = k) = 1 + r_k (1 + r_{k+1} (1 + ...)), summed until the ratios have died out
            terms = round(12.0 * math.sqrt(count) / max(z, 1.0)) if count <= 10**6 else 0
            if terms:
                ratios = (count - k - np.arange(terms)) / (k + 1.0 + np.arange(terms))
                total = 1.0 + float(np.cumprod(ratios).sum())
                assert float(binom.sf(k - 1, count, 0.5)) == pytest.approx(float(exact) * total, rel=1e-9)


@pytest.mark.thorough
def test_the_lower_bound_stays_below_the_upper_one() -> None:
    for sigma in (0.3, 0.5, 1.0, 2.0, 10.0, 100.0):
        for steps in (1, 2, 100, 10**6, 10**9):
            for delta in (1e-10, 1e-4, 0.1):
                fields = {"sigma": sigma, "steps": steps, "delta": delta}
                lower = answer("shuffling-epsilon", "shuffling.largest", **fields).lower
                upper = answer("shuffling-epsilon", "shuffling.clones", **fields).upper
                assert lower <= upper, fields


def test_a_clone_must_come_from_the_opposite_gradient() -> None:
    """With a distance of 1 between all examples, the bound by clones would fall below a lower bound."""
    sigma, steps, epsilon, local = 0.7, 10**6, 1.2, 9.5
    shown = answer("shuffling-delta", "shuffling.largest", sigma=sigma, steps=steps, epsilon=epsilon).lower
    moved = steps * math.exp(log_gaussian_delta(sigma, local) - local) * (1.0 + math.exp(epsilon))
    wrong = moved + clones_delta(local, math.exp(-local), steps - 1, epsilon)
    assert wrong < 1e-6
    assert shown > 1e-5
    clones = Clones(sigma=sigma, others=steps - 1)
    assert min(clones.delta(epsilon, 10.0**-i) for i in range(2, 12)) >= shown


def test_one_step_is_the_gaussian_mechanism() -> None:
    for sigma, delta in ((0.5, 1e-6), (3.0, 1e-3)):
        exact = gaussian_epsilon_bounds(sigma, delta)
        lower = answer("shuffling-epsilon", "shuffling.largest", sigma=sigma, steps=1, delta=delta).lower
        upper = answer("shuffling-epsilon", "shuffling.clones", sigma=sigma, steps=1, delta=delta).upper
        assert exact[0] * (1.0 - 1e-6) <= lower <= exact[1] <= upper <= exact[1] * (1.0 + 1e-9)


def test_clones_never_do_worse_than_no_amplification_and_sometimes_much_better() -> None:
    for sigma, steps, delta, gain in (
        (1.0, 100, 1e-6, 1.0),
        (2.0, 10**6, 1e-10, 5.0),
        (10.0, 10**4, 1e-6, 10.0),
        (30.0, 10**4, 1e-8, 15.0),
    ):
        local = gaussian_epsilon_bounds(sigma, delta)[1]
        upper = answer("shuffling-epsilon", "shuffling.clones", sigma=sigma, steps=steps, delta=delta).upper
        assert gain * upper <= local, (sigma, steps, upper)


def test_allocation_is_no_less_private_than_its_shuffling_bound() -> None:
    """With all other gradients zero, shuffling reveals as much as random allocation."""
    for sigma, steps, delta in ((0.5, 100, 1e-6), (1.0, 1000, 1e-8), (5.0, 10**4, 1e-6), (20.0, 1000, 1e-4)):
        fields = {"sigma": sigma, "steps": steps, "delta": delta}
        allocation = answer("allocation-epsilon", "allocation.certified", **fields)
        assert answer("shuffling-epsilon", "shuffling.clones", **fields).upper >= allocation.lower
        shown = answer("allocation-epsilon", "allocation.largest", **fields).lower
        assert answer("shuffling-epsilon", "shuffling.largest", **fields).lower >= shown


def test_the_profile_and_its_inverse_agree() -> None:
    for sigma, steps, delta in ((2.0, 10**6, 1e-10), (10.0, 10**4, 1e-6)):
        epsilon = answer("shuffling-epsilon", "shuffling.clones", sigma=sigma, steps=steps, delta=delta).upper
        found = answer("shuffling-delta", "shuffling.clones", sigma=sigma, steps=steps, epsilon=epsilon).upper
        assert 0.5 * delta <= found <= delta * 1.001


def test_a_negative_epsilon_is_reflected() -> None:
    fields = {"sigma": 5.0, "steps": 10**4}
    for epsilon in (0.05, 0.2):
        positive = answer("shuffling-delta", "shuffling.clones", **fields, epsilon=epsilon).upper
        negative = answer("shuffling-delta", "shuffling.clones", **fields, epsilon=-epsilon).upper
        assert negative == pytest.approx(1.0 - math.exp(-epsilon) + math.exp(-epsilon) * positive, rel=1e-8)


def test_the_approximate_pair_keeps_its_mean_and_moves_as_little_as_claimed() -> None:
    """On a fine grid, redistributing the sum of two Gaussians gives a pure pair at the claimed distance."""
    sigma, epsilon = 0.8, 1.3
    x = np.linspace(-12.0, 13.0, 400_001)
    step = x[1] - x[0]
    zero, one = (
        np.exp(-0.5 * ((x - mean) / sigma) ** 2) / (sigma * math.sqrt(2.0 * math.pi)) for mean in (0.0, 1.0)
    )
    high = (zero + one) / (1.0 + math.exp(-epsilon))
    moved = np.clip(one, (zero + one) - high, high)
    rest = zero + one - moved
    assert np.all(moved <= math.exp(epsilon) * rest * (1.0 + 1e-9))
    assert np.all(rest <= math.exp(epsilon) * moved * (1.0 + 1e-9))
    assert float(moved.sum() * step) == pytest.approx(1.0, rel=1e-6)
    distance = 0.5 * float(np.abs(moved - one).sum() * step)
    delta = gaussian_delta_bounds(sigma, epsilon)[1]
    assert distance == pytest.approx(delta / (1.0 + math.exp(epsilon)), rel=1e-4)


def test_the_lower_bound_is_labelled() -> None:
    assert find("shuffling.largest").direction is Direction.LOWER
    detail = answer("shuffling-epsilon", "shuffling.largest", sigma=0.5, steps=100, delta=1e-4).detail
    assert detail.startswith("lower bound of shuffling: remove, largest output")
    assert detail.endswith("all other gradients -1")
