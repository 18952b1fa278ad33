"""Summed scores of DP-SGD canaries, and separate audits of expected counts."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcore import Answer, Status
from privcore.auditing.expected import Scores
from privcore.auditing.optimal import expected_correct
from tests.privcore.draws import answer

RATE = 4096 / 50_000
FOUR_ERRORS = 4.0
"""Standard errors by which a simulation may differ."""


def summed(**fields: Any) -> Answer:
    found = answer("audit-dpsgd-correct", "auditing.summed", **fields)
    assert found.ok
    return found


def planned(method: str, **fields: Any) -> Answer:
    return answer("audit-planned-epsilon", method, **{"mu": 1.0, "delta": 1e-5, **fields})


# ------------------------------------------------------------------------------------ summed scores


@pytest.mark.parametrize("guesses", [1, 40, 1500, 99_999, 100_000])
@pytest.mark.parametrize("steps", [1, 4, 100])
def test_without_subsampling_the_sum_is_one_gaussian_canary(guesses: int, steps: int) -> None:
    """Every step includes the canary, so the sum is shifted by T and has the deviation sigma sqrt(T)."""
    found = summed(canaries=100_000, guesses=guesses, sigma=3.0, sampling_probability=1.0, steps=steps)
    truth = expected_correct(100_000, guesses, math.sqrt(steps) / 3.0)
    assert found.lower <= truth * (1.0 + 1e-12)
    assert found.upper >= truth * (1.0 - 1e-12)
    assert found.value == pytest.approx(truth, rel=2e-9)


@pytest.mark.parametrize(
    ("sigma", "guesses", "printed"),
    [(15.507, 500, 317), (8.2535, 300, 228), (4.5147, 200, 183), (2.5765, 300, 296)],
)
def test_expected_counts_are_those_of_the_reproduction(sigma: float, guesses: int, printed: int) -> None:
    found = summed(canaries=5000, guesses=guesses, sigma=sigma, sampling_probability=RATE, steps=2500)
    assert round(found.value or 0.0) == printed
    assert 0.0 < found.upper - found.lower < 1e-5


def test_a_simulation_has_as_many_correct_guesses() -> None:
    canaries, guesses, sigma, rate, steps = 2000, 200, 2.0, 0.1, 400
    rng = np.random.default_rng(5)
    counts = []
    for _ in range(400):
        inside = rng.random(canaries) < 0.5
        scores = sigma * math.sqrt(steps) * rng.standard_normal(canaries)
        scores += inside * rng.binomial(steps, rate, canaries)
        order = np.argsort(scores)
        counts.append(int(inside[order[-guesses // 2 :]].sum() + (~inside[order[: guesses // 2]]).sum()))
    found = summed(canaries=canaries, guesses=guesses, sigma=sigma, sampling_probability=rate, steps=steps)
    error = float(np.std(counts)) / math.sqrt(len(counts))
    # Fixed numbers of guesses instead of fixed thresholds change the mean by the order of 1 / guesses.
    assert abs(float(np.mean(counts)) - (found.value or 0.0)) <= FOUR_ERRORS * error + 0.1


@settings(max_examples=40, deadline=None)
@given(
    sigma=st.floats(0.01, 50.0),
    rate=st.floats(1e-6, 1.0),
    steps=st.integers(1, 3000),
    share=st.floats(1e-6, 1.0),
)
def test_a_guess_is_no_worse_than_a_coin_and_both_ends_are_close(
    sigma: float, rate: float, steps: int, share: float
) -> None:
    low, high = Scores(sigma, rate, steps).correct(share)
    assert 0.5 * share * (1.0 - 1e-9) <= low <= high <= share * (1.0 + 1e-9)
    assert high - low <= 1e-9 * share


def test_less_noise_lets_more_guesses_be_correct() -> None:
    shared = {"canaries": 5000, "guesses": 300, "sampling_probability": RATE, "steps": 2500}
    found = [summed(sigma=sigma, **shared) for sigma in (1e6, 20.0, 5.0, 1.0, 0.01)]
    for noisier, other in itertools.pairwise(found):
        assert noisier.lower < other.upper
    assert found[0].value == pytest.approx(150.0, abs=0.1)
    assert found[-1].value == pytest.approx(300.0, abs=1e-6)


def test_without_a_guess_none_is_correct() -> None:
    found = summed(canaries=5, guesses=0, sigma=1.0, sampling_probability=0.5, steps=3)
    assert (found.lower, found.upper, found.value) == (0.0, 0.0, 0.0)


# ------------------------------------------------------------------------------------ each audit alone


@pytest.mark.parametrize(
    ("canaries", "guesses", "approximate", "steinke"),
    [
        (100_000, 1500, "2.7867", "2.6688"),
        (100_000, 750, "2.9078", "2.5314"),
        (10**7, 10**4, "3.6116", "0.3788"),
    ],
)
def test_an_audit_of_expected_counts_refutes_what_was_printed(
    canaries: int, guesses: int, approximate: str, steinke: str
) -> None:
    for method, printed in (("approximate", approximate), ("steinke", steinke)):
        found = planned(f"auditing.planned{method}", canaries=canaries, guesses=guesses)
        assert found.lower == pytest.approx(float(printed), abs=5.1e-5)
        assert found.upper == math.inf


@pytest.mark.parametrize("guesses", [0, 1, 50, 1000])
def test_the_audit_that_is_planned_refutes_no_less_than_each_alone(guesses: int) -> None:
    fields = {"canaries": 1000, "guesses": guesses}
    both = planned("auditing.planned", **fields)
    alone = [planned(f"auditing.planned{method}", **fields) for method in ("approximate", "steinke")]
    best = max(found.lower for found in alone)
    assert best <= both.lower <= 1.01 * best
    assert all(found.lower <= both.upper for found in alone)
    assert {found.detail.split(";")[0] for found in alone} == {both.detail.split(";")[0]}


@pytest.mark.parametrize("method", ["approximate", "steinke"])
def test_an_audit_without_a_model_is_none_of_a_family(method: str) -> None:
    found = planned(f"auditing.planned{method}", canaries=1000, guesses=10, family="gaussian")
    assert found.status is Status.NOT_APPLICABLE
    assert found.detail == "The audit refutes (epsilon, delta)-DP only."
