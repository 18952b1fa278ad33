"""Mean excesses of sums of signed numbers are upper bounds, and close ones."""

import math

import numpy as np
import pytest
import scipy

from privcore.likelihood_ratio.signed import SignedLaw, SumCells, excess_of_sum, mean_excess

COIN = SignedLaw(x=np.array([-1.0, 1.0]), p=np.array([0.75, 0.25]), beyond=0.0)


def chosen(fineness: float, low: float = 1e9, level: float = 0.0) -> SumCells:
    return SumCells(fineness=fineness, tail=1e-14, low=low, least=0.1, kinks=(0.0, level))


def excess_of_coins(times: int, level: float) -> float:
    heads = np.arange(times + 1)
    return float(scipy.stats.binom.pmf(heads, times, 0.25) @ np.maximum(2.0 * heads - times - level, 0.0))


@pytest.mark.parametrize("level", [0.0, 3.0])
@pytest.mark.parametrize("times", [1, 2, 3, 7, 64, 1000])
def test_sums_of_coins_are_enclosed_from_above(times: int, level: float) -> None:
    true = excess_of_coins(times, level)
    found = excess_of_sum(COIN, times, level, chosen(0.02, level=level))
    assert true <= found <= true * 1.04 + 1e-4


def test_a_smaller_cell_is_closer() -> None:
    errors = [excess_of_sum(COIN, 30, 0.0, chosen(f)) - excess_of_coins(30, 0.0) for f in (0.4, 0.1, 0.02)]
    assert errors[0] > errors[1] > errors[2] > 0.0


def test_mass_below_the_lowest_node_is_moved_upwards() -> None:
    assert excess_of_sum(COIN, 64, 0.0, chosen(0.02, low=4.0)) > excess_of_sum(COIN, 64, 0.0, chosen(0.02))


@pytest.mark.parametrize("times", [2, 9, 128])
def test_the_mean_beyond_the_highest_node_counts_in_full(times: int) -> None:
    law = SignedLaw(x=COIN.x, p=COIN.p, beyond=0.125)
    found = excess_of_sum(law, times, 0.0, chosen(0.02))
    assert found >= excess_of_coins(times, 0.0) + times * 0.125


def test_heavy_tails_on_both_sides_keep_their_sums() -> None:
    """The sum of two numbers of either sign over thirty orders of magnitude, against all pairs."""
    x = np.concatenate((-np.geomspace(1e25, 1e-5, 60), np.geomspace(1e-5, 1e30, 60)))
    p = np.abs(x) ** -0.3
    p /= p.sum()
    law = SignedLaw(x=x, p=p, beyond=0.0)
    pairs = np.maximum(np.add.outer(x, x), 0.0)
    assert mean_excess(law, law, 0.0) == pytest.approx(float(p @ pairs @ p), rel=1e-12)
    both = np.add.outer(x, x).ravel()
    weight = np.multiply.outer(p, p).ravel()
    order = np.argsort(both)
    both, weight = both[order], weight[order]
    above, moment = np.cumsum(weight[::-1])[::-1], np.cumsum((weight * both)[::-1])[::-1]
    first = np.searchsorted(both, -both, side="right")
    inside = first < both.size
    true = math.fsum(weight[inside] * (moment[first[inside]] + both[inside] * above[first[inside]]))
    found = excess_of_sum(law, 4, 0.0, chosen(0.05))
    assert true * (1.0 - 1e-9) <= found <= 1.02 * true
