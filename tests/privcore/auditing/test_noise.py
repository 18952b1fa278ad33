"""Noise multipliers of DP-SGD that the linear programme of Theorem 9 refutes, and Algorithm 3 does not."""

from typing import Any

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from privcore.auditing.problems import AuditMu
from privcore.auditing.programme import solve
from tests.privcore.draws import answer

SOME: dict[str, Any] = {"canaries": 100, "guesses": 80, "correct": 60}
SAMPLED = {"sampling_probability": 0.1, "steps": 500}


def by_recursion(counts: dict[str, int], **sampling: Any) -> float:
    """The noise multiplier that Algorithm 3 refutes."""
    detail = answer("audit-dpsgd-epsilon", "auditing.dpsgd", **counts, **sampling, delta=1e-5).detail
    return float(detail.partition("noise multiplier ")[2].partition(" ")[0])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("canaries", "guesses", "correct"),
    [(100, 80, 60), (1000, 100, 90), (30, 20, 20), (100, 100, 62), (1000, 1000, 527), (2000, 2000, 1039)],
)
def test_one_step_without_sampling_is_the_gaussian_mechanism(
    canaries: int, guesses: int, correct: int
) -> None:
    counts = {"canaries": canaries, "guesses": guesses, "correct": correct}
    noise = answer("audit-dpsgd-noise", "auditing.noise", **counts, sampling_probability=1, steps=1).upper
    mu = answer("audit-mu", "auditing.mu", **counts).lower
    assert 1.0 / mu <= noise * 1.0002
    assert noise <= 1.004 / mu


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("counts", "least", "most"),
    [(SOME, 0.94, 0.95), ({"canaries": 1000, "guesses": 100, "correct": 90}, 0.96, 0.98)],
)
def test_the_programme_refutes_smaller_noise_multipliers_than_the_recursion(
    counts: dict[str, int], least: float, most: float
) -> None:
    noise = answer("audit-dpsgd-noise", "auditing.noise", **counts, **SAMPLED).upper
    assert least <= noise / by_recursion(counts, **SAMPLED) <= most


@pytest.mark.parametrize(
    ("counts", "sampling", "delta"),
    [
        ({"canaries": 209, "guesses": 183, "correct": 105}, (0.104, 18), 1.1e-3),
        ({"canaries": 1000, "guesses": 1000, "correct": 527}, (0.1, 100), 1e-5),
    ],
)
def test_no_epsilon_that_is_refuted_for_every_mechanism_is_accepted(
    counts: dict[str, int], sampling: tuple[float, int], delta: float
) -> None:
    fields = {"sampling_probability": sampling[0], "steps": sampling[1], "delta": delta}
    free = answer("audit-epsilon", "auditing.tightest", **counts, delta=delta).lower
    assert (answer("audit-dpsgd-epsilon", "auditing.dpsgd", **counts, **fields).value or 0.0) < free
    assert (answer("audit-dpsgd-epsilon", "auditing.tightestdpsgd", **counts, **fields).value or 0.0) >= free


def test_beyond_500_guesses_it_is_the_noise_multiplier_of_the_recursion() -> None:
    counts = {"canaries": 5000, "guesses": 600, "correct": 540}
    sampling = {"sampling_probability": 1, "steps": 1}
    noise = answer("audit-dpsgd-noise", "auditing.noise", **counts, **sampling).upper
    assert noise == pytest.approx(by_recursion(counts, **sampling), rel=1e-5)


@pytest.mark.thorough
def test_a_refuted_noise_multiplier_has_a_p_value_at_the_level_by_another_privacy_curve() -> None:
    """The linear programme for the privacy profile of another library."""
    noise = answer("audit-dpsgd-noise", "auditing.noise", **SOME, **SAMPLED).upper
    at, below = (largest_probability(noise * factor) for factor in (1.0, 0.98))
    assert 0.0495 < at <= 0.0501
    assert below > 0.051


def largest_probability(noise: float) -> float:
    """The largest probability of the counts under DP-SGD with a noise multiplier."""
    loss = from_gaussian_mechanism(
        noise, sampling_prob=SAMPLED["sampling_probability"], value_discretization_interval=1e-3
    ).self_compose(int(SAMPLED["steps"]))
    epsilons = np.linspace(0.0, 2.4, 61)
    deltas = np.array(loss.get_delta_for_epsilon(epsilons))
    # delta(-s) = 1 - e^-s + e^-s delta(s)
    negative = 1.0 - np.exp(-epsilons) * (1.0 - deltas)
    s, profile = np.append(-epsilons[:0:-1], epsilons), np.append(negative[:0:-1], deltas)
    solved = solve(AuditMu(**SOME), s, profile)
    assert solved is not None
    return float(solved.counts[SOME["correct"] :].sum())
