"""Both ends of Poisson sampling by Fourier transforms, against exact profiles and the brackets of grids."""

import math
import random
from typing import Any

import mpmath
import numpy as np
import pytest

from privcore.allocation.poisson import PoissonCertified
from privcore.allocation.problems import Poisson, PoissonEpsilon
from privcore.answer import Answer
from privcore.likelihood_ratio import fourier
from privcore.likelihood_ratio.fourier import SPACING, epsilon_by_sums
from privcore.likelihood_ratio.lattice import _cells, step_on_lattice
from privcore.likelihood_ratio.profile import Direction

DIGITS = 40
"""Decimals of the exact profile of one step, far below the slack of the bounds."""


def profile(s: float, rate: float, epsilon: float, direction: str) -> mpmath.mpf:
    """Return delta of one Poisson-sampled Gaussian step."""
    s_, q, kappa = mpmath.mpf(s), mpmath.mpf(rate), mpmath.e ** mpmath.mpf(epsilon)
    ratio = kappa if direction == "remove" else 1 / kappa
    if ratio <= 1 - q:
        return mpmath.mpf(0) if direction == "add" else 1 - kappa
    z = (mpmath.log((ratio - (1 - q)) / q) + s_ * s_ / 2) / s_
    if direction == "remove":
        present = (1 - q) * mpmath.ncdf(-z) + q * mpmath.ncdf(s_ - z)
        return present - kappa * mpmath.ncdf(-z)
    return mpmath.ncdf(z) - kappa * ((1 - q) * mpmath.ncdf(z) + q * mpmath.ncdf(z - s_))


def answer(asked: Poisson, **options: float) -> Answer:
    return PoissonCertified(**options).answer(asked, seed=0)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_one_step_has_ends_just_beside_the_exact_epsilon(seed: int, direction: str) -> None:
    draw = random.Random(seed)
    s, rate = 10 ** draw.uniform(-1.0, 0.6), 10 ** draw.uniform(-2.5, -0.02)
    delta = 10 ** draw.uniform(-14.0, -2.5)
    lower, upper = epsilon_by_sums(s, rate, 1, delta, direction)
    with mpmath.workdps(DIGITS):
        assert profile(s, rate, upper, direction) <= delta
        assert lower == 0.0 or profile(s, rate, lower, direction) >= delta
        if direction == "add":  # near -ln(1 - rate), the tail falls faster than a lattice shows
            assert upper < -math.log1p(-rate) * 1.01
            return
        below = upper * (1.0 - 1e-3) - 3.0 * SPACING  # three points of the lattice
        assert below < 0.0 or profile(s, rate, below, direction) > delta


@pytest.mark.parametrize("seed", range(12))
def test_many_steps_have_ends_that_meet_a_narrow_bracket_of_grids(seed: int) -> None:
    draw = random.Random(seed)
    sigma, rate = 10 ** draw.uniform(-0.3, 0.6), 10 ** draw.uniform(-3.0, -0.3)
    fields: dict[str, Any] = {
        "sigma": sigma,
        "sampling_probability": rate,
        "steps": draw.choice([2, 3, 10, 100, 3000]),
        "delta": 10 ** draw.uniform(-12.0, -2.0),
        "adjacency": draw.choice(["add-remove", "remove", "add"]),
    }
    asked = PoissonEpsilon.from_fields(fields)
    narrow = answer(asked, tolerance=1.1e-3)  # too wide for sums to be used
    lower, upper = epsilon_by_sums(1.0 / sigma, rate, asked.steps, asked.at, asked.adjacency)
    assert upper >= narrow.lower
    assert lower <= narrow.upper
    assert upper <= narrow.upper * (1.0 + 1e-3) + 3.0 * SPACING
    both = answer(asked)
    assert narrow.lower <= both.upper <= min(upper, narrow.upper * (1.0 + 1e-3))
    assert both.lower <= narrow.upper


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_ends_hold_if_much_of_the_mass_is_outside_of_the_window(seed: int, direction: Direction) -> None:
    draw = random.Random(seed)
    s, rate, times = (
        10 ** draw.uniform(-0.5, 0.2),
        10 ** draw.uniform(-2.0, -0.5),
        draw.choice([10, 100, 1000]),
    )
    delta, end = 10 ** draw.uniform(-7.0, -2.0), 20.0
    coarse = step_on_lattice(s, rate, end, direction, points=2000, most=2**18)
    step = step_on_lattice(s, rate, end, direction, negative=40, most=2**18, both=True)
    assert coarse is not None
    assert step is not None
    assert step.below is not None
    epsilon, tau = fourier._chernoff(coarse, times, delta)
    whole = fourier._Window.of(coarse, times, tau)
    found = []
    for below, above in [(1.0, 1.0), (1.0, 0.1), (0.1, 1.0), (0.1, 0.1), (0.3, 0.3), (0.02, 0.5)]:
        low, high = epsilon - below * (epsilon - whole.low), epsilon + above * (whole.high - epsilon)
        window = fourier._Window(low, high, whole.orders)
        lower = fourier._Tail.of(step.below, times, tau, window).epsilon_lower(delta)
        found.append((lower, fourier._Tail.of(step, times, tau, window).epsilon_upper(delta)))
    least, most = found[0]
    assert 0.0 < least < most < least * 1.01
    for lower, upper in found[1:]:
        assert lower <= least * (1.0 + 1e-6)
        assert upper >= most * (1.0 - 1e-6)


def test_a_large_epsilon_beyond_the_range_of_ratios_has_an_upper_end() -> None:
    asked = PoissonEpsilon.from_fields(
        {"sigma": 0.653, "steps": 20_000, "sampling_probability": 0.08393, "delta": 1e-5}
    )
    assert 507.20 < answer(asked).upper < 507.21  # without sampling: 24,400


def test_runs_outside_of_the_range_have_no_ends() -> None:
    assert epsilon_by_sums(1.0, 0.5, 10**7, 1e-5, "remove") == (0.0, math.inf)
    assert epsilon_by_sums(100.0, 0.5, 10, 1e-5, "remove") == (0.0, math.inf)
    assert epsilon_by_sums(1.0, 1.0, 10, 1e-5, "remove") == (0.0, math.inf)


@pytest.mark.parametrize(
    ("s", "rate", "delta"),
    [
        (19.8, 0.999, 1.1e-100),
        (19.8, 0.01, 1e-90),
        (20.5, 0.5, 1e-77),
        (18.0, 0.5, 1.1e-100),
        (21.0, 0.5, 1e-70),
    ],
)
def test_masses_that_doubles_lose_are_not_left_out_of_an_upper_end(
    s: float, rate: float, delta: float
) -> None:
    """Masses of P were products of masses of Q, which are 0 in doubles, and ratios up to e^650."""
    lower, upper = epsilon_by_sums(s, rate, 1, delta, "add-remove")
    with mpmath.workdps(400):
        assert upper == math.inf or profile(s, rate, upper, "remove") <= delta
        assert lower == 0.0 or profile(s, rate, lower, "remove") >= delta
    asked = PoissonEpsilon.from_fields(
        {"sigma": 1.0 / s, "steps": 1, "sampling_probability": rate, "delta": delta}
    )
    with mpmath.workdps(400):
        assert profile(s, rate, answer(asked).upper, "remove") <= delta


@pytest.mark.parametrize("left", [20.0, 30.0, 37.0])
def test_wide_cells_far_out_are_integrated_to_the_counted_precision(left: float) -> None:
    y = np.exp(0.5 * np.array([left, left + 0.9]) - 0.125)
    cut = (np.log(y) + 0.125) / 0.5
    mass, moment, error = _cells(0.5, y, cut)
    with mpmath.workdps(400):
        a, b, s = mpmath.mpf(float(cut[0])), mpmath.mpf(float(cut[1])), mpmath.mpf("0.5")
        exact = mpmath.ncdf(-a) - mpmath.ncdf(-b)
        raised = mpmath.e ** (s * s / 2 - s * a) * (mpmath.ncdf(s - a) - mpmath.ncdf(s - b))
        assert abs(mass[1] / exact - 1) <= error
        assert abs(moment[1] / (y[0] * (raised - exact)) - 1) <= error


def test_extremes_warn_of_nothing_and_take_no_time() -> None:
    for s, rate, times, adjacency in [
        (15.0, 0.999, 1, "add"),
        (1e-4, 0.5, 1000, "add-remove"),
        (1e-6, 0.01, 10**6, "remove"),
        (4.5, 1e-4, 10**5, "add-remove"),
    ]:
        lower, upper = epsilon_by_sums(s, rate, times, 1e-5, adjacency)
        assert lower <= upper
        assert upper > 0.0
