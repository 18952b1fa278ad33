"""Renyi divergences of allocation against reference values, an enumeration, and a quadrature."""

import itertools
import math

import pytest
from scipy.integrate import quad

from privcore import Point, evaluate, find, find_problem


def divergence(**fields: float) -> float:
    asked = find_problem("allocation-renyi").from_fields(fields)
    return evaluate(Point(problem=asked, method=find("allocation.renyi")())).upper


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
def test_divergences_are_the_reference_values_rounded_up(
    sigma: float, steps: int, order: int, expected: float
) -> None:
    found = divergence(sigma=sigma, steps=steps, renyi_order=order)
    assert expected * (1.0 - 1e-13) <= found <= expected * (1.0 + 1e-9)


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
