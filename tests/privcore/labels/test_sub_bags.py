"""Bounds of a mean from bags and parts of bags: bags that choose the range bound nothing, errors are rare."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from privcore.labels.draws import ends
from privcore.numerics.bounded_mean import betting_lower, betting_upper

Samples = NDArray[np.float64]

POWER = 0.3
OTHERS = 8
MEAN = (1.0 + POWER) ** -OTHERS
"""Mean of the product over all other examples."""


class Products:
    """Products of a power of a uniform variable for each example: more examples give a smaller product."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, others: int, number: int) -> Samples:
        return np.asarray((self.rng.random((number, others)) ** POWER).prod(axis=1))


def bounded(samples: Samples, error: float, seed: int = 1) -> tuple[float, float]:
    """Return the bounds of samples in [0, 1]."""
    return ends(samples, 1.0, OTHERS, error, 0.0, Products(seed))


def betted(samples: Samples, error: float) -> tuple[float, float]:
    """Return the bounds about the whole range."""
    return betting_lower(samples, error), betting_upper(samples, error)


def test_the_first_twentieth_alone_chooses_and_is_not_used_again() -> None:
    wide, narrow = np.tile([0.0, 1.0], 1000), np.tile([0.2, 0.201], 1000)
    after_wide = np.concatenate([wide[:100], narrow[100:]])
    assert bounded(after_wide, 0.1) == betted(narrow[100:], 0.1)
    after_narrow = np.concatenate([narrow[:100], wide[100:]])
    assert bounded(after_narrow, 0.1) != betted(wide[100:], 0.1)
    assert bounded(after_narrow, 0.1) != betted(after_narrow, 0.1)


def test_the_other_samples_bound_the_mean_without_the_first_ones() -> None:
    samples = Products(3)(OTHERS, 2000)
    spread, shifted = np.array([0.0, 1.0] * 50), samples[100:]
    first, second = (bounded(np.concatenate([pilot, shifted]), 0.1) for pilot in (spread, spread[::-1]))
    assert first == second == betted(shifted, 0.1)


def test_with_one_other_example_nothing_is_chosen_and_no_sample_is_left_out() -> None:
    samples = np.tile([0.2, 0.201], 500)
    assert ends(samples, 1.0, 1, 0.1, 0.0, Products(1)) == betted(samples, 0.1)


@pytest.mark.thorough
def test_over_many_seeds_either_bound_fails_no_more_often_than_allowed() -> None:
    """At confidence 0.5, with samples for which both ranges are chosen."""
    repetitions, error = 300, 0.25
    below = above = whole = 0
    for seed in range(repetitions):
        samples = Products(seed)(OTHERS, 1000)
        low, high = bounded(samples, error, seed=1000 + seed)
        whole += (low, high) == betted(samples[50:], error)
        below, above = below + (high < MEAN), above + (low > MEAN)
    assert 0.1 * repetitions < whole < 0.9 * repetitions, "each range is chosen for some seeds"
    allowed = error * repetitions + 4.0 * math.sqrt(error * (1.0 - error) * repetitions)
    assert max(below, above) <= allowed
    assert below + above <= 0.35 * repetitions, "bounds by bets are wider than they need to be"
