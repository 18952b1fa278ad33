"""Upper ends for steps with batches of a fixed size, against adversaries who adapt to the outputs."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from privcore.likelihood_ratio.batches import Aligned, Opposed, Zeroed
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution, Resolution
from privcore.likelihood_ratio.fixed_size.adaptive import (
    AdaptiveSteps,
    Lattice,
    _Later,
    _points,
    after,
    cells_of,
    dominating,
    lattice_of,
)
from privcore.likelihood_ratio.fixed_size.angles import Angle, crossings
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.profile import delta_lower, delta_upper, epsilon_lower, epsilon_upper
from privcore.likelihood_ratio.ratios import repeated

FINE = Resolution(fineness=0.02, tail=1e-15)
OUTPUTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
MASSES = WEIGHTS / math.sqrt(2.0 * math.pi)


def excess(step: Angle, kappa: float) -> float:
    """Return the divergence of a step as a sum over a grid of outputs and of values of H."""
    q, s, deviation = step.probability, step.s, step.s * step.across
    z, dz = np.linspace(-12.0, 16.0, 14_001, retstep=True)
    y, dy = (
        np.linspace(-9.0, 10.0, 381, retstep=True) if deviation else (np.zeros(1), math.sqrt(2.0 * math.pi))
    )
    first, second = (np.exp(m * s * z - 0.5 * (m * s) ** 2) for m in (step.first, step.second))
    h = np.exp(deviation * y - 0.5 * deviation * deviation)[:, None]
    mean = np.maximum(h * (first - kappa * second) - (1.0 - q) / q * (kappa - 1.0), 0.0)
    normal = [np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) for x in (y, z)]
    return q * float(normal[0] @ mean @ normal[1]) * float(dz) * float(dy)


@pytest.mark.parametrize("exchanged", [False, True], ids=["remove", "add"])
@pytest.mark.parametrize("cosine", [-1.0, -0.6, 0.0, 0.7, 1.0])
@pytest.mark.parametrize("threshold", [1.0, 1.05, 1.6])
def test_the_profile_of_an_angle_is_just_above_a_sum_over_its_outputs(
    cosine: float, threshold: float, exchanged: bool
) -> None:
    step = Angle.of(0.2, 0.8, cosine)
    step = step.exchanged if exchanged else step
    found, sums = float(step.excess(np.array([threshold]))[0]), excess(step, threshold)
    assert sums * (1.0 - 1e-5) - 1e-9 <= found <= sums * 1.02 + 1e-6


@pytest.mark.parametrize("rate", [0.02, 0.7, 9.0])
@pytest.mark.parametrize("slope", [-1.5, -1.2, -1.0, -0.4, 0.0, 1.0], ids=lambda part: f"{part:g}-of-rate")
def test_the_outputs_of_an_excess_end_where_bisection_finds_it(rate: float, slope: float) -> None:
    far, slope = 50.0 / rate, slope * rate
    goal = np.append(-np.inf, np.linspace(-30.0, 30.0, 61))
    (left,), (right,) = crossings(goal[None, :], rate, slope, np.array([far]))
    top = min(far, math.log(slope / (slope + rate)) / rate) if slope + rate < 0.0 else far
    for level, *ends in zip(goal, left, right, strict=True):
        for found, outer in zip(ends, (0.0, far), strict=True):
            low, high = outer, top  # the level is between its values, unless it is reached nowhere
            for _ in range(100):
                middle = 0.5 * (low + high)
                above = math.log(math.expm1(rate * middle)) + slope * middle > level
                low, high = (low, middle) if above else (middle, high)
            assert found == pytest.approx(low, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("threshold", [1.0, 1.01, 1.3, 3.0])
def test_with_opposed_gradients_it_is_the_profile_of_the_known_pairs(threshold: float) -> None:
    at = np.array([threshold])
    for step, ratio, direction in (
        (Angle.of(0.05, 0.9, 1.0), Opposed(0.05, 0.9), "remove"),
        (Angle.of(0.05, 0.9, -1.0).exchanged, Aligned(0.05, 0.9), "add"),
        (Angle.of(0.05, 0.9, -1.0), Aligned(0.05, 0.9), "remove"),
    ):
        known = delta_lower(ratio.bracket(FINE).lower, math.log(threshold), direction)
        assert known * (1.0 - 1e-9) <= float(step.excess(at)[0]) <= known * 1.001 + 1e-12


@pytest.mark.parametrize("direction", [0, 1], ids=["remove", "add"])
def test_the_profile_is_monotone_in_the_angle(direction: int) -> None:
    """So the pair of a cell of angles has the profiles of its two ends."""
    at = np.array([1.0, 1.001, 1.02, 1.2, 2.0])
    steps = [Angle.of(0.03, 0.7, cosine) for cosine in np.linspace(-1.0, 1.0, 9)]
    found = [(step.exchanged if direction else step).excess(at) for step in steps]
    for low, high in itertools.pairwise(reversed(found) if direction else found):
        assert np.all(low <= high * 1.01 + 1e-9)


def values_after(angle: int, probability: float, s: float, kappa: Array, later: Array) -> Array:
    """Return the profile with one more step whose other gradients are opposed (1) or equal (-1)."""
    shift = 2.0 * s if angle > 0 else 0.0
    log = np.log(kappa)
    found = np.zeros_like(kappa)
    for mean, weight in ((0.0, 1.0 - probability), (shift, probability)):
        z = OUTPUTS + mean
        a = 1.0 - probability + probability * np.exp(shift * z - 0.5 * shift * shift)
        other = shift - s
        b = 1.0 - probability + probability * np.exp(other * z - 0.5 * other * other)
        for mass, move in zip(MASSES, np.log(b / a), strict=True):
            found += weight * mass * np.interp(log + move, log, later)
    return found


@pytest.mark.parametrize("steps", [12, pytest.param(150, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("sigma", [1.2, 2.0])
def test_no_adversary_who_chooses_between_two_gradients_is_above_the_upper_end(
    sigma: float, steps: int
) -> None:
    """At every likelihood ratio so far, the best of both is chosen, by a programme on a fine grid."""
    probability, delta, s = 0.05, 1e-5, 1.0 / sigma
    kappa = np.exp(np.linspace(-20.0, 20.0, 8001))
    values = np.maximum(1.0 - kappa, 0.0)
    for _ in range(steps):
        values = np.maximum(*(values_after(angle, probability, s, kappa, values) for angle in (1, -1)))
    attained = float(np.log(kappa[np.argmax(values <= delta)]))
    upper = epsilon_upper(dominating(AdaptiveSteps(probability, s, steps, delta)), delta, "remove")
    below = repeated(Opposed(probability, s), steps).bracket(FINE).lower
    above = repeated(Zeroed(probability, s), steps).bracket(FINE).upper
    assert epsilon_lower(below, delta, "remove") <= attained + 0.01
    assert attained - 0.01 <= upper <= epsilon_upper(above, delta, "remove") * 1.01


@pytest.mark.thorough
@pytest.mark.parametrize("adjacency", ["remove", "add", "zero-out"])
def test_many_steps_are_within_a_percent_of_opposed_gradients(adjacency: str) -> None:
    probability, s, steps, delta = 256 / 60_000, 1.0 / 1.1, 2343, 1e-5
    law = dominating(AdaptiveSteps(probability, s, steps, delta))
    lower = epsilon_lower(repeated(Opposed(probability, s), steps).bracket(FINE).lower, delta, adjacency)
    upper = epsilon_upper(law, delta, adjacency)
    assert lower <= upper <= lower * (1.15 if adjacency == "add" else 1.003)
    for epsilon in (0.0, 1.0, 3.0, 6.0):
        known = repeated(Zeroed(probability, s), steps).bracket(FINE).upper
        assert delta_upper(law, epsilon, adjacency) <= delta_upper(known, epsilon, adjacency) * 1.02 + delta


@pytest.fixture(scope="module")
def lattice() -> Lattice:
    return lattice_of(cells_of(0.05, 0.7)[0].joined[0], 1e-12)


@pytest.mark.parametrize("direction", [0, 1], ids=["remove", "add"])
def test_a_joined_pair_is_above_its_cells_at_all_thresholds(lattice: Lattice, direction: int) -> None:
    cells = cells_of(0.05, 0.7)[direction]
    lattice = lattice_of(cells.joined[0], 1e-12)
    size = 2 * lattice.reach + 3
    values = [
        lattice.pair(side)[1].values(lattice.spacing, -lattice.reach - 1, size)
        for side in (cells.joined[5], *cells.alone[5:])
    ]
    for alone in values[1:]:
        assert np.all(alone <= values[0] * (1.0 + 1e-9) + 1e-15)


def test_the_values_of_a_pair_are_its_mean_excesses(lattice: Lattice) -> None:
    ratio, pair = lattice.pair(cells_of(0.05, 0.7)[0].joined[3])
    first, size = -lattice.reach - 1, 2 * lattice.reach + 3
    kappa = np.exp((first + np.arange(size)) * lattice.spacing)
    sums = [ratio.infinite + float(ratio.p @ np.maximum(ratio.x - each, 0.0)) for each in kappa[::50]]
    assert pair.values(lattice.spacing, first, size)[::50] == pytest.approx(sums, rel=1e-9, abs=1e-300)
    assert pair.total == pytest.approx(1.0, abs=1e-9)


def test_one_more_step_is_the_product_of_both_pairs(lattice: Lattice) -> None:
    (one, pair), (other, later) = (lattice.pair(side) for side in cells_of(0.05, 0.7)[0].joined[:2])
    margin = lattice.reach + 1
    first, size = int(later.index[0]) - 2 * margin, int(later.index[-1] - later.index[0]) + 4 * margin + 1
    values = later.values(lattice.spacing, first, size)
    found = after(pair.index, pair.mass, np.full(size - 2 * margin, pair.infinite), values, margin)
    for k in range(0, found.size, 97):
        kappa = math.exp((first + margin + k) * lattice.spacing)
        ratios = np.outer(one.x, other.x)
        mean = float(np.einsum("i,j,ij->", one.p, other.p, np.maximum(ratios - kappa, 0.0)))
        infinite = pair.infinite + later.infinite * (1.0 - pair.infinite)
        assert found[k] == pytest.approx(mean + infinite, rel=1e-9, abs=1e-18)


def test_a_step_shorter_than_a_unit_of_the_lattice_has_a_pair() -> None:
    law = dominating(AdaptiveSteps(1e-8, 2.5, 100, 1e-4))
    assert 0.0 <= epsilon_upper(law, 1e-4, "zero-out") < 1.0


def test_errors_larger_than_the_masses_are_beyond_the_range_of_doubles() -> None:
    with pytest.raises(LikelihoodRangeError):
        dominating(AdaptiveSteps(1e-9, 2.0, 3_000_000, 1e-12))


def test_the_bound_at_1_covers_errors_of_values_that_are_all_near_1() -> None:
    thresholds, bounds = _points(RatioDistribution(x=np.ones(1), p=np.ones(1), value_error=1e-3))
    assert thresholds[0] == 1.0
    assert 1e-3 <= bounds[0] <= 1.1e-3


def test_a_value_that_is_not_a_number_passes_no_comparison(lattice: Lattice) -> None:
    cells = cells_of(0.05, 0.7)[0]
    (ratio, pair), alone = lattice.pair(cells.joined[0]), [lattice.pair(side)[1] for side in cells.alone[:2]]
    later = _Later(ratio, lattice, alone, 1e-14)
    assert later.excess(pair, 1, 0.5) < 1.0
    assert not later.excess(replace(pair, mass=pair.mass * np.nan), 1, 0.5) < np.inf
