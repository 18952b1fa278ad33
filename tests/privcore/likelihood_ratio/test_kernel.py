"""Compiled kernels against exact rational arithmetic, pair by pair."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcore.likelihood_ratio.grid import all_pairs, coarsen, collect, spread
from privcore.numerics.rounding import UNIT


def random_law(seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.sort(np.exp(rng.normal(size=size) * rng.uniform(0.01, 4.0)))
    p = rng.exponential(size=size) * 10.0 ** -rng.uniform(0, 12, size=size)
    return x, p / p.sum()


def exact_cells(
    xa: np.ndarray, pa: np.ndarray, xb: np.ndarray, pb: np.ndarray, edges: np.ndarray, *, product: bool
) -> tuple[list[Fraction], list[Fraction]]:
    mass = [Fraction(0)] * edges.size
    moment = [Fraction(0)] * edges.size
    for x, p in zip(xa, pa, strict=True):
        for y, q in zip(xb, pb, strict=True):
            v = Fraction(x) * Fraction(y) if product else Fraction(x) + Fraction(y)
            cell = max(int(np.searchsorted(edges, float(v), side="right")) - 1, 0)
            mass[cell] += Fraction(p) * Fraction(q)
            moment[cell] += Fraction(p) * Fraction(q) * (v - Fraction(edges[cell]))
    return mass, moment


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_cell_holds_its_pairs_within_the_stated_rounding(
    seed: int, square: bool, product: bool
) -> None:
    xa, pa = random_law(seed, 24)
    xb, pb = (xa, pa) if square else random_law(seed + 100, 17)
    edges = np.concatenate(([0.0], np.sort(np.random.default_rng(seed).uniform(0.1, 8.0, size=30))))
    mass, moment = collect(xa, pa, xb, pb, edges, square, product)
    exact_mass, exact_moment = exact_cells(xa, pa, xb, pb, edges, product=product)
    u = 2.0 * (xa.size + xb.size + 16) * UNIT
    for k in range(edges.size):
        assert abs(Fraction(float(mass[k])) - exact_mass[k]) <= u * exact_mass[k]
        # the value of a pair is rounded once, which changes its mean by 2^-53 of the value
        top = float(exact_mass[k]) * (xa[-1] * xb[-1] if product else xa[-1] + xb[-1])
        slack = u * float(exact_moment[k]) + 8.0 * UNIT * top
        assert abs(float(Fraction(float(moment[k])) - exact_moment[k])) <= slack


@given(st.integers(0, 10_000), st.integers(2, 40))
def test_spreading_raises_every_call_price_and_keeps_mass_and_mean(seed: int, cells: int) -> None:
    x, p = random_law(seed, 30)
    rng = np.random.default_rng(seed)
    edges = np.concatenate(([0.0], np.sort(rng.uniform(x[0] / 2, x[-1], size=cells))))
    mass, moment = collect(x, p, np.zeros(1), np.ones(1), edges, False, False)
    q, beyond = spread(edges, mass, moment)
    assert q.sum() == pytest.approx(1.0, rel=1e-12)
    assert q @ edges + beyond == pytest.approx(p @ x, rel=1e-12)
    for kappa in np.concatenate((x, edges)):
        call = q @ np.maximum(edges - kappa, 0.0) + beyond
        assert call >= p @ np.maximum(x - kappa, 0.0) * (1.0 - 1e-12)
        put = q @ np.maximum(kappa - edges, 0.0)
        assert put >= p @ np.maximum(kappa - x, 0.0) * (1.0 - 1e-12)


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(4, 40))
def test_coarsening_lowers_every_call_price_and_keeps_mass_and_mean(seed: int, size: int, atoms: int) -> None:
    x, p = random_law(seed, size)
    y, q = coarsen(x, p, atoms)
    assert q.sum() == pytest.approx(1.0, rel=1e-12)
    assert q @ y == pytest.approx(p @ x, rel=1e-12)
    for kappa in x:
        assert q @ np.maximum(y - kappa, 0.0) <= p @ np.maximum(x - kappa, 0.0) + 1e-12 * (p @ x)


def test_all_pairs_are_ascending_and_complete() -> None:
    xa, pa = random_law(1, 7)
    xb, pb = random_law(2, 9)
    x, p = all_pairs(xa, pa, xb, pb, True)
    assert np.all(np.diff(x) >= 0.0)
    assert x.size == 63
    assert p @ x == pytest.approx((pa @ xa) * (pb @ xb), rel=1e-12)
