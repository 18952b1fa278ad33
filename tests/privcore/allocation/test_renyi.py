"""Renyi divergences of allocation against reference values, an enumeration, and quadratures."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from privcore import DomainError, Point, evaluate, find, find_problem
from privcore.allocation.moments import allocation_moments


def ends(**fields: float | str) -> tuple[float, float]:
    """Return both ends."""
    asked = find_problem("allocation-renyi").from_fields(fields)
    found = evaluate(Point(problem=asked, method=find("allocation.renyi")()))
    assert found.ok
    return found.lower, found.upper


def divergence(**fields: float) -> float:
    """Return the upper end; the lower end is at most 1e-9 below it."""
    lower, upper = ends(**fields)
    assert upper * (1.0 - 1e-9) <= lower <= upper
    return upper


def integrated(sigma: float, steps: int, participations: int, order: float, direction: str) -> float:
    """Return the divergence of k of t for t <= 3 by the trapezoidal rule in all outputs, exact to 1e-12."""
    s = 1.0 / sigma
    z = np.arange(-11.0 - order * s, 11.0 + order * s, 0.1 if steps == 2 else 0.2)
    density = np.exp(-0.5 * z * z)
    ratios = [np.exp(s * each - 0.5 * s * s) for each in np.meshgrid(*[z] * steps, sparse=True)]
    weights = math.prod(np.meshgrid(*[density / density.sum()] * steps, sparse=True))
    draws = list(itertools.combinations(ratios, participations))
    ratio = sum(math.prod(draw) for draw in draws) / len(draws)
    if direction == "add":
        weights, ratio = weights * ratio, 1.0 / ratio
    if order == 1.0:
        return float(np.sum(weights * ratio * np.log(ratio)))
    return math.log(float(np.sum(weights * ratio**order))) / (order - 1.0)


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


@pytest.mark.parametrize(
    ("sigma", "steps", "participations", "order", "direction", "width"),
    [
        (1.0, 2, 1, 2.5, "remove", 0.01),
        (1.0, 2, 1, 2.5, "add", 0.01),
        (1.0, 2, 1, 1.0, "remove", 0.01),
        (1.0, 2, 1, 1.0, "add", 0.01),
        (0.6, 2, 1, 4.0, "add", 0.01),
        (1.3, 3, 1, 1.5, "add", 0.01),
        (0.3, 2, 1, 3.75, "remove", 0.01),
        (20.0, 3, 1, 30.5, "remove", 0.01),
        (1.3, 3, 2, 2.0, "remove", 1e-7),
        (1.3, 3, 2, 2.5, "remove", 0.2),
        (1.3, 3, 2, 2.5, "add", 0.2),
        (1.3, 3, 2, 1.0, "add", 0.3),
    ],
)
def test_every_order_and_direction_is_enclosed_by_quadrature(
    sigma: float, steps: int, participations: int, order: float, direction: str, width: float
) -> None:
    whole = int(order)
    lower, upper = ends(
        sigma=sigma,
        steps=steps,
        participations=participations,
        renyi_order=whole,
        order_fraction=order - whole,
        adjacency=direction,
    )
    exact = integrated(sigma, steps, participations, order, direction)
    assert lower <= exact * (1.0 + 1e-11)
    assert exact * (1.0 - 1e-11) <= upper <= lower * (1.0 + width)


def test_both_directions_are_the_larger_one() -> None:
    fields = {"sigma": 0.5, "steps": 100, "renyi_order": 4}
    remove, add, both = (ends(**fields, adjacency=a) for a in ("remove", "add", "add-remove"))
    assert add[1] < remove[0]
    assert both == remove == ends(**fields)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_participation_in_every_step_is_a_gaussian_of_more_steps(direction: str) -> None:
    lower, upper = ends(
        sigma=2.0, steps=7, participations=7, epochs=3, renyi_order=2, order_fraction=0.5, adjacency=direction
    )
    assert lower <= 7 * 3 * 2.5 / (2.0 * 2.0**2) <= upper <= lower * (1.0 + 1e-12)


def test_brackets_between_whole_orders_meet_those_of_the_orders() -> None:
    """Order 2 by the bracket of the ratio, at a fraction of 1e-9, is order 2 by the power of a series."""
    for sigma, steps in ((1.0, 1000), (2.0, 10**6)):
        exact = ends(sigma=sigma, steps=steps, renyi_order=2)
        near = ends(sigma=sigma, steps=steps, renyi_order=2, order_fraction=1e-9)
        assert near[0] <= exact[1] * (1.0 + 1e-6)
        assert exact[0] <= near[1] <= near[0] * 1.011


def test_a_question_states_its_direction() -> None:
    with pytest.raises(DomainError, match="Expected adjacency for allocation-renyi: add-remove"):
        find_problem("allocation-renyi").asked({"sigma": 1.0, "steps": 10, "renyi_order": 2})


@pytest.mark.parametrize(("sigma", "fraction"), [(0.5, 2.3e-16), (0.5, 4e-15), (1.0, 1e-14), (1.0, 1e-12)])
def test_orders_barely_above_1_keep_their_digits(sigma: float, fraction: float) -> None:
    """The divergences of order 1 by an integral of 40 digits."""
    truth = {0.5: 1.4999279, 1.0: 0.2986545}[sigma]
    low, high = ends(sigma=sigma, steps=2, renyi_order=1, order_fraction=fraction, adjacency="remove")
    assert low <= truth * (1.0 + 1e-6)
    assert high >= truth * (1.0 - 1e-6)


def test_a_moment_beyond_the_doubles_leaves_the_upper_end_alone() -> None:
    low, high = ends(sigma=1.0 / 13.0, steps=2, renyi_order=3, order_fraction=0.5, adjacency="remove")
    assert low <= 295.057 <= high


@pytest.mark.parametrize("curve", ["2:1,3:1e308", "2:1e308,3:1e308"])
def test_huge_divergences_prove_little_instead_of_privacy(curve: str) -> None:
    """Gaussian noise 1 has R_2 = 1 and R_3 = 1.5, and 1 of 3 an epsilon of at least 3.3046."""
    asked = find_problem("renyi-allocation-epsilon").from_fields(
        {"renyi_curve": curve, "steps": 3, "delta": 1e-5}
    )
    assert evaluate(Point(problem=asked, method=find("allocation.curve")())).upper >= 3.3046
