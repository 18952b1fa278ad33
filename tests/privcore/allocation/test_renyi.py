"""Renyi divergences of allocation against reference values, an enumeration, and a quadrature."""

import itertools
import math
from fractions import Fraction

import pytest
from scipy.integrate import quad

from privcore import Point, evaluate, find, find_problem
from privcore.allocation.moments import allocation_moments


def divergence(**fields: float) -> float:
    """Return the upper end; the lower end is at most 1e-9 below it."""
    asked = find_problem("allocation-renyi").from_fields(fields)
    found = evaluate(Point(problem=asked, method=find("allocation.renyi")()))
    assert found.upper * (1.0 - 1e-9) <= found.lower <= found.upper
    return found.upper


@pytest.mark.parametrize(
    ("sigma", "steps", "order", "expected"),
    [
        (1.0, 1000, 2, 0.0017168072711331),
        (1.0, 1000, 10, 0.00865492028125137),
        (0.5, 10_000, 5, 0.802118793839705),
        (1.0, 3, 10, 3.90166318404565),
        (20.0, 1000, 20, 2.50312456698691e-05),
        (2.0, 1000, 200, 18.0922447210179),
    ],
)
def test_divergences_are_the_reference_values_rounded_up_and_down(
    sigma: float, steps: int, order: int, expected: float
) -> None:
    found = divergence(sigma=sigma, steps=steps, renyi_order=order)
    assert expected * (1.0 - 1e-13) <= found <= expected * (1.0 + 1e-9)


def test_lower_bounds_are_below_the_exact_moments_in_rational_arithmetic() -> None:
    """If one step reveals nothing, all moments are 1; if it reveals ln 2, those of 2 steps are fractions."""
    assert allocation_moments(1e8, 50, 10, -1.0)[10] <= allocation_moments(1e8, 50, 10, 1.0)[10] < 1e-13
    sigma = math.sqrt(1.0 / math.log(2.0))  # E[X^n] = 2^(n (n - 1) / 2)
    for n in range(2, 12):
        exact = sum(
            Fraction(math.comb(n, j) * 2 ** (j * (j - 1) // 2) * 2 ** ((n - j) * (n - j - 1) // 2), 2**n)
            for j in range(n + 1)
        )
        log = math.log(exact.numerator) - math.log(exact.denominator)
        low, high = (float(allocation_moments(sigma, 2, n, side)[n]) for side in (-1.0, 1.0))
        assert low < log * (1.0 + 1e-15) < high * (1.0 + 2e-15)
        assert high - low < 1e-10 * high


@pytest.mark.parametrize(("sigma", "steps", "order"), [(0.7, 3, 4), (1.5, 2, 6)])
def test_a_divergence_is_that_of_an_enumeration_of_steps(sigma: float, steps: int, order: int) -> None:
    """E[(mean of ratios)^n] over all choices of n steps: a step chosen j times has exp(j (j-1) / (2 s^2))."""
    total = math.fsum(
        math.exp(sum(j * (j - 1) for j in map(choice.count, range(steps))) / (2.0 * sigma**2))
        for choice in itertools.product(range(steps), repeat=order)
    )
    expected = math.log(total / steps**order) / (order - 1)
    found = divergence(sigma=sigma, steps=steps, renyi_order=order)
    assert expected * (1.0 - 1e-12) <= found <= expected * (1.0 + 1e-9)


def test_one_step_has_the_divergence_of_a_gaussian_by_quadrature() -> None:
    sigma, order = 1.3, 3

    def density(x: float) -> float:
        ratio = (order * (2.0 * x - 1.0) - x * x) / (2.0 * sigma**2)
        return math.exp(ratio) / (sigma * math.sqrt(2.0 * math.pi))

    moment, _ = quad(density, -30.0, 40.0, epsabs=0.0, epsrel=1e-12)
    expected = math.log(moment) / (order - 1)
    assert divergence(sigma=sigma, steps=1, renyi_order=order) == pytest.approx(expected, rel=1e-9)


def test_epochs_add_up() -> None:
    one, many = (divergence(sigma=1.0, steps=100, renyi_order=8, epochs=epochs) for epochs in (1, 7))
    assert many == pytest.approx(7.0 * one, rel=1e-12)
