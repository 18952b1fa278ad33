"""Tails of the posterior above a sampling probability: exact for few steps, simulated, or void."""

import itertools
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr

from privcore import Point, evaluate, find
from privcore.allocation.published.combined import analytic_rate
from privcore.allocation.published.decomposition import recursive_rate
from privcore.allocation.published.truncated import posterior_bound, tilted
from privcore.numerics.gaussian import gaussian_epsilon_bounds
from tests.privcore.draws import problem

Rate = Callable[[float, int, float, str], float | None]


def by_truncation(s: float, steps: int, beta: float, direction: str) -> float | None:
    return posterior_bound(s, steps, beta, direction)


def by_recursion(s: float, steps: int, beta: float, direction: str) -> float | None:
    return recursive_rate(1.0 / s, steps, beta, direction, 0.01)


def two_steps_exceed(s: float, eta: float, direction: str) -> float:
    """Return the probability that the posterior 1 / (1 + X_1) of the second of two steps exceeds eta."""
    cut = (math.log(1.0 / eta - 1.0) + 0.5 * s * s) / s
    return float(ndtr(cut)) if direction == "add" else 0.5 * float(ndtr(cut) + ndtr(cut - s))


def three_steps_exceed(s: float, eta: float, direction: str) -> float:
    """Return the probability that 1 / (2 + X_1) or 1 / (1 + X_1 + X_2) exceeds eta, by quadrature."""

    def exceed(shift_1: float, shift_2: float) -> float:
        def place(x: float) -> float:
            return (math.log(x) + 0.5 * s * s) / s if x > 0.0 else -math.inf

        def second(z: float) -> float:
            rest = 1.0 / eta - 1.0 - math.exp(s * z - 0.5 * s * s)
            return float(ndtr(place(rest) - shift_2)) * math.exp(-0.5 * (z - shift_1) ** 2)

        first, last = place(1.0 / eta - 2.0), place(1.0 / eta - 1.0)
        low = max(first, shift_1 - 12.0)
        inner = quad(second, low, last, limit=200, epsabs=0.0)[0] if last > low else 0.0
        return float(ndtr(first - shift_1)) + inner / math.sqrt(2.0 * math.pi)

    if direction == "add":
        return exceed(0.0, 0.0)
    return (exceed(s, 0.0) + exceed(0.0, s) + exceed(0.0, 0.0)) / 3.0


@pytest.mark.parametrize("rate", [by_truncation, by_recursion])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_posterior_exceeds_the_rate_as_rarely_as_claimed(rate: Rate, direction: str) -> None:
    """For two and three steps the probability is an integral, computed without a theorem."""
    met = 0
    for s, beta in itertools.product((0.02, 0.1, 0.3, 1.0, 2.0), (0.3, 1e-2, 1e-4, 1e-8)):
        for steps, exceed in ((2, two_steps_exceed), (3, three_steps_exceed)):
            eta = rate(s, steps, beta, direction)
            if eta is not None:
                met += 1
                assert 1.0 / steps <= eta <= 1.0
                assert exceed(s, min(eta, 1.0 - 1e-15), direction) <= beta, (s, beta, steps)
    assert met >= 8


def test_the_posterior_of_a_hundred_steps_exceeds_rarely_in_simulation() -> None:
    s, steps, samples = 0.8, 100, 20_000
    ratios = np.exp(s * np.random.default_rng(5).standard_normal((samples, steps)) - 0.5 * s * s)
    largest = np.max(np.cumsum(1.0 - ratios[:, :-1], axis=1), axis=1)
    for beta in (0.3, 0.1, 0.01):
        eta = posterior_bound(s, steps, beta, "add")
        assert eta is not None
        seen = float(np.mean(largest > steps - 1.0 / eta))
        assert 0.02 * beta < seen < beta


@pytest.mark.parametrize(("s", "theta"), [(1e-3, 500.0), (0.05, 20.0), (0.5, 1e-3), (1.0, 3.0), (3.0, 0.5)])
def test_the_exponential_moment_lies_just_above_quadrature(s: float, theta: float) -> None:
    with mp.workdps(40):

        def integrand(z: mp.mpf) -> mp.mpf:
            y = theta * (1 - mp.exp(s * z - mp.mpf(s) ** 2 / 2))
            return (mp.exp(y) - 1 - y) * mp.npdf(z)

        exact = mp.quad(integrand, [-25, -15, -9, -6, -3, -1, 0, 1, 3, 6, 9, 15, 25])
        assert 1.0 < tilted(s, theta) / exact < 1.001


def test_exponential_moments_survive_the_ends_of_the_domain() -> None:
    for s in (1e-6, 1e-3, 1.0, 12.0, 20.0):
        for theta in (1e-9, 1e-3, 1.0, 1e3, 1e9):
            value = tilted(s, theta)
            assert value > 0.0
            assert value <= (math.exp(theta) if theta < 700.0 else math.inf)


def test_the_analytic_rate_is_the_formula_or_void() -> None:
    """The bound is void if and only if gamma >= 1 - 1 / t."""
    void = 0
    grid = itertools.product((0.0, 0.01, 0.3, 1.0, 4.0, 29.0), (1, 2, 10, 10**4, 10**9), (0.9, 1e-3, 1e-290))
    for local_epsilon, steps, delta in grid:
        for range_bound, half_range in (
            ("sinh", math.sinh(local_epsilon)),
            ("cosh", math.cosh(local_epsilon)),
        ):
            gamma = half_range * math.sqrt(2.0 / steps * math.log(1.0 / delta))
            eta = analytic_rate(local_epsilon, steps, delta, range_bound)
            if gamma >= 1.0 - 1.0 / steps:
                void += 1
                assert eta is None
            else:
                assert eta == pytest.approx(1.0 / (steps * (1.0 - gamma)), rel=1e-9)
                assert 1.0 / steps < (eta or 0.0) < 1.0
    assert 40 < void < 140


def test_the_analytic_rate_falls_in_delta_and_grows_with_epsilon() -> None:
    rates = [analytic_rate(0.3, 10**4, delta) or 1.0 for delta in (1e-200, 1e-20, 1e-5, 0.1)]
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) == 4
    rates = [analytic_rate(local_epsilon, 10**4, 1e-9) or 1.0 for local_epsilon in (0.0, 0.1, 0.5, 1.0, 2.0)]
    assert rates == sorted(rates)
    assert len(set(rates)) == 5


def test_a_clipped_step_of_mean_1_proves_the_analytic_bound() -> None:
    """The ratio stays within e^-epsilon_0 and e^epsilon_0; the posterior exceeds eta as rarely as claimed."""
    s, steps, first = 0.3, 100, 0.05
    local_epsilon = gaussian_epsilon_bounds(1.0 / s, first)[1]

    def put(level: float) -> float:
        """Return E(level - X)_+."""
        place = (math.log(level) + 0.5 * s * s) / s
        return level * float(ndtr(place)) - float(ndtr(place - s))

    low, high = brentq(lambda level: put(level) - first, 1e-6, 2.0), math.exp(local_epsilon)
    assert put(high) - high + 1.0 == pytest.approx(first)  # the same amount is cut off above and below
    assert math.exp(-local_epsilon) < low < 1.0
    draws = np.random.default_rng(6).standard_normal((20_000, steps))
    ratios = np.clip(np.exp(s * draws - 0.5 * s * s), low, high)
    assert float(np.mean(ratios)) == pytest.approx(1.0, abs=1e-3)
    largest = np.max(np.cumsum(1.0 - ratios[:, :-1], axis=1), axis=1)
    for beta in (0.5, 0.2):
        eta = analytic_rate(local_epsilon, steps, beta)
        assert eta is not None
        assert 0.05 * beta < float(np.mean(largest > steps - 1.0 / eta)) < beta


def test_the_published_bound_of_the_event_itself_does_not_hold() -> None:
    """Claim B.8 compares events of the true ratio and of the clipped ratio: here 0.5 is above 0.3.

    The bound of delta does hold, since clipping changes the output distribution by at most delta_0.
    """
    s, first, second = 0.02, 0.1, 0.1
    eta = analytic_rate(gaussian_epsilon_bounds(1.0 / s, first)[1], 2, second)
    assert eta is not None
    assert two_steps_exceed(s, eta, "add") > 0.5 > 2.0 * first + second


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_recursive_rate_is_void_exactly_where_even_1_leaves_too_much(direction: str) -> None:
    """The rate exists if the correction at rate 1, tau delta(ln(t) / 2), is within the budget."""
    for sigma, steps in ((1.0, 10), (0.5, 30), (0.3, 100)):
        middle = 0.5 * math.log(steps)
        tau = 1.0 / (math.exp(middle) * math.expm1(middle)) * (steps if direction == "add" else 1.0)
        question = problem("allocation-delta", sigma=sigma, steps=steps, epsilon=middle, adjacency="add")
        point = Point(problem=question, method=find("allocation.decomposition")())
        beta = tau * evaluate(point).upper
        assert recursive_rate(sigma, steps, 0.8 * beta, direction, 0.01) is None
        eta = recursive_rate(sigma, steps, 1.25 * beta, direction, 0.01)
        assert eta is not None
        assert 0.5 < eta <= 1.0


def test_one_step_leaves_nothing_to_truncate() -> None:
    assert posterior_bound(1.0, 1, 1e-3, "add") is None
    assert recursive_rate(1.0, 1, 1e-3, "add", 0.01) is None
    assert analytic_rate(0.1, 1, 1e-3) is None


def test_the_rate_behind_a_known_value() -> None:
    assert recursive_rate(1.0, 30_000, 5e-9, "remove", 1e-3) == pytest.approx(3.760253465e-5, rel=1e-3)
    assert recursive_rate(2.0, 1000, 5e-9, "remove", 1e-3) == pytest.approx(0.00130563553, rel=1e-3)
