"""Guesses from scores: choice of the canaries, ties, and rejected input."""

import math

import numpy as np
import pytest

from privcore import DomainError
from privcore.auditing.optimal import expected_correct
from privcore.auditing.scores import check_included, correct_if_shuffled, guess

FOUR_ERRORS = 4.0


def test_the_highest_scores_are_in_and_the_lowest_are_out() -> None:
    scores = np.array([5.0, -3.0, 0.0, 9.0, -8.0, 1.0, math.inf])
    made = guess(scores, 4)
    assert sorted(made.inside.tolist()) == [3, 6]
    assert sorted(made.outside.tolist()) == [1, 4]
    assert made.correct(np.array([0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])) == 2


def test_one_sided_guesses_are_the_highest_scores() -> None:
    made = guess(np.array([5.0, -3.0, 0.0, 9.0]), 3, one_sided=True)
    assert sorted(made.inside.tolist()) == [0, 2, 3]
    assert made.outside.size == 0


def test_all_canaries_may_be_guessed_and_none() -> None:
    scores = np.array([0.4, 0.1, 0.3, 0.2])
    assert guess(scores, 4).correct(np.array([1.0, 0.0, 1.0, 0.0])) == 4
    assert guess(scores, 0).correct(np.array([1.0, 0.0, 1.0, 0.0])) == 0
    assert guess(scores, 0, one_sided=True).inside.size == 0


def test_equal_scores_get_equal_guesses_and_zeros_are_equal() -> None:
    scores = np.zeros(1000)
    signed = np.where(np.arange(1000) % 2, 0.0, -0.0)
    made, again = guess(scores, 100), guess(signed, 100)
    assert (made.inside.tolist(), made.outside.tolist()) == (again.inside.tolist(), again.outside.tolist())


def test_ties_favour_no_row() -> None:
    """A file may list the included canaries first: constant scores must not distinguish them."""
    included = np.repeat([1.0, 0.0], 500)
    correct = [guess(np.full(1000, float(level)), 1000).correct(included) for level in range(400)]
    assert abs(float(np.mean(correct)) - 500.0) <= FOUR_ERRORS * float(np.std(correct)) / math.sqrt(400)
    assert float(np.std(correct)) > 5.0


def test_scores_without_a_leak_are_guessed_by_chance_and_others_as_expected() -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2, 100_000).astype(float)
    noise = rng.standard_normal(bits.size)
    blind, seeing = guess(noise, 1500).correct(bits), guess(noise + bits, 1500).correct(bits)
    assert abs(blind - 750) <= FOUR_ERRORS * math.sqrt(375)
    assert abs(seeing - expected_correct(100_000, 1500, 1.0)) <= FOUR_ERRORS * 8.0


def test_shuffled_bits_lead_to_counts_of_chance() -> None:
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, 2000).astype(float)
    scores = 3.0 * bits + rng.standard_normal(2000)
    made = guess(scores, 200)
    assert made.correct(bits) > 195
    counts = correct_if_shuffled(scores, bits, made, 2000)
    assert counts.shape == (2000,)
    assert abs(counts.mean() - 100.0) <= FOUR_ERRORS * math.sqrt(50.0 / 2000) + 1.0
    assert 0.85 * 50.0 <= counts.var() <= 1.15 * 50.0
    assert (counts == correct_if_shuffled(scores, bits, made, 2000)).all()


@pytest.mark.parametrize(
    ("scores", "guesses", "sentence"),
    [
        ([0.1, math.nan, 0.2], 2, "Expected scores without NaN, got NaN in row 2."),
        ([0.1, 0.2], 4, "Expected guesses <= canaries, got guesses=4, canaries=2."),
        ([0.1, 0.2, 0.3, 0.4], 3, "Expected an even number of guesses, half in and half out, got 3."),
    ],
)
def test_what_cannot_be_guessed_is_refused(scores: list[float], guesses: int, sentence: str) -> None:
    with pytest.raises(DomainError) as refused:
        guess(np.array(scores), guesses)
    assert str(refused.value) == sentence


def test_bits_are_0_and_1_from_fair_coins() -> None:
    check_included(np.array([1.0]))
    check_included(np.ones(20))  # happens once in half a million
    check_included(np.random.default_rng(1).integers(0, 2, 10**6).astype(float))
    with pytest.raises(DomainError, match=r"Expected inclusion bits 0 or 1, got 2 in row 3\."):
        check_included(np.array([0.0, 1.0, 2.0]))
    for inside in (100, 900, 1000):
        with pytest.raises(DomainError, match=f"probability 1/2 each, got {inside} of 1000 included"):
            check_included(np.repeat([1.0, 0.0], [inside, 1000 - inside]))
