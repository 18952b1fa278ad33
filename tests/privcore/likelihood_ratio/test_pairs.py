"""Ratios of one step with a random batch, against the definition on a fine grid of outputs."""

import itertools
import math
import random
from collections.abc import Callable
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
import scipy

from privcore.likelihood_ratio.batches import (
    Aligned,
    Copies,
    CountedDraws,
    Displaced,
    Opposed,
    Replaced,
    SignedSample,
    Zeroed,
)
from privcore.likelihood_ratio.batches import copies as binomial_counts
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, Resolution
from privcore.likelihood_ratio.parts import Part, _cells
from privcore.likelihood_ratio.profile import delta_lower, delta_upper
from privcore.likelihood_ratio.questions import Question
from privcore.likelihood_ratio.ratios import (
    Blend,
    Composed,
    Gaussian,
    OneOfSteps,
    Product,
    Ratio,
    Sampled,
    enclosed,
    product,
)
from privcore.likelihood_ratio.steps import Mixture

COARSE, FINE = Resolution(fineness=0.15, tail=1e-10), Resolution(fineness=0.03, tail=1e-15)
Terms = list[tuple[float, float]]


def divergence(p: Terms, q: Terms, kappa: float) -> float:
    """Return the hockey-stick divergence of two mixtures of (weight, mean), by a sum over a fine grid."""
    z = np.linspace(-15.0, 27.0, 600_001)
    excess = np.zeros_like(z)
    for weight, mean in [*p, *((-kappa * weight, mean) for weight, mean in q)]:
        excess += weight * np.exp(-0.5 * (z - mean) ** 2)
    return float(np.maximum(excess, 0.0).sum()) * float(z[1] - z[0]) / math.sqrt(2.0 * math.pi)


def mixed(q: float, mean: float) -> Terms:
    return [(1.0 - q, 0.0), (q, mean)]


def signed(q: float, s: float, kappa: float) -> float:
    return divergence(mixed(q, s), mixed(q, -s), kappa)


def replaced(q: float, s: float, kappa: float) -> float:
    if kappa < 1.0:
        return 1.0 - kappa + kappa * replaced(q, s, 1.0 / kappa)
    return divergence(mixed(q, 2.0 * s), [(1.0, 0.0)], kappa)


def zeroed(q: float, s: float, kappa: float) -> float:
    if kappa < 1.0:
        return divergence([(1.0, 0.0)], mixed(q, -s), kappa)
    return divergence(mixed(q, 2.0 * s), mixed(q, s), kappa)


def opposed(q: float, s: float, kappa: float) -> float:
    return divergence(mixed(q, 2.0 * s), mixed(q, s), kappa)


def aligned(q: float, s: float, kappa: float) -> float:
    return divergence([(1.0, 0.0)], mixed(q, -s), kappa)


def copies(q: float, s: float, kappa: float) -> float:
    weights = [(math.comb(5, k) * q**k * (1.0 - q) ** (5 - k), k * s) for k in range(6)]
    return divergence(weights, [(1.0, 0.0)], kappa)


def weights_of(count: int, q: float) -> list[float]:
    return [math.comb(count, k) * q**k * (1.0 - q) ** (count - k) for k in range(count + 1)]


def opposed_copies(q: float, s: float, kappa: float) -> float:
    p, r = ([(w, mean * k) for k, w in enumerate(weights_of(3, q))] for mean in (2.0 * s, s))
    return divergence(p, r, kappa)


def aligned_copies(q: float, s: float, kappa: float) -> float:
    return divergence([(1.0, 0.0)], [(w, -s * k) for k, w in enumerate(weights_of(3, q))], kappa)


def half_spaces(weights: list[float], s: float, far: float, near: float, kappa: float) -> float:
    """Return the largest value over the tests of docs/training-runs.md, kappa >= 1, by a search for t."""
    t = np.linspace(-16.0, 9.0, 400_001)
    total = weights[0] * (1.0 - kappa) * scipy.special.ndtr(t)
    for k, weight in enumerate(weights[1:], 1):
        gap = (far - near) * k * s
        r = np.minimum(t + near * k * s, -0.5 * gap - math.log(kappa) / gap)
        total += weight * (scipy.special.ndtr(r + gap) - kappa * scipy.special.ndtr(r))
    return float(total.max())


def displaced_to_0(q: float, s: float, kappa: float) -> float:
    if kappa < 1.0:
        return 1.0 - kappa + kappa * half_spaces(weights_of(3, q), s, 1.0, 0.0, 1.0 / kappa)
    return half_spaces(weights_of(3, q), s, 2.0, 1.0, kappa)


def displaced(q: float, s: float, kappa: float) -> float:
    if kappa < 1.0:
        return 1.0 - kappa + kappa * displaced(q, s, 1.0 / kappa)
    return half_spaces(weights_of(3, q), s, 2.0, 0.0, kappa)


EXACT: dict[str, tuple[Callable[[float, float], Ratio], Callable[[float, float, float], float]]] = {
    "signed": (SignedSample, signed),
    "replaced": (Replaced, replaced),
    "zeroed": (Zeroed, zeroed),
    "opposed": (Opposed, opposed),
    "aligned": (Aligned, aligned),
    "copies": (lambda q, s: Copies(5, q, s), copies),
    "opposed copies": (lambda q, s: Copies(3, q, 2.0 * s, s), opposed_copies),
    "aligned copies": (lambda q, s: Copies(3, q, 0.0, -s), aligned_copies),
    "displaced to 0": (lambda q, s: Displaced(3, q, s, "zero-out"), displaced_to_0),
    "displaced": (lambda q, s: Displaced(3, q, s, "replace-one"), displaced),
}
FROM_BELOW = ("opposed", "opposed copies")
"""Ratios that do not increase, with a valid lower distribution only."""


def drawn(name: str) -> list[tuple[float, float]]:
    rng = random.Random(name)
    return [(10.0 ** rng.uniform(-4.0, 0.0), 10.0 ** rng.uniform(-1.5, 0.4)) for _ in range(6)]


CASES = [(name, q, s) for name in EXACT for q, s in drawn(name)]


@pytest.mark.parametrize(("name", "q", "s"), CASES)
def test_both_ends_enclose_the_profile_in_both_directions(name: str, q: float, s: float) -> None:
    make, exact = EXACT[name]
    for res in (COARSE, FINE):
        bracket = make(q, s).bracket(res)
        for epsilon in (0.0, 0.01, 0.4, 2.0):
            kappa = math.exp(epsilon)
            remove = exact(q, s, kappa)
            add = 1.0 - kappa + kappa * exact(q, s, 1.0 / kappa)
            for direction, truth in (("remove", remove), ("add", add)):
                tiny = 1e-8 * abs(truth) + 1e-10 * kappa  # the error of the sum
                assert delta_lower(bracket.lower, epsilon, direction) <= truth + tiny, (epsilon, direction)
                if name not in FROM_BELOW:
                    assert delta_upper(bracket.upper, epsilon, direction) >= truth - tiny, (
                        epsilon,
                        direction,
                    )


@pytest.mark.parametrize("name", [name for name in EXACT if name not in FROM_BELOW])
def test_a_finer_grid_brings_the_ends_together(name: str) -> None:
    make, exact = EXACT[name]
    bracket = make(0.2, 0.8).bracket(FINE)
    for epsilon in (0.05, 0.3):
        truth = exact(0.2, 0.8, math.exp(epsilon))
        if truth > 1e-6:
            assert delta_lower(bracket.lower, epsilon, "remove") == pytest.approx(truth, rel=2e-3)
            assert delta_upper(bracket.upper, epsilon, "remove") == pytest.approx(truth, rel=2e-3)


@pytest.mark.parametrize("name", EXACT)
def test_masses_and_means_are_1(name: str) -> None:
    ratio = EXACT[name][0](0.05, 0.7).bracket(FINE)
    for each in (ratio.lower, ratio.upper):
        assert float(each.p.sum()) == pytest.approx(1.0, abs=1e-8)
        assert float(each.p @ each.x) + each.infinite == pytest.approx(1.0, abs=1e-8)


def test_counts_that_are_left_out_reveal_the_example() -> None:
    """The upper distribution keeps all masses, so a tail that is cut off loses nothing."""
    upper = Displaced(50, 0.05, 1.0, "zero-out").bracket(Resolution(fineness=0.15, tail=1e-2)).upper
    assert upper.infinite > 1e-4, "counts of a total weight of up to 1e-2 are left out"
    assert float(upper.p.sum()) >= 1.0 - 1e-12
    assert float(upper.p @ upper.x) + upper.infinite >= 1.0 - 1e-12


def test_the_replaced_law_is_its_own_dual() -> None:
    bracket = Replaced(0.03, 0.6).bracket(FINE)
    for epsilon in (0.1, 0.7):
        remove, add = (delta_upper(bracket.upper, epsilon, each) for each in ("remove", "add"))
        assert remove == pytest.approx(add, rel=5e-3)


def test_rate_1_and_one_copy_reduce_to_the_gaussian_mechanism() -> None:
    question = Question(asks="epsilon", at=1e-5, adjacency="remove")
    for ratio, mu in (
        (SignedSample(1.0, 0.4), 0.8),
        (Replaced(1.0, 0.4), 0.8),
        (Zeroed(1.0, 0.4), 0.4),
        (Opposed(1.0, 0.4), 0.4),
        (Copies(1, 1.0, 0.4), 0.4),
    ):
        found = enclosed(ratio, question, 1e-3, (0.0, 50.0))
        same = enclosed(
            Gaussian(mu), Question(asks="epsilon", at=1e-5, adjacency="remove"), 1e-3, (0.0, 50.0)
        )
        assert max(found[0], same[0]) <= min(found[1], same[1]), ratio


def test_the_masses_of_cells_are_as_precise_as_claimed() -> None:
    rng = np.random.default_rng(5)
    for mean, width in ((0.0, 5e-4), (0.3, 0.01), (4.0, 0.1), (20.0, 0.5)):
        start = float(rng.uniform(-9.0, 9.0))
        cuts = start + width * np.arange(8.0)
        part = Part(Mixture((0.75, 0.25), (0.0, mean)), Mixture((1.0,), (0.0,)))
        cells = _cells(part, cuts)
        with mp.workdps(40):
            ends = [mp.ninf, *map(mp.mpf, cuts.tolist()), mp.inf]
            for k, (a, b) in enumerate(pairwise(ends)):
                at_0, at_mean = (mp.ncdf(b - m) - mp.ncdf(a - m) for m in (mp.mpf(0), mp.mpf(mean)))
                for found, true in ((cells.q[k], at_0), (cells.p[k], (3 * at_0 + at_mean) / 4)):
                    if true > 1e-25:
                        assert abs(found / true - 1) <= cells.error / 2, (mean, width, k)


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_a_single_draw_with_replacement_is_one_without(relation: str) -> None:
    one = Displaced(1, 0.07, 0.9, relation).bracket(FINE).upper
    other = (Replaced if relation == "replace-one" else Zeroed)(0.07, 0.9).bracket(FINE).upper
    for epsilon in (0.0, 0.02, 0.5, 2.0):
        for direction in ("remove", "add"):
            ends = [delta_upper(each, epsilon, direction) for each in (one, other)]
            assert ends[0] == pytest.approx(ends[1], rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("number", range(8))
def test_no_gradients_of_the_others_exceed_the_bound_of_draws_with_replacement(number: int) -> None:
    """A step with gradients of the other draws that are drawn on both sides of the unit circle."""
    rng = np.random.default_rng(number)
    draws, q, s = 3, float(rng.choice([0.02, 0.2, 0.6])), float(rng.choice([0.4, 1.0, 1.8]))
    x = np.array([1.0, 0.0])
    angles = rng.choice([0.0, 0.5, 1.0, rng.uniform()], size=draws) * math.pi
    w = rng.choice([0.3, 1.0, 1.0], size=(draws, 1)) * np.stack((np.cos(angles), np.sin(angles)), axis=1)
    z = np.linspace(-9.0 - 6.0 * s, 9.0 + 6.0 * s, 501)
    for relation, others in (("zero-out", [0.0 * x]), ("replace-one", [-x, rng.uniform(-1.0, 1.0) * x])):
        bound = Displaced(draws, q, s, relation).bracket(FINE).upper
        for other in others:
            p, r = np.zeros((z.size, z.size)), np.zeros((z.size, z.size))
            for chosen in itertools.product((0.0, 1.0), repeat=draws):
                weight = math.prod(q if each else 1.0 - q for each in chosen)
                weight *= (z[1] - z[0]) ** 2 / (2.0 * math.pi)
                at_x, at_other = (
                    [np.exp(-0.5 * np.square(z - s * m)) for m in np.array(chosen) @ (gradient - w)]
                    for gradient in (x, other)
                )
                p += weight * np.outer(*at_x)
                r += weight * np.outer(*at_other)
            for epsilon in (0.0, 0.1, 0.5, 2.0):
                for direction, (a, b) in (("remove", (p, r)), ("add", (r, p))):
                    truth = float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum())
                    assert truth <= delta_upper(bound, epsilon, direction) * 1.001 + 1e-9


def test_the_masses_of_counts_that_begin_at_their_own_output_are_as_precise_as_claimed() -> None:
    weights, s = (0.9, 0.09, 0.009, 0.001), 1.3
    part = CountedDraws(
        Mixture(weights, tuple(2.0 * s * k for k in range(4))),
        Mixture(weights, tuple(s * k for k in range(4))),
        low=1.5 * s,
    )
    cuts = np.concatenate(([1.5 * s], np.linspace(2.1, 11.0, 40)))
    cells = _cells(part, cuts)
    apart = 0
    with mp.workdps(40):
        ends = []
        for z, ratio in zip(cuts, cells.left, strict=True):
            kappa = mp.mpf(float(ratio))
            own = [mp.mpf(z)] + [mp.mpf(1.5 * s * k) + mp.log(kappa) / mp.mpf(s * k) for k in (1, 2, 3)]
            ends.append([max(mp.mpf(z), each) for each in own])
            apart += sum(each > z for each in own)
        ends.append([mp.inf] * 4)
        for k, (low, high) in enumerate(pairwise(ends)):
            for found, mixture in ((cells.q[k], part.q), (cells.p[k], part.p)):
                true = mp.fsum(
                    w * (mp.ncdf(mp.mpf(m) - a) - mp.ncdf(mp.mpf(m) - b))
                    for w, m, a, b in zip(mixture.weights, mixture.means, low, high, strict=True)
                )
                if true > 1e-25:
                    assert abs(found / true - 1) <= cells.error, (k, found, true)
    assert apart > 20, "some counts begin at an output of their own"


def test_a_ratio_beyond_doubles_is_refused() -> None:
    with pytest.raises(LikelihoodRangeError):
        Replaced(0.5, 40.0).bracket(FINE)


def test_equal_parts_are_counted_and_gaussian_parts_added() -> None:
    step = Sampled(Gaussian(1.0), 0.1)
    assert product((step, Gaussian(3.0), Composed(step, 4), Gaussian(4.0))) == Product(
        (Composed(step, 5), Gaussian(5.0))
    )
    assert product((OneOfSteps(Gaussian(1.0), 9),)) == OneOfSteps(Gaussian(1.0), 9)


def test_a_blend_has_the_weighted_profile() -> None:
    ratio = Blend((0.25, 0.75), (Gaussian(1.0), Sampled(Gaussian(2.0), 0.1)))
    found = ratio.bracket(FINE)
    parts = [each.bracket(FINE) for each in ratio.ratios]
    for epsilon in (0.0, 0.5, 2.0):
        for direction in ("remove", "add"):
            low = sum(
                w * delta_lower(part.lower, epsilon, direction)
                for w, part in zip(ratio.weights, parts, strict=True)
            )
            assert delta_upper(found.upper, epsilon, direction) >= low
            assert delta_lower(found.lower, epsilon, direction) == pytest.approx(low, rel=2e-3)


@pytest.mark.parametrize(
    ("count", "q"),
    [(1, 0.5), (3, 1e-7), (30, 0.9), (100, 1.0 - 2.0**-40), (256, 1e-4), (1000, 0.02), (60_000, 1e-3)],
)
def test_the_probabilities_of_counts_are_as_precise_as_claimed(count: int, q: float) -> None:
    counts, weights, error = binomial_counts(count, q)
    with mp.workdps(40):
        for k, weight in zip(counts, weights, strict=True):
            exact = mp.binomial(count, k) * mp.mpf(q) ** k * (1 - mp.mpf(q)) ** (count - k)
            assert abs(weight / exact - 1) <= error, k
        assert abs(1 - mp.fsum(weights)) <= error + 1e-200


def test_many_parts_are_blended_in_the_cells_of_one_grid() -> None:
    parts = tuple(Gaussian(0.1 * k) for k in range(1, 60))
    bracket = Blend((1.0 / 59.0,) * 59, parts).bracket(COARSE)
    assert bracket.upper.x.size < 1000
    for epsilon in (0.0, 0.5, 2.0):
        ends = [divergence([(1.0, 0.1 * k)], [(1.0, 0.0)], math.exp(epsilon)) for k in range(1, 60)]
        mean = sum(ends) / 59.0
        assert delta_lower(bracket.lower, epsilon, "remove") <= mean
        assert mean <= delta_upper(bracket.upper, epsilon, "remove") <= 1.02 * mean


@pytest.mark.parametrize("kappa", [1.0, 1.02, 1.1])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_coarse_cells_keep_both_branches_of_a_ratio_that_first_falls(direction: str, kappa: float) -> None:
    p, q = mixed(0.3, 1.6), mixed(0.3, 0.8)
    exact = divergence(p, q, kappa) if direction == "remove" else divergence(q, p, kappa)
    found = delta_lower(Opposed(0.3, 0.8).bracket(COARSE).lower, math.log(kappa), direction)
    assert 0.98 * exact <= found <= exact * (1.0 + 1e-6)
