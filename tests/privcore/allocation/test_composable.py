"""Privacy loss distributions of random allocation compose in dp-accounting; given ones can be allocated."""

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from privcore import Answer, DomainError, Point, evaluate, find
from privcore.allocation.reduction import LOSS_STEP, allocated, allocation_pld
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.pld import from_pld, to_pld
from tests.privcore.draws import problem

pytestmark = pytest.mark.sampled(8)

CERTIFIED = find("allocation.certified").from_knobs({"tolerance": 1e-3})
SCHEMES: list[tuple[dict[str, Any], float]] = [
    ({"sigma": 1.0, "steps": 1000}, 1e-8),
    ({"sigma": 0.5, "steps": 100, "epochs": 3}, 1e-6),
    ({"sigma": 1.0, "steps": 1000, "participations": 10}, 1e-8),
    ({"sigma": 5.0, "steps": 7}, 1e-5),
]


def certified(**fields: Any) -> Answer:
    return evaluate(Point(problem=problem("allocation-epsilon", **fields), method=CERTIFIED))


@pytest.mark.parametrize(("scheme", "delta"), SCHEMES, ids=str)
def test_a_distribution_is_an_upper_bound_in_both_directions_and_close(
    scheme: dict[str, Any], delta: float
) -> None:
    pld = allocation_pld(**scheme)
    for pmf, adjacency in ((pld._pmf_remove, "remove"), (pld._pmf_add, "add")):
        bracket = certified(**scheme, delta=delta, adjacency=adjacency)
        epsilon = pmf.get_epsilon_for_delta(delta)
        assert bracket.lower <= epsilon + 1e-9
        assert epsilon <= 1.003 * bracket.upper


def test_epochs_composed_by_dp_accounting_agree_with_ours() -> None:
    one = allocation_pld(1.0, 10_000)
    bracket = certified(sigma=1.0, steps=10_000, epochs=10, delta=1e-8)
    epsilon = one.self_compose(10).get_epsilon_for_delta(1e-8)
    assert bracket.lower <= epsilon <= 1.003 * bracket.upper


def test_an_allocation_and_another_mechanism_compose() -> None:
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(2.0, value_discretization_interval=LOSS_STEP)
    epsilon = allocation_pld(1.0, 100).compose(gaussian).get_epsilon_for_delta(1e-6)
    alone = certified(sigma=1.0, steps=100, delta=1e-6)
    everything_public = find("unamplified.exact")
    unamplified = evaluate(
        Point(
            problem=problem("unamplified-epsilon", sigma=1.0 / math.sqrt(1.25), delta=1e-6),
            method=everything_public(),
        )
    )
    assert alone.upper < epsilon < unamplified.lower


@pytest.mark.parametrize("copies", [1, 4])
def test_a_gaussian_mechanism_of_dp_accounting_is_allocated_like_ours(copies: int) -> None:
    """Four releases in one step are one release with half the noise."""
    given = privacy_loss_distribution.from_gaussian_mechanism(1.0).self_compose(copies)
    epsilon = allocated(given, 1000).get_epsilon_for_delta(1e-8)
    bracket = certified(sigma=1.0 / math.sqrt(copies), steps=1000, delta=1e-8)
    assert bracket.lower <= epsilon <= 1.003 * bracket.upper


def test_two_given_mechanisms_are_never_mistaken_for_each_other() -> None:
    noisy, clear = (privacy_loss_distribution.from_gaussian_mechanism(s) for s in (4.0, 1.0))
    epsilons = [allocated(pld, 50).get_epsilon_for_delta(1e-6) for pld in (noisy, clear, noisy)]
    assert epsilons[0] == epsilons[2] < 0.5 * epsilons[1]


def test_a_mechanism_with_impossible_outcomes_keeps_them() -> None:
    """(0, delta)-privacy: with probability 0.1 the step that uses the example reveals everything."""
    given = privacy_loss_distribution.from_privacy_parameters(
        privacy_loss_distribution.common.DifferentialPrivacyParameters(0.0, 0.1)
    )
    law = from_pld(given)
    assert law.infinite == pytest.approx(0.1)
    pld = allocated(given, 2)
    assert pld.get_delta_for_epsilon(5.0) == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("loss_step", [1e-1, 1e-2, 1e-3])
def test_there_and_back_a_law_is_only_spread(loss_step: float) -> None:
    law = RatioDistribution(x=np.array([0.0, 0.5, 1.0, 3.0]), p=np.array([0.1, 0.3, 0.4, 0.2]), infinite=0.0)
    law = RatioDistribution(x=law.x / (law.p @ law.x) * 0.95, p=law.p, infinite=0.05)
    back = from_pld(to_pld(law, loss_step))
    assert back.p.sum() == pytest.approx(1.0)
    assert back.p @ back.x + back.infinite == pytest.approx(1.0)
    for kappa in (0.2, 0.6, 1.0, 1.5, 2.5):
        for sign in (1.0, -1.0):
            before = law.p @ np.maximum(sign * (law.x - kappa), 0.0)
            after = back.p @ np.maximum(sign * (back.x - kappa), 0.0)
            assert before <= after + 1e-12
            assert after <= before + loss_step**2 + 1e-9


def test_optimistic_distributions_and_too_many_losses_are_refused() -> None:
    optimistic = privacy_loss_distribution.from_gaussian_mechanism(1.0, pessimistic_estimate=False)
    with pytest.raises(DomainError, match="pessimistic"):
        allocated(optimistic, 10)
    with pytest.raises(DomainError, match="losses"):
        allocation_pld(1.0, 10, loss_step=1e-9)
    with pytest.raises(DomainError, match="participations"):
        allocation_pld(1.0, 10, 11)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sigma": -1.0},
        {"sigma": math.nan},
        {"steps": 0},
        {"participations": -1},
        {"epochs": -2},
        {"epochs": 2.5},
        {"loss_step": 0.0},
        {"loss_step": -1e-3},
    ],
    ids=str,
)
def test_numbers_outside_their_domain_are_refused(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"sigma": 1.0, "steps": 10, "participations": 1, "epochs": 1, "loss_step": 1e-3}
    allocation_pld(**good | {"steps": 10.0})
    with pytest.raises(DomainError, match=next(iter(wrong))):
        allocation_pld(**good | wrong)
