"""Behaviour of the accountant as a part of dp-accounting: support, refusals, copies and limits."""

import copy
import math
import pickle
import subprocess
import sys

import pytest
from dp_accounting import NeighboringRelation, UnsupportedEventError, dp_event

from privcore.accountant import PrivsweepAccountant
from privcore.errors import DomainError
from tests.privcore.accountant.trees import EpsilonDeltaDpEvent

ADD, REPLACE, ZERO = (
    NeighboringRelation.ADD_OR_REMOVE_ONE,
    NeighboringRelation.REPLACE_ONE,
    NeighboringRelation.REPLACE_SPECIAL,
)
GAUSSIAN = dp_event.GaussianDpEvent(1.0)
SAMPLED = dp_event.PoissonSampledDpEvent(0.01, GAUSSIAN)


class UnknownDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """An event that nobody supports."""


def reason(accountant: PrivsweepAccountant, event: dp_event.DpEvent) -> str:
    """Return the reason for which an event is refused."""
    assert not accountant.supports(event)
    with pytest.raises(UnsupportedEventError) as raised:
        accountant.compose(event)
    return str(raised.value)


@pytest.mark.parametrize("relation", [ADD, REPLACE, ZERO])
def test_without_events_nothing_is_lost(relation: NeighboringRelation) -> None:
    accountant = PrivsweepAccountant(relation).compose(dp_event.NoOpDpEvent())
    assert [accountant.get_epsilon_interval(delta) for delta in (0.0, 1e-12, 1.0)] == [(0.0, 0.0)] * 3
    assert [accountant.get_delta_interval(epsilon) for epsilon in (0.0, 1.0, math.inf)] == [(0.0, 0.0)] * 3


@pytest.mark.parametrize(
    "event",
    [
        dp_event.NonPrivateDpEvent(),
        dp_event.ComposedDpEvent([SAMPLED, dp_event.SelfComposedDpEvent(dp_event.NonPrivateDpEvent(), 3)]),
        dp_event.GaussianDpEvent(0.0),
        dp_event.PoissonSampledDpEvent(0.5, dp_event.LaplaceDpEvent(0.0)),
        dp_event.SampledWithReplacementDpEvent(10, 3, dp_event.GaussianDpEvent(0.0)),
        dp_event.TruncatedSubsampledGaussianDpEvent(10, 0.5, 3, 0.0),
        dp_event.MixtureOfGaussiansDpEvent(0.0, [1.0], [1.0]),
        dp_event.DiscreteLaplaceDpEvent(math.inf, 2),
    ],
)
def test_a_step_without_noise_has_no_finite_epsilon(event: dp_event.DpEvent) -> None:
    accountant = PrivsweepAccountant(ADD).compose(event)
    assert accountant.get_epsilon_interval(0.5) == (math.inf, math.inf)
    assert accountant.get_epsilon(1.0) == math.inf
    assert accountant.get_delta_interval(100.0) == (1.0, 1.0)


@pytest.mark.parametrize(
    "event",
    [
        dp_event.PoissonSampledDpEvent(0.0, dp_event.GaussianDpEvent(0.0)),
        dp_event.GaussianDpEvent(math.inf),
        dp_event.SampledWithoutReplacementDpEvent(10, 0, GAUSSIAN),
        dp_event.TruncatedSubsampledGaussianDpEvent(10, 0.5, 0, 1.0),
        dp_event.MixtureOfGaussiansDpEvent(0.0, [0.0, 2.0], [1.0, 0.0]),
        dp_event.DiscreteLaplaceDpEvent(1.0, 0),
    ],
)
def test_a_step_that_never_uses_an_example_loses_nothing(event: dp_event.DpEvent) -> None:
    assert PrivsweepAccountant(ADD).compose(event).get_epsilon_interval(0.0) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (dp_event.UnsupportedDpEvent(), "describes no mechanism"),
        (UnknownDpEvent(), "`UnknownDpEvent` is not supported"),
        (dp_event.ZCDpEvent(0.5), "Renyi"),
        (dp_event.RepeatAndSelectDpEvent(GAUSSIAN, 2.0, 1.0), "no known dominating distribution"),
        (dp_event.SingleEpochTreeAggregationDpEvent(1.0, 4), "no known dominating distribution"),
        (dp_event.PoissonSampledDpEvent(0.5, SAMPLED), "must contain `GaussianDpEvent` or `Laplace"),
        (dp_event.SampledWithoutReplacementDpEvent(10, 2, dp_event.LaplaceDpEvent(1.0)), "must contain"),
        (dp_event.SampledWithoutReplacementDpEvent(10, 10, GAUSSIAN), "cannot keep its size"),
        (dp_event.SampledWithoutReplacementDpEvent(10, 11, GAUSSIAN), "`sample_size` must be an integer"),
        (dp_event.GaussianDpEvent(-1.0), "`noise_multiplier` must be at least 0, got -1.0"),
        (dp_event.GaussianDpEvent(math.nan), "`noise_multiplier`"),
        (dp_event.GaussianDpEvent(1e-200), "from 1e-100 to 1e+06"),
        (dp_event.PoissonSampledDpEvent(1.5, GAUSSIAN), "`sampling_probability` must be in [0, 1], got 1.5"),
        (dp_event.RandomizedResponseDpEvent(0.5, 3), "neighboring_relation must be `REPLACE_ONE` or"),
        (dp_event.MixtureOfGaussiansDpEvent(1.0, [-1.0], [1.0]), "at least 0"),
        (dp_event.MixtureOfGaussiansDpEvent(1.0, [1.0, 2.0], [0.5, 0.4]), "add up to 1"),
        (dp_event.SelfComposedDpEvent(GAUSSIAN, 2.5), "`count` must be an integer"),
        (dp_event.SelfComposedDpEvent(GAUSSIAN, 10**13), "`count` must be an integer"),
    ],
)
def test_a_refusal_names_the_event_and_the_reason(event: dp_event.DpEvent, words: str) -> None:
    for nested in (event, dp_event.ComposedDpEvent([SAMPLED, dp_event.ComposedDpEvent([event])])):
        text = reason(PrivsweepAccountant(ADD), nested)
        assert words in text
        assert text.endswith(f"caused by subevent {event}.")


def test_a_refused_tree_changes_nothing() -> None:
    accountant = PrivsweepAccountant(ADD).compose(SAMPLED, 10)
    before = accountant.get_epsilon(1e-5)
    reason(accountant, dp_event.ComposedDpEvent([GAUSSIAN, dp_event.UnsupportedDpEvent()]))
    assert accountant.get_epsilon(1e-5) == before


@pytest.mark.parametrize(
    "event",
    [
        dp_event.LaplaceDpEvent(1.0),
        dp_event.PoissonSampledDpEvent(0.5, dp_event.LaplaceDpEvent(1.0)),
        dp_event.DiscreteLaplaceDpEvent(1.0, 1),
        dp_event.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]),
    ],
)
def test_events_without_a_law_for_replacements_are_refused(event: dp_event.DpEvent) -> None:
    assert "neighboring_relation must be `ADD_OR_REMOVE_ONE`" in reason(PrivsweepAccountant(REPLACE), event)


def test_the_distance_of_a_replacement_is_asked_for_and_not_guessed() -> None:
    assert "pass `sensitivity=1` or `sensitivity=2`" in reason(PrivsweepAccountant(REPLACE), GAUSSIAN)
    one, two = (PrivsweepAccountant(REPLACE, sensitivity=k).compose(GAUSSIAN) for k in (1, 2))
    half = PrivsweepAccountant(ADD).compose(dp_event.GaussianDpEvent(0.5))
    added = PrivsweepAccountant(ADD).compose(GAUSSIAN)
    assert one.get_epsilon(1e-5) == pytest.approx(added.get_epsilon(1e-5), rel=1e-13)
    assert two.get_epsilon(1e-5) == pytest.approx(half.get_epsilon(1e-5), rel=1e-11)
    assert "pass `sensitivity=2`" in reason(PrivsweepAccountant(REPLACE, sensitivity=1), SAMPLED)
    assert PrivsweepAccountant(REPLACE).supports(SAMPLED)


def test_an_event_of_a_later_release_is_supported_by_its_name() -> None:
    accountant = PrivsweepAccountant(ADD).compose(EpsilonDeltaDpEvent(1.0, 1e-6))
    assert accountant.get_epsilon_interval(1e-6)[0] == 0.0
    assert accountant.get_epsilon(1.01e-6) == pytest.approx(1.0, rel=1e-3)
    assert accountant.get_epsilon(0.99e-6) == math.inf
    assert accountant.get_delta(math.inf) == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add-remove",), "neighbouring relation of dp_accounting"),
        ((ADD, 2), "sensitivity 1 or 2"),
        ((REPLACE, 3), "sensitivity 1 or 2"),
        ((ADD, None, 0.0), "tolerance"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(DomainError, match=words):
        PrivsweepAccountant(*arguments)  # type: ignore[arg-type]


def test_questions_outside_their_domains_are_refused() -> None:
    accountant = PrivsweepAccountant(ADD)
    for delta in (-0.1, 1.1, math.nan):
        with pytest.raises(DomainError, match="target_delta"):
            accountant.get_epsilon(delta)
    for epsilon in (-0.1, math.nan):
        with pytest.raises(DomainError, match="target_epsilon"):
            accountant.get_delta(epsilon)


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="`count` must be positive"):
        PrivsweepAccountant(ADD).compose(GAUSSIAN, count)


def test_a_copy_has_the_same_past_and_a_future_of_its_own() -> None:
    accountant = PrivsweepAccountant(ADD).compose(SAMPLED, 100)
    for other in (copy.deepcopy(accountant), pickle.loads(pickle.dumps(accountant))):
        assert other.get_epsilon_interval(1e-5) == accountant.get_epsilon_interval(1e-5)
        assert other.ledger == accountant.ledger
        other.compose(SAMPLED, 100)
        assert other.get_epsilon(1e-5) > accountant.get_epsilon(1e-5)


def test_the_relation_alone_makes_a_fresh_accountant() -> None:
    first, second = PrivsweepAccountant(ADD), PrivsweepAccountant(ADD)
    first.compose(GAUSSIAN)
    assert second.ledger == dp_event.NoOpDpEvent()
    assert second.get_epsilon(1e-5) == 0.0
    assert first.neighboring_relation is ADD


def test_the_package_does_not_import_dp_accounting_before_it_is_needed() -> None:
    code = "import privcore, privcore.allocation, sys; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
