"""Conversion of Renyi divergences to epsilon and delta: above the truth, below the bound of each order."""

import math

import mpmath as mp
import numpy as np
import pytest

from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.numerics.renyi import Floats, delta_from_moments, epsilon_from_moments, reflected_delta

EPSILONS = (-3.0, -0.1, 0.0, 0.05, 1.0, 4.0, 20.0)
DELTAS = (1e-300, 1e-12, 1e-5, 0.01, 0.5)


def gaussian(sigma: float, orders: Floats) -> Floats:
    """Return the log-moments of the Gaussian mechanism."""
    return orders * (orders - 1.0) / (2.0 * sigma * sigma)


def exact_delta(order: float, log_moment: float, epsilon: float) -> mp.mpf:
    """Return the bound by a single order, in 40 digits."""
    with mp.workdps(40):
        a, g, x = mp.mpf(order), mp.mpf(log_moment), mp.mpf(epsilon)
        return mp.exp(g - (a - 1) * x) * (1 - 1 / a) ** a / (a - 1)


@pytest.mark.parametrize("order", [1.0 + 2.0**-20, 1.01, 1.5, 2.0, 7.0, 300.0, 32768.0])
@pytest.mark.parametrize("log_moment", [0.0, 1e-9, 0.3, 50.0, 1e9])
def test_one_order_gives_the_formula_rounded_up(order: float, log_moment: float) -> None:
    for epsilon in EPSILONS:
        delta, _ = delta_from_moments(np.array([order]), np.array([log_moment]), epsilon)
        exact = min(exact_delta(order, log_moment, epsilon), mp.mpf(1))
        size = log_moment + (order - 1.0) * abs(epsilon) + order * math.log(order) + 1.0
        # A chord leads from order 1 to the only order; a point of it may give less than its end.
        assert 0.0 < delta <= exact * (1.0 + 1e-13 * size) + mp.mpf(5e-324)
        if delta == 1.0 or order < 1.001:
            continue
        best = min(
            exact_delta(1.0 + part * (order - 1.0), part * log_moment, epsilon)
            for part in np.linspace(0.001, 1.0, 400)
        )
        assert delta <= best * (1.0 + 1e-13 * size) + mp.mpf(5e-324)


def test_the_bound_holds_between_random_distributions() -> None:
    """Every order of a finite pair is known; the hockey-stick divergence is a sum."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        size = int(rng.integers(2, 6))
        p, q = rng.dirichlet(np.full(size, 0.5)) + 1e-6, rng.dirichlet(np.full(size, 0.5)) + 1e-6
        p, q = p / p.sum(), q / q.sum()
        orders = np.sort(1.0 + rng.exponential(3.0, size=6))
        moments = np.array([math.log(float((p**a * q ** (1.0 - a)).sum())) for a in orders])
        moments = np.maximum(moments, 0.0) + 1e-12
        for epsilon in EPSILONS:
            truth = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            assert truth <= delta_from_moments(orders, moments, epsilon)[0] + 1e-15
            if truth > 0.0 and epsilon >= 0.0:
                assert epsilon <= epsilon_from_moments(orders, moments, truth)[0] + 1e-12


@pytest.mark.parametrize("sigma", [0.05, 0.5, 1.0, 5.0])
def test_the_gaussian_mechanism_is_bounded_closely(sigma: float) -> None:
    orders = 1.0 + np.exp2(np.arange(-12.0, 12.0, 0.05))
    for delta in DELTAS:
        exact = gaussian_epsilon_bounds(sigma, delta)[0]
        bound = epsilon_from_moments(orders, gaussian(sigma, orders), delta)[0]
        assert exact <= bound
        if delta <= 1e-5:
            assert bound <= 1.3 * exact
    for epsilon in EPSILONS:
        exact = gaussian_delta_bounds(sigma, epsilon)[0]
        assert exact <= delta_from_moments(orders, gaussian(sigma, orders), epsilon)[0]


@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_and_delta_are_inverse_to_each_other(sigma: float, delta: float) -> None:
    orders = np.array([1.2, 1.9, 2.0, 3.0, 5.0, 20.0, 100.0])
    moments = gaussian(sigma, orders)
    epsilon, order = epsilon_from_moments(orders, moments, delta)
    if epsilon == 0.0:
        assert delta_from_moments(orders, moments, 0.0)[0] <= delta
        return
    assert delta_from_moments(orders, moments, epsilon)[0] <= delta * (1.0 + 1e-9)
    assert delta_from_moments(orders, moments, epsilon * (1.0 - 1e-6))[0] > delta
    assert delta_from_moments(orders, moments, epsilon)[1] == pytest.approx(order, rel=1e-4)


def test_epsilon_between_two_orders_is_the_best_on_their_chord() -> None:
    orders, delta = np.array([2.0, 64.0]), 0.1
    moments = 1.0 * (orders - 1.0)  # moments of a mechanism with pure epsilon 1
    epsilon, order = epsilon_from_moments(orders, moments, delta)
    assert 2.0 < order < 64.0
    a = np.linspace(2.0, 64.0, 200_001)
    best = float(((a - 1.0 - np.log(delta * a)) / (a - 1.0) + np.log1p(-1.0 / a)).min())
    assert best * (1.0 - 1e-9) <= epsilon <= best * (1.0 + 1e-8)
    assert epsilon < 0.95 * epsilon_from_moments(orders[:1], moments[:1], delta)[0]


def test_a_bound_that_falls_replaces_those_of_smaller_orders() -> None:
    """The divergence increases with the order, so a bound larger than that of a higher order is redundant."""
    orders = np.array([1.5, 2.0, 4.0])
    rising = 0.7 * (orders - 1.0)
    for delta in DELTAS:
        loose = epsilon_from_moments(orders, np.array([5.0, 3.0, rising[2]]), delta)[0]
        assert loose == pytest.approx(epsilon_from_moments(orders, rising, delta)[0], rel=1e-12)


def test_more_orders_are_never_worse() -> None:
    orders = np.arange(2.0, 40.0)
    moments = gaussian(0.8, orders)
    for delta in DELTAS:
        few = epsilon_from_moments(orders[::7], moments[::7], delta)[0]
        assert epsilon_from_moments(orders, moments, delta)[0] <= few * (1.0 + 1e-13)


def test_formulas_survive_the_ends_of_the_domain() -> None:
    orders = np.array([1.0 + 2.0**-20, 1.5, 2.0, 1024.0, 32768.0])
    for scale in (0.0, 1e-300, 1e-12, 1.0, 1e12, 1e30):
        for delta in (2.3e-308, 1e-300, 0.5, 1.0 - 2.0**-53):
            epsilon = epsilon_from_moments(orders, scale * orders * (orders - 1.0), delta)[0]
            assert 0.0 <= epsilon < math.inf
        for at in (-100.0, -1e-300, 0.0, 1e-300, 700.0, 1e4):
            assert 0.0 < delta_from_moments(orders, scale * orders * (orders - 1.0), at)[0] <= 1.0


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [-50.0, -2.0, -0.3, -1e-9])
def test_the_reflected_gaussian_profile_is_the_profile(sigma: float, epsilon: float) -> None:
    reflected = reflected_delta(epsilon, gaussian_delta_bounds(sigma, -epsilon)[1])
    lower, upper = gaussian_delta_bounds(sigma, epsilon)
    assert lower <= reflected <= upper * (1.0 + 1e-12)
