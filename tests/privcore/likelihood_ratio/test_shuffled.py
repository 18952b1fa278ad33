"""The upper end for shuffled epochs that leave out examples: independent values, limits and adversaries."""

import math
from typing import Any

import numpy as np
import pytest

from privcore.likelihood_ratio.allocated.opposed import opposed
from privcore.likelihood_ratio.allocated.shuffled import ShuffledAbove, dominating, profile_above
from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.potential import hull
from privcore.likelihood_ratio.profile import delta_lower
from privcore.numerics.gaussian import gaussian_delta_bounds

FINE = Resolution(fineness=0.03, tail=1e-14)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(4000)
CASES = [("zero-out", "remove"), ("zero-out", "add"), ("replace-one", "remove"), ("replace-one", "add")]


def explicit_law(s: float, kappa: float, relation: str, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights of the number D by quadrature over z, as docs/shuffling.md states it."""
    z = 13.0 * NODES + 2.0 * s
    weight = 13.0 * WEIGHTS * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    one, two = np.exp(s * z - 0.5 * s * s), np.exp(2.0 * s * z - 2.0 * s * s)
    above, below = {
        ("zero-out", "remove"): (two - kappa * one, 1.0 - kappa * one),
        ("zero-out", "add"): (one - kappa, one - kappa * two),
    }.get((relation, direction), (two - kappa, 1.0 - kappa * two))
    value = np.concatenate((above[above > 0.0], below[below < 0.0], [0.0]))
    mass = np.concatenate((weight[above > 0.0], weight[below < 0.0]))
    return value, np.append(mass, 1.0 - float(mass.sum()))


def explicit(s: float, steps: int, share: float, kappa: float, relation: str, direction: str) -> float:
    """The bound for one or two batches, by all pairs of nodes."""
    value, weight = explicit_law(s, kappa, relation, direction)
    rest = (1.0 - share) * (1.0 - kappa)
    if steps == 1:
        return float(weight @ np.maximum(share * value + rest, 0.0))
    order = np.argsort(value)
    value, weight = value[order], weight[order]
    above = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    moment = np.append(np.cumsum((weight * value)[::-1])[::-1], 0.0)
    level = -2.0 * rest / share - value
    first = np.searchsorted(value, level, side="right")
    return 0.5 * share * float(weight @ (moment[first] - level * above[first]))


@pytest.mark.parametrize("share", [1.0, 2.0 / 3.0])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize(("s", "epsilon"), [(0.5, 0.1), (1.0, 0.3), (1.0, 2.0), (2.0, 1.0)])
@pytest.mark.parametrize(("relation", "direction"), CASES)
def test_one_and_two_batches_are_above_the_quadrature_of_the_explicit_law_and_close(
    relation: str, direction: str, s: float, epsilon: float, steps: int, share: float
) -> None:
    kappa = math.exp(epsilon)
    true = explicit(s, steps, share, kappa, relation, direction)
    found = profile_above(ShuffledAbove(s, steps, relation, share), direction, kappa, FINE)
    assert true * (1.0 - 1e-3) - 1e-9 <= found <= true * 1.004 + 1e-6  # the quadrature errs where D is 0


ORACLES = [  # upper ends by an FFT of the explicit distribution, and by a second programme
    (1.1, 234, 1.0, 0.5, "zero-out", "remove", 0.01052, 0.006),
    (1.1, 234, 1.0, 1.0, "zero-out", "remove", 0.002256, 0.006),
    (1.1, 234, 1.0, 3.0, "zero-out", "remove", 9.556e-6, 0.006),
    (2.0, 234, 1.0, 0.1, "zero-out", "remove", 0.00165215, 0.006),
    (2.0, 234, 1.0, 0.1, "zero-out", "add", 0.000925578, 0.006),
    (1.0, 50, 1.0, 1.0, "zero-out", "remove", 0.0314517, 0.006),
    (1.0, 2, 2 / 3, 0.3, "zero-out", "remove", 0.17913, 0.002),
    (1.0, 2, 2 / 3, 0.3, "zero-out", "add", 0.14798, 0.002),
    (2 / 3, 2, 2 / 3, 1.0, "replace-one", "remove", 0.48734, 0.002),
    (0.5, 2, 2 / 3, 0.5, "zero-out", "remove", 0.39882, 0.002),
    (1.0, 3, 0.75, 0.3, "zero-out", "remove", 0.19298, 0.002),
]


@pytest.mark.parametrize(
    ("sigma", "steps", "share", "epsilon", "relation", "direction", "value", "near"), ORACLES
)
def test_the_profile_is_that_of_two_other_programmes(  # a row of a table
    sigma: float,
    steps: int,
    share: float,
    epsilon: float,
    relation: str,
    direction: str,
    value: float,
    near: float,
) -> None:
    found = profile_above(
        ShuffledAbove(1.0 / sigma, steps, relation, share), direction, math.exp(epsilon), FINE
    )
    assert value * (1.0 - 1e-3) <= found <= value * (1.0 + near)


@pytest.mark.parametrize(("relation", "distance"), [("zero-out", 1.0), ("replace-one", 2.0)])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_one_batch_that_uses_all_examples_is_the_gaussian_mechanism(
    relation: str, distance: float, direction: str
) -> None:
    for epsilon in (0.1, 1.0, 4.0):
        found = profile_above(ShuffledAbove(1.0, 1, relation, 1.0), direction, math.exp(epsilon), FINE)
        exact = gaussian_delta_bounds(1.0 / distance, epsilon)
        assert exact[0] <= found <= exact[1] * 1.002


@pytest.mark.parametrize(("relation", "direction"), CASES)
def test_more_batches_and_a_smaller_share_leave_a_smaller_bound(relation: str, direction: str) -> None:
    kappa = math.exp(0.5)
    by_steps = [
        profile_above(ShuffledAbove(1.0, t, relation, 0.9), direction, kappa, FINE)
        for t in (1, 2, 5, 30, 300)
    ]
    by_share = [
        profile_above(ShuffledAbove(1.0, 5, relation, q), direction, kappa, FINE)
        for q in (1.0, 0.9, 0.5, 0.1)
    ]
    assert by_steps == sorted(by_steps, reverse=True)
    assert by_share == sorted(by_share, reverse=True)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("steps", [10, 100_000])
@pytest.mark.parametrize(("relation", "direction"), CASES[:3])
def test_no_profile_is_far_above_that_of_a_revealed_order(
    sigma: float, steps: int, relation: str, direction: str
) -> None:
    """The ranges of values span hundreds of orders of magnitude here; a poor grid gives more than 1."""
    distance = 2.0 if relation == "replace-one" else 1.0
    for epsilon in (0.01, 1.0, 15.0):
        found = profile_above(
            ShuffledAbove(1.0 / sigma, steps, relation, 1.0),
            direction,
            math.exp(epsilon),
            Resolution(fineness=0.1, tail=1e-13),
        )
        assert 0.0 <= found <= gaussian_delta_bounds(sigma / distance, epsilon)[1] * 1.02 + 2e-12


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_the_dominating_distribution_is_above_both_profiles_and_close(relation: str) -> None:
    law = dominating(ShuffledAbove(0.8, 20, relation, 0.95), 1e-12)
    assert float(law.p.sum()) == pytest.approx(1.0, abs=1e-9)
    assert float(law.p @ law.x) + law.infinite == pytest.approx(1.0, abs=1e-9)
    for epsilon in (0.0, 0.05, 0.3, 1.0, 2.5):
        kappa = math.exp(epsilon)
        remove = float(law.p @ np.maximum(law.x - kappa, 0.0)) + law.infinite
        add = float(law.p @ np.maximum(1.0 - kappa * law.x, 0.0))
        for direction, above in (("remove", remove), ("add", add)):
            fine = min(
                profile_above(ShuffledAbove(0.8, 20, relation, 0.95), direction, kappa, FINE, block)
                for block in ((1, 20) if relation == "zero-out" else (1,))
            )
            assert fine * (1.0 - 2e-3) - 1e-13 <= above <= max(1.03 * fine, fine + 2e-5)


def test_the_hull_of_points_is_convex_and_below_them() -> None:
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(0.0, 9.0, 200))
    y = np.exp(-x) + rng.uniform(0.0, 0.02, x.size)
    places, values = hull(x, y)
    slopes = np.diff(values) / np.diff(places)
    assert (np.diff(slopes) > 0.0).all()
    assert (np.interp(x, places, values) <= y * (1.0 + 1e-12)).all()
    assert (np.interp(x, places, values) >= np.exp(-x)).all()


GRID = np.arange(-9.0, 9.001, 0.025)
"""Coarser grids overshoot by 1e-4 where the noise is small."""


def _density(means: Any) -> np.ndarray:
    found: np.ndarray = np.exp(-0.5 * np.square(GRID[None, :] - np.atleast_1d(means)[:, None]))
    return found / math.sqrt(2.0 * math.pi)


def test_ratios_beyond_doubles_are_refused() -> None:
    with pytest.raises(ArithmeticError):
        profile_above(ShuffledAbove(30.0, 5, "zero-out", 1.0), "remove", math.exp(400.0), FINE)
    with pytest.raises(ArithmeticError):
        dominating(ShuffledAbove(1000.0, 10, "zero-out", 0.9), 1e-12)


@pytest.mark.parametrize(
    ("s", "steps", "share"), [(1e-6, 10, 0.9), (1e-3, 1, 0.9), (1.0, 1, 1e-6), (0.05, 1, 0.5)]
)
def test_the_ends_of_the_domain_have_a_dominating_distribution(s: float, steps: int, share: float) -> None:
    law = dominating(ShuffledAbove(s, steps, "zero-out", share), 1e-12)
    assert (law.p > 0.0).all()
    assert float(law.p @ law.x) + law.infinite == pytest.approx(1.0, abs=1e-9)
    revealed = share * gaussian_delta_bounds(1.0 / s, 0.0)[1]
    assert float(law.p @ np.maximum(law.x - 1.0, 0.0)) + law.infinite <= 1.02 * revealed + 3e-12


# --------------------------------------- random allocation of an example that is replaced by another one


def replaced(example: tuple[Any, Any], neighbour: tuple[Any, Any], kappa: float) -> float:
    """The divergence of two steps for an example in a random step; the second gradient may be a function."""
    p, q = (
        0.5 * (_density(first).T * _density(0.0) + _density(0.0).T * _density(second))
        for first, second in (example, neighbour)
    )
    return float(np.maximum(p - kappa * q, 0.0).sum()) * 0.025**2


IN_PLACE = [(0.5, 0.1), (1.0, 0.5), (1.5, 1.0)]


@pytest.mark.parametrize(("s", "epsilon"), IN_PLACE)
def test_the_opposite_gradient_in_a_random_step_is_enclosed_closely(s: float, epsilon: float) -> None:
    true = replaced((s, s), (-s, -s), math.exp(epsilon))
    upper = profile_above(ShuffledAbove(s, 2, "in-place", 1.0), "remove", math.exp(epsilon), FINE)
    law = opposed(s, 2, Resolution(fineness=0.02, tail=1e-13), 1.0, (1.0, -1.0))
    assert 0.998 * true <= delta_lower(law, epsilon, "remove") <= true * (1.0 + 1e-4)
    assert true * (1.0 - 1e-4) <= upper <= 1.004 * true


@pytest.mark.thorough
@pytest.mark.parametrize(("s", "epsilon"), IN_PLACE)
def test_no_adaptive_replacement_in_a_random_step_is_above_the_opposite_gradient(
    s: float, epsilon: float
) -> None:
    rng, kappa, most = np.random.default_rng(7), math.exp(epsilon), 0.0
    for _ in range(150):
        x, y = (s * rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], 3) for _ in range(2))
        cut = rng.normal()
        example, neighbour = ((each[0], np.where(cut < GRID, each[1], each[2])) for each in (x, y))
        most = max(most, replaced(example, neighbour, kappa))
    bound = profile_above(ShuffledAbove(s, 2, "in-place", 1.0), "remove", kappa, FINE)
    assert 0.75 * bound < most <= bound
