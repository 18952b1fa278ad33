"""k-of-t allocation at drawn problems, against simulation with importance sampling."""

import itertools
import math
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from privcore import Point, evaluate, find
from privcore.allocation.problems import Allocation, AllocationDelta, AllocationEpsilon
from privcore.likelihood_ratio.allocated.losses import Participation
from privcore.likelihood_ratio.allocated.saddle import saddle
from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.steps import GaussianStep
from tests.benchmarks.bis import ERRORS, Estimate, answers

Array = NDArray[np.float64]
SAMPLES = 20_000
MOST_ERROR = 0.1
"""Largest relative standard error of a simulation."""


def elementary(x: Array, k: int) -> Array:
    """Return the means of the products of k of the ratios of every sample, shape (samples,)."""
    e = np.zeros((k + 1, x.shape[0]))
    e[0] = 1.0
    for step in range(x.shape[1]):
        # E_j of the first n + 1 ratios, each divided by the number of its terms
        share = np.arange(1, k + 1)[:, None] / (step + 1)
        e[1:] = np.where(share <= 1.0, e[1:] * (1.0 - share) + e[:-1] * share * x[:, step], 0.0)
    means: Array = e[k]
    return means


def tilted(
    rng: np.random.Generator, sigma: float, rate: float, tilt: float, shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Return ratios of steps drawn with a density tilted by the loss at a rate, and weights of outputs.

    The density is constant between the points of a grid, so the weights are exact.
    """
    edges = np.linspace(-15.0 - max(0.0, -tilt) / sigma, 15.0 + max(0.0, tilt) / sigma, 20_001)
    middle, width = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0]
    log = tilt * np.log1p(rate * np.expm1(middle / sigma - 0.5 / sigma**2)) - 0.5 * middle**2
    p = np.exp(log - log.max())
    p /= p.sum()
    cell = rng.choice(middle.size, size=shape, p=p)
    z = middle[cell] + width * (rng.random(shape) - 0.5)
    weights = np.sum(-0.5 * z**2 - 0.5 * math.log(2.0 * math.pi) - np.log(p[cell] / width), axis=1)
    return np.exp(z / sigma - 0.5 / sigma**2), np.exp(weights)


def simulated(asked: Allocation, epsilon: float, seed: int) -> tuple[float, float]:
    """Return an estimate of the divergence at an epsilon and its standard error."""
    sigma, steps, k = asked.sigma, asked.steps, asked.participations
    choice = Participation(participations=k, steps=steps, epochs=1)
    base = GaussianStep(sigma).ratio(Resolution(fineness=0.1, tail=1e-20)).upper
    side = 1.0 if asked.adjacency == "remove" else -1.0
    centre = saddle(base, choice, asked.adjacency, epsilon=side * epsilon)
    tilt = centre.slope + 1.0 if side > 0.0 else -centre.slope
    x, weights = tilted(np.random.default_rng(seed), sigma, centre.rate, tilt, (SAMPLES, steps))
    r = elementary(x, k)
    hinge = (
        np.maximum(r - math.exp(epsilon), 0.0) if side > 0.0 else np.maximum(1.0 - math.exp(epsilon) * r, 0.0)
    )
    found = hinge * weights
    return float(found.mean()), float(found.std() / math.sqrt(SAMPLES))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(200))
def test_the_divergences_at_both_ends_are_on_the_sides_of_delta(seed: int) -> None:
    rng = random.Random(seed)
    steps = rng.choice([3, 5, 10, 20, 50, 100])
    k = rng.randint(2, min(steps - 1, 20))
    sigma, delta = math.exp(rng.uniform(math.log(0.5), math.log(8.0))), 10.0 ** -rng.uniform(1, 9)
    direction = rng.choice(["remove", "add"])
    asked = AllocationEpsilon.from_fields(
        {"sigma": sigma, "steps": steps, "participations": k, "delta": delta, "adjacency": direction}
    )
    found = evaluate(Point(problem=asked, method=find("allocation.conditional")()))
    for epsilon, side in ((found.lower, 1.0), (found.upper, -1.0)):
        if epsilon > 0.0:
            mean, error = simulated(asked, epsilon, seed)
            assert error <= MOST_ERROR * mean
            assert side * (mean - delta) + 4.0 * error >= 0.0, (asked, found, epsilon, mean, error)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("peer", answers(), ids=lambda peer: f"{peer.sigma}-{peer.steps}-{peer.direction}")
def test_the_estimates_of_another_accountant_overlap_the_brackets(peer: Estimate) -> None:
    asked = AllocationDelta.from_fields(
        {
            "sigma": peer.sigma,
            "steps": peer.steps,
            "participations": peer.participations,
            "epsilon": peer.epsilon,
            "adjacency": peer.direction,
        }
    )
    found = evaluate(Point(problem=asked, method=find("allocation.conditional")()))
    room = ERRORS * peer.uncertainty
    assert found.lower - room <= peer.mean <= found.upper + room


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_simulated_ratio_is_the_mean_of_products(k: int) -> None:
    x = np.array([[0.5, 2.0, 1.5, 0.1]])
    exact = float(np.mean([math.prod(each) for each in itertools.combinations(x[0], k)]))
    assert elementary(x, k)[0] == pytest.approx(exact, rel=1e-14)
