"""The direct bound: moments against sums over partitions, published values, composition."""

import csv
import itertools
import math
from collections.abc import Iterable
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from privcore import Answer, DomainError, Point, Problem, evaluate, find
from privcore.allocation.moments import (
    FRACTIONS,
    SPREAD_ORDERS,
    allocation_moments,
    gaussian_moments,
    mixed_moments,
)
from privcore.allocation.published.renyi import fraction_moments, jensen, remove_moments
from privcore.allocation.reduction import blocks
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from tests.privcore.draws import problem

pytestmark = pytest.mark.sampled(12)

DATA = Path(__file__).parents[1] / "data"


def answer(question: Problem, **knobs: int) -> Answer:
    return evaluate(Point(problem=question, method=find("allocation.direct").from_knobs(knobs)))


def table(name: str) -> list[dict[str, str]]:
    with (DATA / name).open() as lines:
        return list(csv.DictReader(lines))


def test_moments_are_the_sums_over_partitions_rounded_up() -> None:
    rows = table("allocation_renyi.csv")
    assert {row["order"] for row in rows} == {"2", "3", "7", "20", "60"}
    for row in rows:
        order, exact = int(row["order"]), mp.mpf(row["log_moment"])
        for highest in (max(order, 2), 64):  # below and above 50 steps: by recurrence and by powering
            bound = float(allocation_moments(float(row["sigma"]), int(row["steps"]), highest)[order])
            assert exact * (1 - 1e-18) <= bound <= exact * (1 + 3e-11), row


@pytest.mark.parametrize(("sigma", "steps"), [(0.5, 700), (1.0, 1024), (3.0, 10**9), (300.0, 513)])
def test_recurrence_and_powering_agree_at_hundreds_of_orders(sigma: float, steps: int) -> None:
    recurrence, one = allocation_moments(sigma, steps, 512), gaussian_moments(sigma, 512)
    result, terms = one, 1
    for bit in f"{steps:b}"[1:] if steps < 10**6 else "":
        result, terms = mixed_moments(result, result, 0.5, 0.5), 2 * terms
        if bit == "1":
            result = mixed_moments(
                result, gaussian_moments(sigma, 1024), terms / (terms + 1), 1 / (terms + 1)
            )
            terms += 1
    if terms == steps:
        np.testing.assert_allclose(recurrence[2:], result[2:], rtol=2e-8)
    second = math.log1p(math.expm1(1.0 / sigma**2) / steps)
    assert recurrence[2] == pytest.approx(second, rel=1e-12)
    increments = np.diff(recurrence)
    assert np.all(np.diff(increments) >= -1e-9 * increments[1:]), "(n - 1) R_n is convex in n"


def test_a_mixture_with_the_constant_1_is_poisson_sampling() -> None:
    ones, base, rate = np.zeros(21), gaussian_moments(1.0, 20), 0.2
    assert np.all(mixed_moments(ones, ones, 0.3, 0.7) == 0.0)
    mixed = mixed_moments(base, ones, rate, 1.0 - rate)
    for n in (2, 3, 11, 20):
        with mp.workdps(40):
            lam, half = mp.mpf(rate), mp.mpf(0.5)
            terms = [
                mp.binomial(n, j) * lam**j * (1 - lam) ** (n - j) * mp.exp(j * (j - 1) * half)
                for j in range(n + 1)
            ]
            exact = mp.log(mp.fsum(terms))
        assert exact <= mixed[n] <= exact * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 2])
def test_moments_between_orders_1_and_2_lie_above_a_quadrature(sigma: float, steps: int) -> None:
    """The second ratio is integrated by Gauss-Hermite quadrature, like the first under P."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(160)
    weights = weights / weights.sum()
    s = 1.0 / sigma
    first, second = np.exp(s * nodes + 0.5 * s * s), np.exp(s * nodes - 0.5 * s * s)
    bounds = fraction_moments(sigma, steps, math.log1p(math.expm1(s * s) / steps))
    for i in range(0, len(FRACTIONS), 6):
        b = FRACTIONS[i] - 1.0
        if steps == 1:
            exact = math.log(float(weights @ first**b))
        else:
            exact = math.log(float(weights @ (0.5 * (first[:, None] + second[None, :])) ** b @ weights))
        assert bounds[i] >= exact * (1.0 - 1e-9) - 1e-14
        if steps == 1:
            assert bounds[i] <= exact * (1.0 + 1e-6) + 1e-9


def test_orders_rise_and_so_do_the_moments_of_a_composition_at_integer_orders() -> None:
    for parts in (blocks(100, 7, 3), blocks(1, 1, 1), blocks(10**9, 10, 10**6)):
        for sigma in (1e-3, 0.5, 1e6):
            orders, moments = remove_moments(sigma, parts, 64)
            assert np.all(np.diff(orders) > 0.0)
            assert np.all(np.diff(moments[len(FRACTIONS) :]) > 0.0)
            assert np.all((moments >= 0.0) & np.isfinite(moments))
    assert np.all(np.diff(SPREAD_ORDERS) >= 1.0)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 10, 13])
def test_blocks_use_every_step_and_choose_as_often_as_the_example_takes_part(k: int) -> None:
    parts = blocks(steps=13, participations=k, epochs=4)
    assert sum(size * copies for size, copies in parts) == 13 * 4
    assert sum(copies for _, copies in parts) == k * 4


def test_published_values_are_met_from_above_or_improved() -> None:
    rows = [row for row in table("allocation.csv") if row["group"] == "D"]
    assert len(rows) == 8
    for row in rows:
        question = problem(
            "allocation-epsilon",
            sigma=float(row["sigma"]),
            steps=int(row["t"]),
            participations=int(row["k"]),
            epochs=int(row["epochs"]),
            delta=float(row["delta_in"]),
            adjacency=row["direction"],
        )
        assert answer(question).upper == pytest.approx(float(row["value"]), rel=2e-11), row


def test_ten_participations_are_ten_compositions() -> None:
    """The value is from the authors' implementation of the theorem, random-allocation 1.0.5."""
    fields = {"sigma": 1.0, "steps": 1000, "participations": 10, "delta": 1e-8, "adjacency": "remove"}
    upper = answer(problem("allocation-epsilon", **fields)).upper
    assert upper == pytest.approx(2.9660315786076934, rel=1e-12)
    more = answer(problem("allocation-epsilon", **fields | {"steps": 1009})).upper
    assert more < upper, "the nine steps left over are used"


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("copies", [1, 20])
def test_one_step_gives_back_the_gaussian_for_add(sigma: float, copies: int) -> None:
    shifted = jensen(sigma, [(1, copies)])
    assert shifted.shift == 0.0
    together = sigma / math.sqrt(copies)
    for epsilon in (-2.0, 0.0, 0.7, 5.0):
        exact = gaussian_delta_bounds(together, epsilon)[1]
        assert exact <= shifted.delta(epsilon) <= exact * (1.0 + 1e-9)
    for delta in (1e-10, 1e-3, 0.3):
        exact = gaussian_epsilon_bounds(together, delta)[0]
        assert exact <= shifted.epsilon(delta) <= exact * (1.0 + 1e-9)


def test_the_add_bound_is_that_of_the_mean_of_the_losses() -> None:
    """Monte Carlo with equal noise: the loss never exceeds its bound, which has the stated distribution."""
    rng = np.random.default_rng(2)
    sigma, steps, copies = 0.8, 5, 3
    s = 1.0 / sigma
    losses = s * rng.standard_normal((20_000, copies, steps)) - 0.5 * s * s
    loss = -np.log(np.exp(losses).mean(axis=2)).sum(axis=1)
    above = -losses.mean(axis=2).sum(axis=1)
    assert np.all(loss <= above + 1e-12)
    shifted = jensen(sigma, [(steps, copies)])
    variance = 1.0 / shifted.sigma**2
    assert above.mean() == pytest.approx(shifted.shift + 0.5 * variance, abs=5.0 * math.sqrt(variance / 2e4))
    assert above.var() == pytest.approx(variance, rel=0.06)
    for epsilon in (0.0, 3.0, 5.0):
        sampled = np.maximum(1.0 - np.exp(epsilon - loss), 0.0).mean()
        assert sampled <= shifted.delta(epsilon) + 0.02


def test_epsilon_is_small_where_delta_is_large_in_spite_of_the_shift() -> None:
    """Epsilon may be below the shift; then the Gaussian profile is evaluated at a negative epsilon."""
    shifted = jensen(1.0, [(100, 1)])
    assert 0.0 < shifted.epsilon(0.3) < shifted.shift
    assert shifted.delta(shifted.epsilon(0.3)) <= 0.3
    assert shifted.epsilon(0.9) == 0.0


@pytest.mark.parametrize(("adjacency", "other"), [("remove", "add"), ("add", "remove")])
def test_negative_epsilon_gains_from_the_other_direction(adjacency: str, other: str) -> None:
    fields = {"sigma": 1.0, "steps": 50, "participations": 2}
    at = answer(problem("allocation-delta", **fields, epsilon=-1.0, adjacency=adjacency))
    opposite = answer(problem("allocation-delta", **fields, epsilon=1.0, adjacency=other)).upper
    assert -math.expm1(-1.0) < at.upper <= (-math.expm1(-1.0) + math.exp(-1.0) * opposite) * (1.0 + 1e-12)


def test_orders_are_a_matter_of_tightness() -> None:
    question = problem("allocation-epsilon", sigma=20.0, steps=1000, delta=1e-12, adjacency="remove")
    uppers = [answer(question, orders=orders).upper for orders in (16, 60, 256, 1024)]
    assert uppers == sorted(uppers, reverse=True)
    assert 0.00913 < uppers[-1] < 0.021


def test_small_noise_is_bounded_better_than_by_order_2() -> None:
    for sigma, factor in ((0.01, 0.6), (0.05, 0.75)):
        question = problem("allocation-epsilon", sigma=sigma, steps=1000, delta=1e-6, adjacency="remove")
        second = math.log1p(math.expm1(min(600.0, 1.0 / sigma**2)) / 1000.0)
        second = max(second, 1.0 / sigma**2 - math.log(1000.0))
        at_order_2 = second - math.log(2e-6) - math.log(2.0)
        assert answer(question).upper < factor * at_order_2


def test_both_directions_are_answered_by_the_worse() -> None:
    for steps, k in itertools.product((1, 30), (1, 4)):
        if k > steps:
            continue
        fields = {"sigma": 0.7, "steps": steps, "participations": k, "delta": 1e-6}
        uppers = [
            answer(problem("allocation-epsilon", **fields, adjacency=d)).upper for d in ("add", "remove")
        ]
        assert answer(problem("allocation-epsilon", **fields)).upper == max(uppers)


def curved(**fields: float | str) -> Answer:
    asked = problem("renyi-allocation-epsilon", **fields)
    return evaluate(Point(problem=asked, method=find("allocation.curve")()))


@pytest.mark.parametrize(("participations", "epochs"), [(1, 1), (3, 2)])
def test_the_curve_of_gaussian_noise_gives_the_direct_bound(participations: int, epochs: int) -> None:
    fields = {"steps": 1000, "delta": 1e-8, "participations": participations, "epochs": epochs}
    curve = ",".join(f"{order}:{order / 2.0!r}" for order in range(2, 65))
    known = answer(problem("allocation-epsilon", sigma=1.0, **fields, adjacency="remove"), orders=64)
    assert curved(renyi_curve=curve, **fields).upper == pytest.approx(known.upper, rel=1e-12)


def test_the_curve_of_a_step_of_two_ratios_is_that_of_an_enumeration() -> None:
    """X is 2 with probability 1/3 and 1/2 otherwise; three steps have 8 outcomes, with rational moments."""
    curve = ",".join(
        f"{order}:{math.log((2.0**order + 2.0 * 0.5**order) / 3.0) / (order - 1)!r}" for order in range(2, 41)
    )
    delta, best = 1e-3, math.inf
    for order in range(2, 41):
        moment = sum(
            (1 / 3) ** twos * (2 / 3) ** (3 - twos) * (sum(out) / 3.0) ** order
            for out in itertools.product((2.0, 0.5), repeat=3)
            for twos in (out.count(2.0),)
        )
        bound = (math.log(moment) - math.log(delta * order)) / (order - 1) + math.log(1.0 - 1.0 / order)
        best = min(best, bound)
    found = curved(renyi_curve=curve, steps=3, delta=delta).upper
    assert 0.999 * best < found <= best * (1.0 + 1e-9)  # chords between the orders may be a little tighter


def test_a_curve_of_laplace_noise_bounds_its_allocation() -> None:
    def divergence(order: int) -> float:
        grown = order * math.exp(order - 1.0) + (order - 1.0) * math.exp(-order)
        return math.log(grown / (2.0 * order - 1.0)) / (order - 1.0)

    def bound(orders: Iterable[int]) -> float:
        curve = ",".join(f"{order}:{divergence(order)!r}" for order in orders)
        return curved(renyi_curve=curve, steps=100, delta=1e-6).upper

    whole, sparse = bound(range(2, 65)), bound((2, 8, 64))
    fields = {"scale": 1.0, "steps": 100, "delta": 1e-6, "adjacency": "remove"}
    exact = find("allocation.certified")().answer(problem("laplace-allocation-epsilon", **fields), 0)
    assert exact.lower < whole < sparse
    assert whole < 1.1 * exact.upper


def test_a_curve_that_says_nothing_is_refused_with_the_reason() -> None:
    for text, reason in (
        ("1.5:0.1", "an order of at least 2"),
        ("1:0.1", r"orders in \(1, 1024\], each once"),
        ("2:0.1,2:0.2", "each once"),
        ("2:-1", "finite divergences"),
        ("2", "such as 2:0.5,3:0.8"),
    ):
        with pytest.raises(DomainError, match=reason):
            problem("renyi-allocation-epsilon", renyi_curve=text, steps=2, delta=1e-6)
