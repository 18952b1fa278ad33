"""The upper end for shuffled epochs that use all examples: steps of the proof, limits and adversaries."""

import itertools
import math

import numpy as np
import pytest

from privcore.likelihood_ratio.allocated import all_used, shuffled
from privcore.likelihood_ratio.allocated.all_used import (
    AllUsedAbove,
    WeightedStep,
    beyond_cap,
    moment,
    profile_above,
    weighted,
)
from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.potential import potential_of
from privcore.numerics.gaussian import gaussian_delta_bounds

FINE = Resolution(fineness=0.07, tail=1e-14)
TABLE = [  # steps 234, sigma 1.1, zero-out, remove: batch, epsilon, and the value of another programme
    (1024, 0.5, 0.010910, 0.04),
    (256, 0.5, 0.011508, 0.04),
    (256, 1.0, 0.0025559, 0.03),
    (256, 2.0, 2.007e-4, 0.05),
    (256, 3.0, 1.285e-5, 0.03),
    (32, 1.0, 0.0037725, 0.05),
]


@pytest.mark.parametrize(("batch", "epsilon", "value", "near"), TABLE)
def test_the_profile_is_near_that_of_another_programme(
    batch: int, epsilon: float, value: float, near: float
) -> None:
    found = profile_above(
        AllUsedAbove(1.0 / 1.1, 234, "zero-out", batch, 0.0), "remove", math.exp(epsilon), FINE
    )
    assert 0.98 * value <= found <= (1.0 + near) * value


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_huge_batches_have_the_bound_of_epochs_that_leave_out_an_example(
    epsilon: float, direction: str, relation: str
) -> None:
    kappa = math.exp(epsilon)
    leaving_out = shuffled.profile_above(
        shuffled.ShuffledAbove(0.8, 30, relation, 1.0), direction, kappa, FINE
    )
    found = profile_above(AllUsedAbove(0.8, 30, relation, 10**9, 0.0), direction, kappa, FINE)
    assert leaving_out * (1.0 - 1e-9) <= found <= leaving_out * 1.02


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_larger_batches_leave_a_smaller_bound_below_no_amplification(direction: str) -> None:
    found = [
        profile_above(AllUsedAbove(0.8, 30, "zero-out", b, 0.0), direction, math.exp(0.5), FINE)
        for b in (2, 16, 256, 4096)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] <= gaussian_delta_bounds(1.0 / 0.8, 0.5)[1] * 1.01


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_an_example_in_a_smaller_last_batch_has_no_amplification(direction: str) -> None:
    full, cut = (
        profile_above(AllUsedAbove(0.8, 30, "zero-out", 256, kept), direction, math.exp(0.5), FINE)
        for kept in (0.0, 0.25)
    )
    alone = 0.75 * full + 0.25 * gaussian_delta_bounds(1.0 / 0.8, 0.5)[1]
    assert alone * (1.0 - 1e-9) <= cut <= alone * 1.01


# ------------------------------------------------------------------------------------- the steps of the proof


def step_of(s: float, kappa: float, direction: str, batch: int = 2) -> WeightedStep:
    return all_used._step(
        AllUsedAbove(s, 3, "zero-out", batch), direction, kappa, Resolution(fineness=0.2, tail=1e-10)
    )


@pytest.mark.parametrize(("size", "rarity"), [(3, 1), (4, 1), (3, 2), (4, 4)])
def test_draws_with_replacement_have_the_factors_of_a_random_order_as_conditional_means(
    size: int, rarity: int
) -> None:
    """Of all places with the same draw, a random one keeps it."""
    joint = np.zeros((size, size))  # of the draw of a place, times L, if the order is the identity
    total = 0.0
    for draws in itertools.product(range(size), repeat=size):
        for kept in itertools.product((False, True) if rarity > 1 else (True,), repeat=size):
            p = math.prod(1.0 / rarity if k else 1.0 - 1.0 / rarity for k in kept) / size**size
            places = {j: [k for k in range(size) if kept[k] and draws[k] == j] for j in range(size)}
            held = {j: found for j, found in places.items() if found}
            p *= math.prod((j in found) / len(found) for j, found in held.items())
            p /= math.factorial(size - len(held))
            total += p
            for k in range(size):
                joint[k, draws[k]] += rarity * p * kept[k]
    hit = rarity * (1.0 - (1.0 - 1.0 / (rarity * size)) ** size)
    coupling = (size * hit - 1.0) / (size - 1.0)
    expected = (1.0 - coupling) / size + coupling * np.eye(size)
    assert total == pytest.approx(1.0 / math.factorial(size))
    assert joint / total == pytest.approx(expected)


def excess(first: float, second: float, level: float, step: WeightedStep) -> float:
    """The mean of (w D + w' D' + level)_+ for the discrete distribution of D and two weights."""
    x = second * step.one.x
    order = np.argsort(x)
    x, p = x[order], step.one.p[order]
    above = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    mean = np.append(np.cumsum((p * x)[::-1])[::-1], 0.0)
    at = -(level + first * step.one.x)
    k = np.searchsorted(x, at, side="right")
    return float(step.one.p @ (mean[k] - at * above[k]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_mean_over_all_orders_is_below_independent_weights_and_below_the_largest_of_their_variance(
    direction: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    step = step_of(float(rng.choice([0.4, 1.0])), math.exp(float(rng.choice([0.1, 1.0]))), direction)
    r = rng.dirichlet(np.full(4, 0.6)) * 4.0
    hit = 1.0 - 0.75**4
    coupling = (4.0 * hit - 1.0) / 3.0
    pairs = [1.0 + (0.5 * (a + b) - 1.0) / coupling for a in r for b in r]
    variance = (float(np.mean(r * r)) - 1.0) / (2.0 * coupling**2)
    assert np.var(pairs) == pytest.approx(variance)
    (_, law) = weighted(step, 1.0 / coupling, 3.0 / coupling, np.array([0.0, variance]))
    for level in (-3.0, -0.3, 0.0, 1.0):
        orders = [
            excess(float(np.mean(r[list(one)])), 2.0 - float(np.mean(r[list(one)])), level, step)
            for one in itertools.combinations(range(4), 2)
        ]
        independent = np.mean([excess(a, b, level, step) for a in pairs for b in pairs])
        largest = float(law.p @ potential_of(law).at(-level - law.x)) + law.beyond
        assert np.mean(orders) <= independent + 1e-12
        assert independent <= largest * (1.0 + 1e-9)


@pytest.mark.parametrize("s", [0.5, 1.0])
def test_moments_and_means_beyond_a_cap_are_above_those_of_populations(s: float) -> None:
    rng = np.random.default_rng(2)
    z = np.linspace(-12.0, 12.0, 4001)
    weight = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) * (z[1] - z[0])
    for _ in range(40):
        y = rng.choice([-1.0, 1.0, 0.0], 6) if rng.random() < 0.5 else rng.uniform(-1.0, 1.0, 6)
        y = y if rng.random() < 0.7 else np.array([-1.0] + [1.0] * int(rng.integers(1, 60)))
        dense = np.exp(s * y[:, None] * z - 0.5 * s * s * y[:, None] ** 2)
        mix = dense.mean(axis=0)
        r = dense / mix
        for q in (1.0, 2.0, 3.5):
            assert float(weight @ (mix * np.mean(r * r, axis=0) ** q)) - 1.0 <= moment(q, s) * (1.0 + 1e-6)
        for cap in (2.0, 5.0, 20.0):
            assert float(weight @ (mix * np.mean(np.maximum(r - cap, 0.0), axis=0))) <= beyond_cap(cap, s)


@pytest.mark.parametrize(("batch", "share"), [(2, 0.4), (60, 0.05), (2000, 0.01)])
def test_the_nodes_of_counts_are_above_a_binomial_distribution(batch: int, share: float) -> None:
    nodes, p, _ = all_used._poisson(batch * share)
    assert float(p.sum()) == pytest.approx(1.0)
    assert float(p @ nodes) == pytest.approx(batch * share)
    rng = np.random.default_rng(1)
    drawn = rng.binomial(batch, share, 20_000)
    for level in np.quantile(drawn, [0.1, 0.5, 0.9, 0.999]):
        low = float(np.mean(np.maximum(drawn - level, 0.0)))
        noise = 4.0 * float(np.std(np.maximum(drawn - level, 0.0))) / math.sqrt(20_000)
        assert low - noise <= float(p @ np.maximum(nodes - level, 0.0))


# --------------------------------------------------------------------- adversaries, by all arrangements

WIDTH = 0.14
GRID = np.arange(-7.0, 7.001, WIDTH)
OUTPUT = (GRID > 0.0).astype(int)


def divergence(s: float, kappa: float, batch: int, gradients: np.ndarray, direction: str) -> float:
    """The divergence of three steps; later gradients depend on the signs of earlier outputs.

    Args:
        s: Inverse noise multiplier.
        kappa: Threshold.
        batch: Size of a batch.
        gradients: A row for the first step, two for the second and four for the third; x is the first column.
        direction: `remove` or `add`.
    """
    size = 3 * batch
    arrangements = {
        tuple(frozenset(order[i * batch : (i + 1) * batch]) for i in range(3))
        for order in itertools.permutations(range(size))
    }
    both = []
    for used in (1.0, 0.0):
        g = gradients * np.append(used, np.ones(size - 1))
        total = np.zeros((GRID.size,) * 3)
        for first, second, third in arrangements:
            means = [s * g[:, sorted(each)].sum(axis=1) for each in (first, second, third)]
            one, two = means[0][0], means[1][1:3][OUTPUT]
            three = means[2][3:].reshape(2, 2)[OUTPUT][:, OUTPUT]
            last = np.exp(-0.5 * np.square(GRID - three[:, :, None]))
            total += (
                np.exp(-0.5 * np.square(GRID - one))[:, None, None]
                * np.exp(-0.5 * np.square(GRID - two[:, None]))[:, :, None]
                * last
            )
        both.append(total / len(arrangements) * (WIDTH / math.sqrt(2.0 * math.pi)) ** 3)
    p, q = both if direction == "remove" else both[::-1]
    return float(np.maximum(p - kappa * q, 0.0).sum())


@pytest.mark.thorough
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("batch", "tries"), [(1, 12), (2, 2)])
@pytest.mark.parametrize(("s", "epsilon"), [(0.4, 0.1), (0.8, 0.3), (1.0, 1.0)])
def test_no_adversary_is_above_the_bound(
    s: float, epsilon: float, batch: int, tries: int, direction: str
) -> None:
    rng, kappa = np.random.default_rng(4), math.exp(epsilon)
    bound = profile_above(AllUsedAbove(s, 3, "zero-out", batch, 0.0), direction, kappa, FINE)
    opposed = -np.ones((7, 3 * batch))
    opposed[:, 0] = 1.0
    tried = [opposed] + [rng.choice([-1.0, 1.0, 0.0], (7, 3 * batch)) for _ in range(tries)]
    most = max(divergence(s, kappa, batch, each, direction) for each in tried)
    assert 0.4 * bound < most <= bound
