"""Conditional moments of the ratio of k out of t: lattices, transforms, parabolas, small ratios."""

import itertools
import math
import random

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from privcore.likelihood_ratio.allocated import ends
from privcore.likelihood_ratio.allocated.losses import (
    Circle,
    Losses,
    Participation,
    log_total,
    overlaps,
    rounded_losses,
    spread_losses,
    sums,
)
from privcore.likelihood_ratio.allocated.saddle import saddle
from privcore.likelihood_ratio.allocated.tails import (
    few_uncertain,
    floor,
    large_means,
    likeliest,
    small_ratios,
)
from privcore.likelihood_ratio.distribution import RatioDistribution, Resolution
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.steps import GaussianStep

BASE = RatioDistribution(x=np.array([0.25, 1.0, 2.5, 4.0]), p=np.array([0.4, 0.38, 0.18, 0.04]) / 1.09)


def of(*means: float) -> tuple[Array, Array, Array]:
    """Return the moments of one cell as arrays."""
    mass, mean, square = (np.array([moment]) for moment in means)
    return mass, mean, square


@pytest.mark.parametrize("rate", [0.9, 0.3, 0.01])
def test_the_spread_to_the_lattice_keeps_the_mean_and_raises_convex_means(rate: float) -> None:
    losses = spread_losses(BASE, rate, 0.3)
    x = losses.moments[1] / losses.moments[0]
    np.testing.assert_allclose(np.log1p(rate * (x - 1.0)), losses.index * losses.spacing, atol=1e-12)
    assert losses.moments[1].sum() == pytest.approx(float(BASE.p @ BASE.x), rel=1e-14)
    for kappa in (0.1, 0.5, 1.7, 3.0):
        spread = float(losses.moments[0] @ np.maximum(x - kappa, 0.0))
        assert spread >= float(BASE.p @ np.maximum(BASE.x - kappa, 0.0)) - 1e-15


def test_rounded_losses_keep_mass_mean_and_expected_loss_and_lower_convex_means() -> None:
    losses = rounded_losses(BASE, 0.3, 0.5)
    np.testing.assert_allclose(losses.moments.sum(axis=1), [BASE.p.sum(), BASE.p @ BASE.x], rtol=1e-15)
    exact = float(BASE.p @ np.log1p(0.3 * (BASE.x - 1.0)))
    assert losses.moments[0] @ losses.index * losses.spacing == pytest.approx(exact, rel=1e-13)
    x = losses.moments[1] / losses.moments[0]
    for kappa in (0.1, 0.5, 1.7, 3.0):
        rounded = float(losses.moments[0] @ np.maximum(x - kappa, 0.0))
        assert rounded <= float(BASE.p @ np.maximum(BASE.x - kappa, 0.0)) + 1e-15


def enumerated(losses: Losses, choice: Participation, circle: Circle) -> list[dict[tuple[int, int], float]]:
    """Return the three moments at all sums and places, by enumeration of the outputs of one epoch."""
    x = losses.moments[1] / losses.moments[0]
    places = 2 * circle.degree + 2 if circle.degree else 1
    found: list[dict[tuple[int, int], float]] = [{}, {}, {}]
    for outputs in itertools.product(range(x.size), repeat=choice.steps):
        at = list(outputs)
        p = float(np.prod(losses.moments[0][at]))
        chosen = list(itertools.combinations(x[at], choice.participations))
        ratio = float(np.mean([np.prod(each) for each in chosen]))
        angle = 2.0 * math.pi * (np.arange(places) / places - circle.turn(losses.chance)[at].sum())
        degrees = np.arange(circle.degree + 1)
        kernel = np.cos(np.multiply.outer(angle, degrees)) @ circle.weights / places
        assert kernel.min() >= -1e-15
        for moment, place in itertools.product(range(3), range(places)):
            key = (int(losses.index[at].sum()), place)
            found[moment][key] = found[moment].get(key, 0.0) + p * ratio**moment * float(kernel[place])
    return found


@pytest.mark.parametrize("degree", [0, 3])
@pytest.mark.parametrize("participations", [2, 3])
def test_the_transforms_give_the_moments_of_all_outputs(participations: int, degree: int) -> None:
    losses = spread_losses(BASE, 0.4, 0.5)
    choice = Participation(participations=participations, steps=4, epochs=1)
    circle = Circle(degree=degree, circumference=1.3)
    first = int(4 * losses.index[0])
    for moment, exact in enumerate(enumerated(losses, choice, circle)):
        found = sums(losses, moment, choice, tilt=0.7, first=first, size=64, circle=circle)
        factor = np.exp(found.scale - found.tilt * losses.spacing * (first + np.arange(64)))
        values = np.zeros_like(found.tilted)
        for (index, place), value in exact.items():
            values[place, index - first] = value / factor[index - first]
        slack = found.error + found.relative * values + 1e-15
        assert np.all(np.abs(found.tilted - values) <= slack)
        total = sum(value * math.exp(0.7 * losses.spacing * index) for (index, _), value in exact.items())
        assert log_total(losses, moment, choice, 0.7)[0] == pytest.approx(math.log(total), abs=1e-12)


def test_epochs_are_convolved() -> None:
    losses = spread_losses(BASE, 0.4, 0.5)
    one, two = (
        sums(
            losses,
            2,
            Participation(participations=2, steps=3, epochs=epochs),
            tilt=0.0,
            first=epochs * 3 * int(losses.index[0]),
            size=128,
            circle=Circle(degree=0, circumference=1.0),
        )
        for epochs in (1, 2)
    )
    twice = np.convolve(one.tilted[0], one.tilted[0])[:128]
    np.testing.assert_allclose(two.tilted[0], twice, atol=two.error + 1e-15)


def test_the_overlap_of_two_draws_is_hypergeometric() -> None:
    for steps, k in [(10, 3), (5, 4), (6, 6)]:
        o, ways = overlaps(steps, k)
        assert np.exp(ways).sum() == pytest.approx(1.0)
        assert float(np.exp(ways) @ o) == pytest.approx(k * k / steps)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(40))
def test_parabolas_lie_above_the_hinges_wherever_the_ratio_may_be(seed: int) -> None:
    rng = random.Random(seed)
    m, most = math.exp(rng.uniform(-4, 3)), math.exp(rng.uniform(-1, 4))
    second = m * m * (1.0 + math.exp(rng.uniform(-12, 6)))
    y = np.concatenate((np.linspace(0.0, most, 4001), [1.0]))
    y = y[y <= most]
    found = ends.parabolas_above(*of(1.0, m, second), most=np.array([most]))
    a, b, c = (float(part[0]) for part in found.all)
    assert np.all(a + b * y + c * y * y >= np.maximum(y - 1.0, 0.0) - 1e-12 * (1.0 + a))
    y = np.concatenate((np.linspace(0.0, 3.0 * m + 3.0, 4001), [1.0]))
    a, b, c = (float(part[0]) for part in ends.parabolas_below(*of(1.0, m, second)).all)
    assert np.all(a + b * y + c * y * y >= np.maximum(1.0 - y, 0.0) - 1e-12 * (1.0 + a))


def test_a_parabola_is_as_good_as_the_mean_and_the_variance_allow() -> None:
    """The two points 1 -+ r with the given moments attain the bound (Scarf 1958)."""
    parts = [
        float(part[0])
        for part in ends.parabolas_above(*of(1.0, 0.9, 0.9**2 + 0.04), most=np.array([np.inf])).all
    ]
    r = math.sqrt(0.04 + 0.01)
    assert parts[0] + parts[1] * 0.9 + parts[2] * 0.85 == pytest.approx(0.5 * (r - 0.1))


@pytest.mark.parametrize("seed", range(10))
def test_no_number_of_participations_is_likelier_than_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chances = rng.random(rng.integers(1, 12)) ** rng.integers(1, 4)
    assert number(chances).max() <= likeliest(float(np.sum(chances * (1.0 - chances))))


@pytest.mark.parametrize("seed", range(10))
def test_the_expected_number_is_least_likely_for_equal_chances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(3, 12))
    k = int(rng.integers(1, steps))
    odds = rng.random(steps) ** rng.integers(1, 8) + 1e-6
    low, high = 1e-9, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if np.sum(middle * odds / (1.0 + middle * odds)) < k else (low, middle)
    chances = low * odds / (1.0 + low * odds)
    assert number(chances)[k] >= binom.pmf(k, steps, k / steps) * (1.0 - 1e-9)


def number(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distribution of the number of participations."""
    pmf = np.ones(1)
    for chance in chances:
        pmf = np.convolve(pmf, [1.0 - chance, chance])
    return pmf


def simulated(
    choice: Participation, rate: float, sigma: float, count: int
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Return drawn ratios, sums of losses, variances of the participations, and whether P was drawn."""
    rng = np.random.default_rng(7)
    z = rng.standard_normal((count, choice.steps))
    used = np.arange(count) % 2 == 1
    z[used, : choice.participations] += 1.0 / sigma
    x = np.exp(z / sigma - 0.5 / sigma**2)
    chance = rate * x / (1.0 - rate + rate * x)
    loss = np.log1p(rate * (x - 1.0)).sum(axis=1)
    return simulated_ratio(choice, x), loss, np.sum(chance * (1.0 - chance), axis=1), used


def simulated_ratio(choice: Participation, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ratio of one epoch for ratios of the steps, shape (samples, steps)."""
    e = np.zeros((x.shape[0], choice.participations + 1))
    e[:, 0] = 1.0
    for step in range(choice.steps):
        e[:, 1:] += x[:, [step]] * e[:, :-1].copy()
    ratio: NDArray[np.float64] = e[:, -1] / math.comb(choice.steps, choice.participations)
    return ratio


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("sigma", "steps", "k"), [(1.0, 10, 3), (0.6, 6, 2), (3.0, 12, 9)])
def test_exceptions_are_at_least_as_frequent_in_the_bounds_as_in_a_simulation(
    sigma: float, steps: int, k: int
) -> None:
    choice = Participation(participations=k, steps=steps, epochs=1)
    base = GaussianStep(sigma).ratio(Resolution(fineness=0.1, tail=1e-12)).upper
    for direction in ("remove", "add"):
        centre = saddle(base, choice, direction, delta=0.02)
        losses = spread_losses(base, centre.rate, 0.02)
        ratio, loss, variance, used = simulated(choice, centre.rate, sigma, 50_000)
        for epsilon, margin in itertools.product((0.2, 1.0), (0.0, 0.5)):
            if direction == "add":
                least = floor(choice, centre) - epsilon + margin
                bound = small_ratios(losses, choice, centre).probability(epsilon, least)
                events = ((ratio <= math.exp(-epsilon)) & (loss >= least))[~used]
            else:
                least, most = centre.sum - margin, 0.9 * centre.variance
                bound = few_uncertain(losses, choice, centre).probability(least, most)
                events = ((loss >= least) & (variance <= most))[used]
                means = large_means(losses, choice, centre)
                most = means.largest(epsilon) - margin
                large = ((ratio >= math.exp(epsilon)) & (loss <= most))[used]
                assert _at_least(large) <= means.probability(epsilon, most)
            assert _at_least(events) <= bound


def _at_least(events: NDArray[np.bool_]) -> float:
    """Return a frequency less five standard errors."""
    return float(events.mean() - 5.0 * events.std() / math.sqrt(events.size))


def test_the_ratio_is_at_most_that_of_certain_participation_times_the_likeliest_number() -> None:
    choice = Participation(participations=3, steps=10, epochs=1)
    for rate in (0.1, 0.5):
        ratio, loss, variance, _ = simulated(choice, rate, 0.8, 2_000)
        likely = np.array([likeliest(float(each)) for each in variance])
        assert np.all(ratio <= np.exp(loss) * likely / binom.pmf(3, 10, rate) * (1.0 + 1e-9))


@pytest.mark.parametrize(("sigma", "steps", "k"), [(0.5, 10, 3), (1.0, 12, 9), (5.0, 30, 2)])
def test_the_ratio_lies_between_a_power_of_the_mean_and_the_best_rate(
    sigma: float, steps: int, k: int
) -> None:
    choice = Participation(participations=k, steps=steps, epochs=1)
    rng = np.random.default_rng(8)
    x = np.exp(rng.normal(size=(500, steps)) / sigma - 0.5 / sigma**2)
    ratio = simulated_ratio(choice, x)
    assert np.all(ratio <= x.mean(axis=1) ** k * (1.0 + 1e-12))
    u = np.linspace(-15.0, 15.0, 3001)
    phi = np.log1p(np.exp(u)[:, None, None] * x).sum(axis=2) - k * u[:, None]
    even = k * math.log(k / steps) + (steps - k) * math.log1p(-k / steps)
    assert np.all(np.log(ratio) >= phi.min(axis=0) + even - 1e-4)


def test_equal_ratios_meet_both_bounds() -> None:
    choice = Participation(participations=3, steps=10, epochs=1)
    assert simulated_ratio(choice, np.full((1, 10), 1.5))[0] == pytest.approx(1.5**3, rel=1e-12)
    odds = 3.0 / 7.0 / 1.5
    even = 3.0 * math.log(0.3) + 7.0 * math.log(0.7)
    phi = 10.0 * math.log1p(odds * 1.5) - 3.0 * math.log(odds)
    assert phi + even == pytest.approx(3.0 * math.log(1.5), rel=1e-12)


def test_small_gaps_and_far_minima_are_bounded_where_noise_is_large() -> None:
    """The grid is finer where the tail is steep, and ends where a minimum beyond it is negligible."""
    choice = Participation(participations=2, steps=100, epochs=1)
    base = GaussianStep(10.0).ratio(Resolution(fineness=0.03, tail=1e-12)).upper
    centre = saddle(base, choice, "add", delta=1e-4)
    small = small_ratios(spread_losses(base, centre.rate, 3e-4), choice, centre)
    assert small.logs.shape[0] < 100
    assert small.missed < 1e-9
    least = floor(choice, centre)
    assert centre.sum < least - abs(centre.epsilon) < centre.sum + 0.3 * centre.deviation
