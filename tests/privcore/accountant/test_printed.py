"""Numbers that the tests of dp-accounting, jax_privacy and Opacus print, as upper bounds or estimates."""

import math

import pytest
import scipy
from dp_accounting import NeighboringRelation, dp_event

from privcore.accountant import PrivsweepAccountant, from_opacus

ADD = NeighboringRelation.ADD_OR_REMOVE_ONE
RATE, STEPS, DELTA = 1024 / 50_000, 10_000, 1e-5
NOISY = dp_event.GaussianDpEvent(4.0)


def interval(event: dp_event.DpEvent, count: int, delta: float) -> tuple[float, float]:
    accountant = PrivsweepAccountant(ADD)
    accountant.compose(event, count)
    return accountant.get_epsilon_interval(delta)


def test_jax_privacy_prints_the_epsilon_of_poisson_sampling() -> None:
    lower, upper = interval(dp_event.PoissonSampledDpEvent(RATE, NOISY), STEPS, DELTA)
    assert lower <= 2.09245  # an upper bound
    assert upper == pytest.approx(2.09245, rel=2e-4)  # by Renyi divergences, it is 2.27535


@pytest.mark.parametrize(
    ("largest", "printed"),
    [(1024, 6.87451), (1056, 4.06910), (1088, 2.45377), (1120, 2.11659), (1152, 2.09310)],
)
def test_jax_privacy_prints_upper_bounds_of_truncated_batches(largest: int, printed: float) -> None:
    event = dp_event.TruncatedSubsampledGaussianDpEvent(50_000, RATE, largest, 4.0)
    lower, upper = interval(event, STEPS, DELTA)
    assert lower <= printed
    assert upper <= printed * 1.002
    if largest == 1024:
        assert upper < 3.63


def test_jax_privacy_prints_upper_bounds_for_users_with_two_examples() -> None:
    poisson = dp_event.MixtureOfGaussiansDpEvent(4.0, range(3), scipy.stats.binom(2, RATE).pmf(range(3)))
    fixed = scipy.stats.hypergeom(50_000, 2, 1024).pmf(range(3))
    for event, printed in (
        (poisson, 5.00008),
        (dp_event.MixtureOfGaussiansDpEvent(4.0, [0, 2, 4], fixed), 11.48878),
    ):
        lower, upper = interval(event, STEPS, DELTA)
        assert lower <= printed  # with a loss step of 0.01
        assert 0.9 * printed <= upper <= 1.002 * printed


def test_dp_accounting_prints_the_epsilon_of_mixtures() -> None:
    found = PrivsweepAccountant(ADD, tolerance=1e-4)
    found.compose(dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2]), 3)
    found.compose(dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 2.0, 3.0], [0.33, 0.34, 0.33]), 2)
    lower, upper = found.get_epsilon_interval(1e-6)
    assert lower <= 17.193115 <= upper


def test_dp_accounting_prints_an_upper_bound_of_truncated_batches() -> None:
    found = PrivsweepAccountant(ADD)
    for examples, count in ((4, 3), (3, 2)):
        found.compose(dp_event.TruncatedSubsampledGaussianDpEvent(examples, 0.5, 2, 1.0), count)
    lower, upper = found.get_epsilon_interval(1e-6)
    assert lower <= 17.904330
    assert upper < 17.5


def test_opacus_prints_two_upper_bounds_and_an_estimate_below_the_truth() -> None:
    by_renyi, by_losses, by_limit = 7.32911117143, 6.777395712150674, 6.6
    lower, upper = from_opacus([(1.5, 0.04, math.floor(90 / 0.04))]).get_epsilon_interval(1e-5)
    assert by_limit < lower
    assert lower <= by_losses <= upper * 1.002
    assert upper <= by_renyi


@pytest.mark.parametrize(("steps", "noise"), [(2250, 1.34765625), (2000, 1.2915)])
def test_opacus_calibrates_noise_for_the_epsilon_of_poisson_sampling(steps: int, noise: float) -> None:
    lower, upper = from_opacus([(noise, 0.04, steps)]).get_epsilon_interval(1e-5)
    assert lower <= 8.0
    assert upper >= 7.9
