"""Blocks of shuffled steps: above gradients that follow the sum so far, and close to independent values."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from privcore.likelihood_ratio.allocated.blocks import ANGLES, branches, summed_block
from privcore.likelihood_ratio.allocated.differences import factor_law, signed_law
from privcore.likelihood_ratio.allocated.shuffled import ShuffledAbove, profile_above
from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.signed import SignedLaw, SumCells

FINE = Resolution(fineness=0.03, tail=1e-12)
DIRECTIONS = ["remove", "add"]
OUTPUTS = np.arange(-9.0, 9.001, 0.05)
SHARES = 0.05 * np.exp(-0.5 * np.square(OUTPUTS)) / math.sqrt(2.0 * math.pi)


def number(s: float, kappa: float, direction: str, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and masses of a step's number in two dimensions: x = (1, 0), and the displaced w at an angle."""
    v = -np.array([-angle, math.sqrt(1.0 - angle * angle)])
    u = np.array([1.0, 0.0]) + v
    z = np.stack(np.meshgrid(OUTPUTS, OUTPUTS, indexing="ij"))
    a, b = (np.exp(s * np.tensordot(shift, z, 1) - 0.5 * s * s * float(shift @ shift)) for shift in (u, v))
    return (a - kappa * b if direction == "remove" else b - kappa * a).ravel(), np.outer(
        SHARES, SHARES
    ).ravel()


def cells(s: float, kappa: float, steps: int) -> SumCells:
    low = 16.0 * max(2.0 * steps * (kappa - 1.0), 8.0)
    return SumCells(fineness=0.02, tail=1e-13, low=low, least=0.05 * kappa * min(1.0, s), kinks=(0.0,))


def excess(law: SignedLaw, levels: np.ndarray) -> np.ndarray:
    """Mean excess of a distribution over some levels."""
    found: np.ndarray = np.maximum(law.x - levels[:, None], 0.0) @ law.p + law.beyond
    return found


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("s", "kappa"), [(0.3, 1.05), (0.8, 1.0), (1.0, 2.5)])
def test_the_number_of_a_cell_of_angles_is_above_those_of_its_angles_in_convex_order(
    direction: str, s: float, kappa: float
) -> None:
    levels = np.concatenate((-np.geomspace(0.02, 20.0, 30)[::-1], [0.0], np.geomspace(0.02, 20.0, 30)))
    for low, high in [(-1.0, -0.25), (-0.25, 0.5), (0.5, 1.0), (-1.0, 1.0)]:
        sizes = branches(direction, low, high)
        parts = signed_law(s, kappa, sizes, 1, cells(s, kappa, 1))
        above = np.zeros(levels.size)
        for up, chosen in ((True, parts.x > 0.0), (False, parts.x <= 0.0)):
            factor = factor_law(s, sizes[0 if up else 1], 1e-13, up)
            values = np.outer(factor.x, parts.x[chosen]).ravel()
            masses = np.outer(factor.p, parts.p[chosen]).ravel()
            above += excess(SignedLaw(x=values, p=masses, beyond=0.0), levels)
        for angle in np.linspace(low, high, 7):
            values, masses = number(s, kappa, direction, float(angle))
            assert (above >= excess(SignedLaw(x=values, p=masses, beyond=0.0), levels) - 2e-4).all(), angle


def programme(s: float, kappa: float, direction: str, steps: int, angles: np.ndarray) -> float:
    """The best of some angles for every sum so far, on a fine grid, without any cells of angles."""
    grid = np.arange(-40.0, 40.0, 0.02)
    found = np.maximum(grid, 0.0)
    numbers = []
    for angle in angles:
        values, masses = number(s, kappa, direction, float(angle))
        at = np.clip(np.round(values / 0.02).astype(int), -3000, 3000)
        kept, where = np.unique(at, return_inverse=True)
        numbers.append((kept, np.bincount(where, masses)))
    far = np.arange(-2000 - 3000, 2000 + 3000) * 0.02
    for _ in range(steps):
        longer = np.interp(far, grid, found)
        longer[far > grid[-1]] = found[-1] + far[far > grid[-1]] - grid[-1]
        found = np.maximum.reduce(
            [
                sum(
                    mass * longer[3000 + jump : 3000 + jump + grid.size]
                    for jump, mass in zip(*each, strict=True)
                )
                for each in numbers
            ]
        )
    return float(np.interp(0.0, grid, found)) / steps


@pytest.mark.parametrize(
    ("s", "epsilon", "direction", "steps"),
    [(0.5, 0.1, "remove", 6), (0.5, 0.1, "add", 6), (0.6, 0.3, "remove", 4), (0.3, 0.05, "add", 20)],
)
def test_a_block_of_all_steps_is_above_the_best_adaptive_angles_and_close(
    s: float, epsilon: float, direction: str, steps: int
) -> None:
    kappa, epoch = math.exp(epsilon), ShuffledAbove(s, steps, "zero-out", 1.0)
    adaptive = programme(s, kappa, direction, steps, np.linspace(-1.0, 1.0, 9))
    whole = profile_above(epoch, direction, kappa, FINE, steps)
    single = profile_above(epoch, direction, kappa, FINE)
    assert adaptive * (1.0 - 2e-3) <= whole <= adaptive * 1.03
    assert whole < single


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_shorter_block_of_the_other_steps_completes_an_epoch(direction: str) -> None:
    epoch = ShuffledAbove(0.5, 6, "zero-out", 1.0)
    whole, four_and_two, pairs = (profile_above(epoch, direction, 1.1, FINE, block) for block in (6, 4, 2))
    assert whole <= four_and_two <= pairs


ORACLES = [  # dynamic programmes of two other authors, on grids; the last column is the bound of one step
    (1 / 3, 50, 0.1, "remove", 0.001561, 0.002268),
    (1 / 3, 50, 0.1, "add", 0.001070, 0.001806),
    (0.5, 100, 0.2, "remove", 8.180e-4, 1.074e-3),
    (0.909, 60, 0.5, "remove", 0.039259, 0.040886),
]


@pytest.mark.parametrize(("s", "steps", "epsilon", "direction", "adaptive", "single"), ORACLES)
def test_longer_blocks_fall_from_the_bound_of_one_step_to_the_dynamic_programme(  # a row of a table
    s: float, steps: int, epsilon: float, direction: str, adaptive: float, single: float
) -> None:
    epoch, kappa = ShuffledAbove(s, steps, "zero-out", 1.0), math.exp(epsilon)
    found = [profile_above(epoch, direction, kappa, FINE, block) for block in (1, 8, 25, steps)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(single, rel=6e-3)
    assert adaptive * (1.0 - 1e-3) <= found[-1] <= 1.04 * adaptive


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_block_of_one_step_is_the_number_of_all_angles_if_there_is_one_cell(
    direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    s, kappa = 0.7, 1.3
    monkeypatch.setattr("privcore.likelihood_ratio.allocated.blocks.ANGLES", (-1.0, 1.0))
    law, shorter = summed_block(s, kappa, direction, 1, 0, cells(s, kappa, 1))
    one = signed_law(s, kappa, branches(direction, -1.0, 1.0), 1, cells(s, kappa, 1))
    levels = np.linspace(-8.0, 8.0, 60)
    assert shorter is None
    assert (excess(law, levels) >= excess(one, levels) * (1.0 - 1e-12)).all()
    assert excess(law, levels) == pytest.approx(excess(one, levels), rel=0.02, abs=4e-3)


def test_the_angles_are_cells_from_one_end_to_the_other() -> None:
    assert ANGLES[0] == -1.0
    assert ANGLES[-1] == 1.0
    assert (np.diff(ANGLES) > 0.0).all()
    assert all(math.ldexp(angle, 10).is_integer() for angle in ANGLES)


# ------------------------------------ three examples, two batches of one: docs/notes/shuffled-batches.md

OUT = np.arange(-9.0, 9.001, 0.025)
ATTAINED = [  # the best gradients on a line if both other examples have the same one, and the bound
    (1.0, 0.3, "remove", 0.17768, 0.17770),
    (0.5, 0.1, "remove", 0.07918, 0.07924),
    (1.5, 1.0, "remove", 0.20961, 0.20965),
    (1.0, 0.3, "add", 0.13022, 0.13124),
    (1.5, 1.0, "add", 0.12880, 0.13015),
    (2.0, 0.5, "add", 0.33614, 0.33849),
]


def identical(s: float, kappa: float, direction: str) -> float:
    """The divergence of all outputs if both others have one gradient, the second one by the first output."""

    def density(mean: float | np.ndarray) -> np.ndarray:
        found: np.ndarray = np.exp(-0.5 * np.square(OUT - mean)) / math.sqrt(2.0 * math.pi)
        return found

    def outputs(example: float, first: float, second: np.ndarray) -> np.ndarray:
        own, one = density(example), density(first)
        two = np.exp(-0.5 * np.square(OUT[None, :] - second[:, None])) / math.sqrt(2.0 * math.pi)
        both: np.ndarray = own[:, None] * two + one[:, None] * own[None, :] + one[:, None] * two
        return both / 3.0

    best = 0.0
    for first, low, high in itertools.product((-s, s), (-s, s), (-s, s)):
        for cut in np.arange(-3.0, 4.0, 0.125):
            second = np.where(cut > OUT, low, high)
            p, q = outputs(s, first, second), outputs(0.0, first, second)
            if direction == "add":
                p, q = q, p
            best = max(best, float(np.maximum(p - kappa * q, 0.0).sum()) * 0.025**2)
    return best


@pytest.mark.thorough
@pytest.mark.parametrize(("s", "epsilon", "direction", "attained", "bound"), ATTAINED)
def test_identical_gradients_of_all_others_attain_the_dynamic_programme(  # a row of a table
    monkeypatch: pytest.MonkeyPatch, s: float, epsilon: float, direction: str, attained: float, bound: float
) -> None:
    kappa = math.exp(epsilon)
    angles = tuple(np.append(np.linspace(-1.0, 0.5, 25), np.linspace(0.5, 1.0, 33)[1:]))
    fine: dict[str, Any] = {"NEAR": 0.04, "FINE": 0.02, "FAR": 0.005, "TAIL": 0.3, "ANGLES": angles}
    for name, value in fine.items():
        monkeypatch.setattr(f"privcore.likelihood_ratio.allocated.blocks.{name}", value)
    epoch = ShuffledAbove(s, 2, "zero-out", 2.0 / 3.0)
    above = profile_above(epoch, direction, kappa, Resolution(fineness=0.01, tail=1e-14), 2)
    assert above == pytest.approx(bound, abs=1.5e-5)
    found = identical(s, kappa, direction)
    assert found == pytest.approx(attained, abs=2e-5)
    assert found <= above
    if direction == "remove":
        assert found >= 0.999 * above
