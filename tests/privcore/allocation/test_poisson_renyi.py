"""The moments accountant: exact integer orders, both directions, published values."""

import math

import mpmath as mp
import numpy as np
import pytest

from privcore import Answer, Point, Problem, evaluate, find
from privcore.allocation.moments import FRACTIONS
from privcore.allocation.poisson import ORDERS, fraction_moments, poisson_moments
from privcore.numerics.gaussian import gaussian_epsilon_bounds
from tests.privcore.draws import problem


def answer(question: Problem) -> Answer:
    return evaluate(Point(problem=question, method=find("poisson.renyi")()))


def quadrature(sigma: float, rate: float, order: float, *, swapped: bool) -> mp.mpf:
    """Return the log-moment of either direction as an integral over the output."""
    with mp.workdps(25):
        s, lam = mp.mpf(sigma), mp.mpf(rate)

        def integrand(x: mp.mpf) -> mp.mpf:
            ratio = 1 - lam + lam * mp.exp((2 * x - 1) / (2 * s * s))
            power = 1 - mp.mpf(order) if swapped else mp.mpf(order)
            return mp.exp(-x * x / (2 * s * s)) / (s * mp.sqrt(2 * mp.pi)) * ratio**power

        ends = [-12 * s, -2 * s, 0, mp.mpf(order) / 2, mp.mpf(order), order + 6 * s, order + 14 * s]
        return mp.log(mp.quad(integrand, sorted(ends)))


@pytest.mark.parametrize("sigma", [0.2, 1.0, 20.0, 1e3])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.7, 1.0])
def test_integer_orders_are_exact_but_for_rounding_up(sigma: float, rate: float) -> None:
    bounds = poisson_moments(sigma, rate)[len(FRACTIONS) :]
    for order in (2, 3, 17, 200):
        with mp.workdps(60):
            half, lam = 1 / (2 * mp.mpf(sigma) ** 2), mp.mpf(rate)
            exact = mp.log(
                mp.fsum(
                    mp.binomial(order, j) * lam**j * (1 - lam) ** (order - j) * mp.exp(j * (j - 1) * half)
                    for j in range(order + 1)
                )
            )
        assert exact <= bounds[order - 2] <= exact * (1 + 1e-11)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("sigma", "rate"), [(0.5, 0.01), (0.5, 0.5), (1.0, 0.1), (3.0, 0.9)])
def test_direction_add_diverges_less_at_every_order(sigma: float, rate: float) -> None:
    """Mironov, Talwar and Zhang (2019), Theorem 5, here also for orders that are not integers."""
    bounds = dict(zip(ORDERS, poisson_moments(sigma, rate), strict=True))
    for order in (FRACTIONS[20], FRACTIONS[60], FRACTIONS[76], 2.0, 5.0):
        remove = quadrature(sigma, rate, order, swapped=False)
        add = quadrature(sigma, rate, order, swapped=True)
        assert add <= remove * (1 + mp.mpf(10) ** -12)
        assert remove <= bounds[order] * (1 + 1e-12)


def test_certainty_is_the_gaussian_mechanism_at_every_order() -> None:
    bounds = poisson_moments(0.5, 1.0)
    exact = 2.0 * ORDERS * (ORDERS - 1.0)
    assert np.all(bounds >= exact)
    np.testing.assert_allclose(bounds, exact, rtol=1e-7)


def test_fractional_orders_help_where_the_noise_is_small() -> None:
    second = math.log1p(0.1**2 * math.expm1(1.0 / 0.1**2))
    bounds = fraction_moments(0.1, 0.1, second)  # the Gaussian log-moment is 50 a (a - 1) at order a
    chord = (FRACTIONS - 1.0) * second
    assert np.all(bounds <= chord * (1.0 + 1e-12))
    assert bounds[-8] < 0.6 * chord[-8]


@pytest.mark.parametrize("adjacency", ["add-remove", "remove", "add"])
def test_a_published_value_is_met_in_every_direction(adjacency: str) -> None:
    """Values of random-allocation 1.0.5 and dp-accounting 0.6.0."""
    fields = {"sigma": 1.0, "steps": 1000, "sampling_probability": 1e-3, "delta": 1e-8}
    upper = answer(problem("poisson-epsilon", **fields, adjacency=adjacency)).upper
    assert upper == pytest.approx(1.2534719978482545, rel=1e-12)


def test_high_orders_bound_weak_sampling_closely() -> None:
    fields = {"sigma": 20.0, "steps": 1000, "sampling_probability": 1e-3}
    upper = answer(problem("poisson-epsilon", **fields, delta=1e-12)).upper
    certified = evaluate(
        Point(problem=problem("poisson-epsilon", **fields, delta=1e-12), method=find("poisson.certified")())
    )
    assert certified.lower <= upper <= 1.1 * certified.lower


def test_epochs_are_more_steps() -> None:
    fields = {"sigma": 1.0, "sampling_probability": 0.01, "delta": 1e-6}
    once = answer(problem("poisson-epsilon", **fields, steps=600))
    assert once == answer(problem("poisson-epsilon", **fields, steps=60, epochs=10))


@pytest.mark.parametrize("sigma", [0.05, 1.0, 30.0])
def test_certainty_lies_above_the_gaussian_mechanism(sigma: float) -> None:
    question = problem("poisson-epsilon", sigma=sigma, steps=4, sampling_probability=1.0, delta=1e-6)
    exact = gaussian_epsilon_bounds(sigma / 2.0, 1e-6)[0]
    assert exact <= answer(question).upper <= 1.25 * exact


def test_delta_at_a_negative_epsilon_is_reflected() -> None:
    fields = {"sigma": 1.0, "steps": 10, "sampling_probability": 0.1}
    positive = answer(problem("poisson-delta", **fields, epsilon=1.0)).upper
    negative = answer(problem("poisson-delta", **fields, epsilon=-1.0)).upper
    assert negative == pytest.approx(-math.expm1(-1.0) + math.exp(-1.0) * positive, rel=1e-12)
