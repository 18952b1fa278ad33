"""Bounds of the minimum of phi, for drawn outputs, and which outputs have no bound."""

import math

import numpy as np
import pytest

from privcore.likelihood_ratio.allocated.losses import Participation, spread_losses
from privcore.likelihood_ratio.allocated.saddle import Saddle, saddle
from privcore.likelihood_ratio.allocated.tails import gap_of, minima
from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.steps import GaussianStep


def lattice(sigma: float, choice: Participation) -> tuple[Array, Array, Saddle]:
    """Return masses and ratios of one step, and sums near a threshold of the direction add."""
    base = GaussianStep(sigma).ratio(Resolution(fineness=0.05, tail=1e-12)).upper
    centre = saddle(base, choice, "add", delta=1e-5)
    losses = spread_losses(base, centre.rate, 0.3 * centre.deviation / math.sqrt(choice.steps))
    return losses.moments[0], losses.moments[1] / losses.moments[0], centre


def smallest(x: Array, k: int) -> float:
    """Return the infimum of phi; minus infinity if more than t - k ratios are 0."""
    if np.sum(x > 0.0) < k:
        return -math.inf
    low, high = -60.0, 60.0
    for _ in range(200):
        u = 0.5 * (low + high)
        mean = float(np.sum(x / (x + math.exp(-u))))
        low, high = (u, high) if mean < k else (low, u)
    return float(np.sum(np.log1p(math.exp(high) * x))) - k * high


@pytest.mark.parametrize(("sigma", "steps", "k"), [(0.5, 3, 2), (0.7, 10, 9), (1.0, 10, 2), (5.0, 20, 5)])
def test_one_of_the_bounds_holds_for_drawn_outputs(sigma: float, steps: int, k: int) -> None:
    choice = Participation(participations=k, steps=steps, epochs=1)
    p, x, centre = lattice(sigma, choice)
    found, rng = minima(p, x, choice, centre), np.random.default_rng(3)
    failed = 0
    for _ in range(400):
        places = rng.choice(x.size, size=steps, p=p / p.sum())
        bounds = [float(np.sum(floor.least[places])) - floor.less for floor in found.floors]
        failed += smallest(x[places], k) < min(bounds) - gap_of(choice, centre) - 1e-9
    assert failed <= 400 * found.missed + 5.0 * math.sqrt(400 * found.missed)


def test_unlikely_outputs_without_a_bound_are_counted() -> None:
    """Two of three ratios are 0: R = 0, although no bound says so."""
    choice = Participation(participations=2, steps=3, epochs=1)
    p, x, centre = lattice(0.5, choice)
    assert x[0] == 0.0
    found = minima(p, x, choice, centre)
    places = np.array([0, 0, x.size // 2])
    assert all(math.isfinite(float(np.sum(floor.least[places])) - floor.less) for floor in found.floors)
    assert 3.0 * p[0] ** 2 * (1.0 - p[0]) <= found.missed <= 1e-6


def test_tiny_ratios_lower_every_bound_at_large_rates_by_the_same_amount() -> None:
    """The credit for fewer tiny ratios than steps without participation cancels that of each of them."""
    choice = Participation(participations=2, steps=3, epochs=1)
    p, x, centre = lattice(0.5, choice)
    found = minima(p, x, choice, centre)
    last, before = found.floors[-1], found.floors[-2]
    one_tiny = np.array([0, x.size - 1, x.size - 1])
    values = [float(np.sum(floor.least[one_tiny])) - floor.less for floor in (last, before)]
    assert values[0] == pytest.approx(values[1], abs=1e-3)
