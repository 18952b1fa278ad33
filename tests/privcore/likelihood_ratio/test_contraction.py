"""One step contracted to a lattice, against its exact stop-loss transform."""

import math
import random

import mpmath
import numpy as np
import pytest

from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.lattice import _cells, contracted

DIGITS = 60
"""Decimals of the exact transform; values go down to 1e-40."""


def ends(s: float, rate: float, negative: int, farthest: float) -> tuple[Array, Array]:
    """Return ends of cells of Y, of ratios 1 - rate + rate Y with equal spacing in logarithms, and cuts."""
    spacing = -math.log1p(-rate) / negative
    highest = math.log1p(rate * math.expm1(s * (farthest + 0.5 * s)))
    y = np.expm1(np.arange(1, negative + math.ceil(highest / spacing) + 1) * spacing) * ((1.0 - rate) / rate)
    return y, (np.log(y) + 0.5 * s * s) / s


def transform(s: mpmath.mpf, t: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return E(t - Y)_+ and E(Y - t)_+ of the lognormal Y with mean 1."""
    z = (mpmath.log(t) + s * s / 2) / s
    return t * mpmath.ncdf(z) - mpmath.ncdf(z - s), mpmath.ncdf(s - z) - t * mpmath.ncdf(-z)


def drawn(seed: int) -> tuple[float, Array, Array]:
    """Return an inverse noise multiplier, ends of cells, and the masses."""
    draw = random.Random(seed)
    s, rate = 10 ** draw.uniform(-1.0, 0.45), 10 ** draw.uniform(-3.0, -0.02)
    y, cut = ends(s, rate, draw.choice([3, 10, 40]) + round(40 * rate), draw.uniform(6.0, 11.0))
    found = contracted(s, cut, y, *_cells(s, y, cut))
    return s, y, np.zeros(0) if found is None else found


@pytest.mark.parametrize("seed", range(16))
def test_a_contracted_step_is_dominated_in_both_tails_at_every_threshold(seed: int) -> None:
    s, y, masses = drawn(seed)
    if not masses.size:
        pytest.skip("the cells are too wide for a contraction")
    used, at = np.flatnonzero(masses), np.append(0.0, y)
    near = {*used[:6], *used[-6:-1], *random.Random(seed).sample(list(used[:-1]), min(12, used.size - 1))}
    for place in map(int, near):
        for share in (0.0, 0.25, 0.5, 0.75):
            t = float(at[place] + share * (at[place + 1] - at[place]))
            if t > 0.0:
                with mpmath.workdps(DIGITS):
                    below, above = map(float, transform(mpmath.mpf(s), mpmath.mpf(t)))
                # Sums of positive terms; the ends of cells are rounded by 1e-15 of a cell's 1e-4 or more.
                assert math.fsum(masses[at < t] * (t - at[at < t])) <= below * (1.0 + 1e-10)
                assert math.fsum(masses[at > t] * (at[at > t] - t)) <= above * (1.0 + 1e-10)


def test_a_contraction_loses_no_mass_and_no_mean_and_less_variance_than_a_spread_adds() -> None:
    s, rate = 0.7, 0.1
    y, cut = ends(s, rate, 40, 8.0)
    mass, moment, error = _cells(s, y, cut)
    found = contracted(s, cut, y, mass, moment, error)
    assert found is not None
    at = np.append(0.0, y)
    assert 0.0 <= 1.0 - float(np.sum(found)) < 1e-7
    assert 0.0 <= 1.0 - float(np.sum(found * at)) < 1e-7
    moved = moment / np.diff(at)
    spread = mass + np.append(0.0, moved) - np.append(moved, 0.0)
    variance = math.expm1(s * s)
    lost = variance - float(np.sum(found * np.square(at - 1.0)))
    gained = float(np.sum(spread * np.square(at - 1.0))) - variance
    assert 0.0 < lost < gained


def test_cells_wider_than_the_law_have_no_contraction() -> None:
    y, cut = ends(0.05, 1e-3, 1, 8.0)
    assert contracted(0.05, cut, y, *_cells(0.05, y, cut)) is None


def test_most_drawn_steps_have_a_contraction() -> None:
    assert sum(drawn(seed)[2].size > 0 for seed in range(16)) >= 14
