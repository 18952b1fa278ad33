"""Chords of the privacy profile: at least the true chord, to many digits, and wrong in epsilon itself."""

import math
import random

import mpmath
import pytest

from privcore import Problem, find_problem
from privcore.numerics.profile_chord import LARGEST_LOSS, LARGEST_RISE, epsilon_above, epsilon_below

DIGITS = mpmath.mpf(10) ** -70  # the reference is computed with 80 digits
TIGHT = 1e-9  # relative to epsilon: the slacks are 1e-12 and 4e-15


@pytest.fixture(autouse=True)
def many_digits() -> object:
    with mpmath.workdps(80):
        yield


def drawn_deltas(rng: random.Random) -> list[float]:
    """Three different deltas in order."""
    return sorted(10.0 ** -rng.uniform(0.01, rng.choice([1.0, 12.0, 300.0])) for _ in range(3))


def test_the_chord_is_never_below_the_true_chord_and_close_to_it() -> None:
    rng = random.Random(24)
    for _ in range(300):
        left, delta, right = drawn_deltas(rng)
        least = 10.0 ** rng.uniform(-9, 2.5)
        most = least + 10.0 ** rng.uniform(-12, 2.0)
        share = (mpmath.mpf(delta) - left) / (mpmath.mpf(right) - left)
        true = mpmath.log((1 - share) * mpmath.exp(most) + share * mpmath.exp(least))
        bound = epsilon_above(delta, (left, most), (right, least))
        assert bound >= true * (1 - DIGITS)
        if most - least < 2.0 and share < 0.9:
            assert bound <= true * (1 + TIGHT)


def test_the_extension_is_never_above_the_true_extension_and_close_to_it() -> None:
    rng, used = random.Random(25), 0
    for _ in range(600):
        one, two, three = drawn_deltas(rng)
        before = rng.random() < 0.5
        delta, near, far = (one, two, three) if before else (three, two, one)
        least = 10.0 ** rng.uniform(-6, 2.5)
        most = least + (-1 if before else 1) * least * rng.random()
        ratio = (mpmath.mpf(near) - delta) / (mpmath.mpf(far) - near)
        inside = 1 + ratio * (1 - mpmath.exp(mpmath.mpf(most) - mpmath.mpf(least)))
        bound = epsilon_below(delta, (near, least), (far, most))
        if inside <= 0:
            assert bound == 0.0
            continue
        true = least + mpmath.log(inside)
        assert bound <= max(true, 0) * (1 + DIGITS)
        if before and ratio < 10 and least - most < 2.0:
            assert bound >= true - TIGHT * least
        if not before and inside > 1.001 - LARGEST_LOSS and most - least < LARGEST_RISE:
            used += 1
            assert bound >= max(0, true - TIGHT * least)
    assert used >= 20


def test_equal_and_infinite_ends_give_no_better_end() -> None:
    assert epsilon_above(2e-6, (1e-6, 1.0), (1e-5, 1.0)) == 1.0
    assert epsilon_above(2e-6, (1e-6, 1.0), (1e-5, math.inf)) == 1.0
    assert epsilon_above(2e-6, (1e-6, 0.0), (1e-5, 0.0)) == 0.0
    assert epsilon_below(1e-6, (2e-6, 1.0), (1e-5, math.inf)) == 1.0
    assert epsilon_below(3e-5, (1e-5, 1.0), (1e-6, math.inf)) == 0.0


def response(delta: float) -> Problem:
    """Randomized response with epsilon 2, which one step releases."""
    return find_problem("response-allocation-epsilon").from_fields(
        {"local_epsilon": 2.0, "steps": 1, "delta": delta}
    )


def test_a_chord_in_epsilon_itself_would_be_below_the_truth() -> None:
    at_zero = math.expm1(2.0) / (1.0 + math.exp(2.0))  # delta of randomized response at epsilon 0
    middle = at_zero / 2.0
    true = math.log((1.0 + math.exp(2.0)) / 2.0)
    ours = epsilon_above(middle, (1e-300, 2.0), (at_zero, 0.0))
    assert true == pytest.approx(ours, rel=1e-9)
    chord_in_epsilon = (2.0 + 0.0) / 2.0
    assert ours > chord_in_epsilon + 0.4
