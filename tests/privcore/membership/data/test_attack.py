"""Counts of an attack: intervals of another library, and the frequency of too high lower ends."""

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import binomtest

from privcore import Answer, Point, evaluate, find
from privcore.numerics.clopper_pearson import rate_at_least
from tests.privcore.draws import problem


def ask(true_positives: int, members: int, false_positives: int, nonmembers: int, **fields: Any) -> Answer:
    asked = problem(
        "membership-attack-advantage",
        true_positives=true_positives,
        members=members,
        false_positives=false_positives,
        nonmembers=nonmembers,
        **fields,
    )
    return evaluate(Point(problem=asked, method=find("membership.clopper")()))


@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 5), (1, 5), (5, 5), (37, 100), (99, 1000), (1000, 1000)]
)
def test_rates_have_the_bounds_of_another_library(successes: int, trials: int) -> None:
    for error in (0.4, 0.025, 1e-6):
        found = rate_at_least(trials, successes, error)
        other = binomtest(successes, trials, alternative="greater").proportion_ci(1.0 - error, "exact").low
        assert found == pytest.approx(other, rel=1e-7, abs=1e-12)
        assert found <= other


def test_at_the_bound_so_many_successes_are_as_unlikely_as_the_error() -> None:
    for successes, trials in ((1, 10**9), (10**9, 10**9), (10**8, 10**9), (999_999, 10**6), (7, 10)):
        for error in (0.25, 0.025, 1e-9):
            p = rate_at_least(trials, successes, error)
            tail = float(betainc(successes, trials - successes + 1.0, p))
            assert tail <= error * (1.0 + 1e-9)
            assert tail == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize("odds", [0.3, 0.9, 1.0, 1.5, 4.0])
@pytest.mark.parametrize(("true_rate", "false_rate"), [(0.9, 0.05), (0.5, 0.3), (0.05, 0.002), (1.0, 0.0)])
def test_the_lower_end_is_too_high_no_more_often_than_it_says(
    true_rate: float, false_rate: float, odds: float
) -> None:
    """The best attack gains at least as much as this attack, so this attack's gain is the hardest truth."""
    members, nonmembers, level, draws = 60, 90, 0.8, 150
    truth = true_rate - odds * false_rate
    if odds < 1.0:
        truth = 1.0 - false_rate - (1.0 - true_rate) / odds
    rng = np.random.default_rng(1)
    positives = rng.binomial(members, true_rate, draws), rng.binomial(nonmembers, false_rate, draws)
    held = [
        ask(int(t), members, int(f), nonmembers, odds=odds, confidence_level=level).lower <= max(0.0, truth)
        for t, f in zip(*positives, strict=True)
    ]
    assert sum(held) >= level * draws


def test_many_trials_come_near_the_gain_of_the_attack() -> None:
    n = 10**9
    for odds, gain in ((1.0, 0.5), (2.0, 0.4), (0.8, 0.9 - 0.4 / 0.8)):
        answer = ask(6 * n // 10, n, n // 10, n, odds=odds)
        assert gain - 2e-4 < answer.lower < gain


def test_both_rates_are_tested_at_once_which_proves_more_than_two_bounds() -> None:
    answer = ask(90, 100, 5, 100, confidence_level=0.95)
    root = 0.95**0.5  # members and non-members are independent: each bound may have this confidence
    one = binomtest(90, 100, alternative="greater").proportion_ci(root, "exact").low
    other = binomtest(5, 100, alternative="less").proportion_ci(root, "exact").high
    normal = 0.85 - 1.645 * (0.9 * 0.1 / 100 + 0.05 * 0.95 / 100) ** 0.5
    assert one - other + 0.5 * (normal - one + other) < answer.lower < 0.85
    assert (answer.upper, answer.confidence) == (1.0, 0.95)
    assert answer.detail == "90 of 100 members, 5 of 100 others"


def test_an_attack_that_is_always_right_is_not_proved_to_be_so() -> None:
    answer = ask(100, 100, 0, 100)
    assert 2.0 * (1.0 - 0.95**0.5) ** 0.01 - 1.0 < answer.lower < 0.05**0.01


def test_an_attack_that_guesses_or_is_wrong_proves_nothing() -> None:
    for counts in ((50, 100, 50, 100), (0, 10, 10, 10), (0, 1, 0, 1), (1, 1, 0, 1)):
        for odds in (1e-6, 1.0, 1e6):
            assert ask(*counts, odds=odds).lower == 0.0


def test_odds_below_1_weigh_the_members_that_are_missed() -> None:
    rates = [rate_at_least(100, found, 1.0 - math.sqrt(0.95)) for found in (95, 60)]
    separate = rates[1] - 2.0 * (1.0 - rates[0])
    assert separate < ask(95, 100, 40, 100, odds=0.5).lower < 0.6 - 2.0 * 0.05
    assert ask(95, 100, 40, 100, odds=2.0).lower == 0.0


def test_a_higher_confidence_proves_less() -> None:
    lower = [ask(90, 100, 5, 100, confidence_level=q).lower for q in (0.5, 0.9, 0.99, 1.0 - 1e-9)]
    assert lower == sorted(lower, reverse=True)
    assert 0.75 < lower[0] < 0.85
    assert lower[-1] < 0.6


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((5, 4, 0, 1), "Expected true_positives <= members, got true_positives=5, members=4."),
        ((1, 4, 9, 1), "Expected false_positives <= nonmembers, got false_positives=9, nonmembers=1."),
        ((-1, 4, 0, 1), "Expected true_positives in {0, ..., 1000000000}, got true_positives=-1."),
        ((0, 0, 0, 1), "Expected members in {1, ..., 1000000000}, got members=0."),
    ],
)
def test_counts_that_contradict_one_another_are_refused(counts: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        ask(*counts)
