"""Histories of Opacus: the declared sampler and the sampler in use."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant

from privcore import Point, evaluate, find, find_problem
from privcore.accountant import PrivsweepAccountant, from_opacus
from privcore.accountant.opacus import Epochs, Stretch, passes
from privcore.errors import DomainError
from privcore.numerics.gaussian import gaussian_epsilon_bounds

HISTORY = [(2.0, 1.0 / 235.0, 2000), (1.5, 1.0 / 235.0, 350)]


@pytest.mark.parametrize(
    "form",
    [HISTORY, {"history": HISTORY, "mechanism": "prv"}, SimpleNamespace(history=HISTORY), tuple(HISTORY)],
    ids=["list", "state_dict", "accountant", "tuple"],
)
def test_every_form_of_a_history_is_poisson_sampling(form: Any) -> None:
    lower, upper = from_opacus(form).get_epsilon_interval(1e-5)
    peer = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-3)
    for noise, rate, steps in HISTORY:
        peer.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), steps)
    assert lower <= peer.get_epsilon(1e-5) <= 1.05 * upper
    assert from_opacus(form).declared.get_epsilon(1e-5) == upper


def test_shuffling_loses_more_than_the_declared_poisson_sampling() -> None:
    run = from_opacus([(2.0, 1.0 / 235.0, 2350)], sampler="shuffling", adjacency="zero-out")
    declared, used = run.declared.get_epsilon_interval(1e-6), run.get_epsilon_interval(1e-6)
    assert declared[1] < 0.46
    assert used[0] >= 0.809
    assert used[1] <= gaussian_epsilon_bounds(2.0 / math.sqrt(10.0), 1e-6)[1] * (1.0 + 1e-9)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_samplers_that_pass_over_the_data_are_ordered(adjacency: str) -> None:
    history = [(1.5, 0.02, 120), (2.0, 0.02, 105)]
    ends = [
        from_opacus(history, sampler, adjacency).get_epsilon_interval(1e-5)
        for sampler in ("shuffling", "shuffling-once", "none")
    ]
    assert all(lower <= upper for lower, upper in ends)
    assert ends[0][0] <= ends[1][1]
    assert ends[1][0] <= ends[2][1]
    assert ends[0][1] <= ends[2][1] * (1.0 + 1e-9)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_one_order_for_whole_epochs_has_the_ends_of_a_phase(adjacency: str) -> None:
    found = from_opacus([(2.0, 0.1, 100)], "shuffling-once", adjacency).get_epsilon_interval(1e-5)
    run = "shuffling(sigma=2,steps=10,epochs=10,redraw=once)"
    problem = find_problem("run-epsilon").from_fields({"phases": run, "adjacency": adjacency, "delta": 1e-5})
    answer = evaluate(Point(problem=problem, method=find("runs.certified")()))
    assert found == pytest.approx((answer.lower, answer.upper), rel=1e-3)


@pytest.mark.parametrize("sampler", ["shuffling", "shuffling-once"])
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_a_loader_that_leaves_out_examples_has_the_ends_of_a_phase(sampler: str, adjacency: str) -> None:
    found = from_opacus([(2.0, 0.1, 30)], sampler, adjacency, dropped=0.1).get_epsilon_interval(1e-5)
    redraw = "once" if sampler == "shuffling-once" else "each-epoch"
    run = f"shuffling(sigma=2,steps=10,epochs=3,redraw={redraw},dropped=0.1)"
    problem = find_problem("run-epsilon").from_fields({"phases": run, "adjacency": adjacency, "delta": 1e-5})
    answer = evaluate(Point(problem=problem, method=find("runs.certified")()))
    assert found[0] == pytest.approx(answer.lower, rel=1e-2)
    assert found[0] <= answer.upper <= found[1] * 1.01
    if sampler == "shuffling":
        assert found[1] == pytest.approx(answer.upper, rel=1e-2)
        cut = from_opacus([(2.0, 0.1, 34)], sampler, adjacency, dropped=0.1).get_epsilon_interval(1e-5)
        assert found[1] < cut[1]


def test_only_shuffled_epochs_leave_out_examples() -> None:
    with pytest.raises(DomainError, match="Expected sampler=shuffling or shuffling-once with dropped"):
        from_opacus([(2.0, 0.1, 30)], dropped=0.1)
    with pytest.raises(DomainError, match="dropped"):
        from_opacus([(2.0, 0.1, 30)], "shuffling", "zero-out", dropped=1.0)


def test_a_fixed_order_is_one_use_per_epoch() -> None:
    run = from_opacus([(3.0, 0.1, 90)], sampler="none", adjacency="replace-one")
    exact = gaussian_epsilon_bounds(0.5, 1e-5)
    assert run.get_epsilon_interval(1e-5) == pytest.approx(exact, rel=1e-11)
    assert run.get_delta_interval(exact[1])[0] == pytest.approx(1e-5, rel=1e-6)


def test_incomplete_epochs_count_for_the_upper_end_alone() -> None:
    whole = from_opacus([(2.0, 0.1, 20)], sampler="none", adjacency="zero-out").get_epsilon_interval(1e-5)
    more = from_opacus([(2.0, 0.1, 21)], sampler="none", adjacency="zero-out").get_epsilon_interval(1e-5)
    assert more[0] == whole[0]
    assert more[1] > whole[1]
    short = from_opacus([(2.0, 0.1, 5)], sampler="shuffling", adjacency="zero-out").get_epsilon_interval(1e-5)
    assert short[0] == 0.0
    assert short[1] > 0.0


@pytest.mark.parametrize(
    ("stretches", "expected"),
    [
        ([(1.0, 0.1, 30)], [(1.0, 10, 3)]),
        ([(1.0, 0.1, 5), (1.0, 0.1, 5)], [(1.0, 10, 1)]),
        ([(1.0, 0.1, 5), (2.0, 0.1, 15)], [(1.0, 0, 1), (2.0, 10, 1)]),
        ([(2.0, 0.1, 4), (1.0, 0.1, 3), (3.0, 0.1, 13)], [(1.0, 0, 1), (3.0, 10, 1)]),
        ([(1.0, 0.1, 15), (1.0, 0.2, 11)], [(1.0, 10, 1), (1.0, 0, 1), (1.0, 5, 2), (1.0, 0, 1)]),
        ([(1.0, 0.1, 3)], [(1.0, 0, 1)]),
    ],
)
def test_epochs_are_cut_where_the_noise_or_the_loader_changes(
    stretches: list[tuple[float, float, int]], expected: list[tuple[float, int, int]]
) -> None:
    found = list(passes([Stretch(*each) for each in stretches]))
    assert found == [Epochs(*each) for each in expected]


def test_a_run_without_noise_or_without_steps_is_not_bounded_by_a_sampler() -> None:
    loud = from_opacus([(0.0, 0.1, 10)], sampler="shuffling", adjacency="zero-out")
    assert loud.get_epsilon_interval(1e-5) == (math.inf, math.inf)
    assert from_opacus([], sampler="shuffling", adjacency="zero-out").get_epsilon_interval(1e-5) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([(1.0, 0.1, 10)], "weighted"), "sampler in"),
        (([(1.0, 0.1, 10)], "shuffling"), "adjacency zero-out or replace-one"),
        (([(1.0, 0.1, 10)], "shuffling", "add-remove"), "adjacency zero-out or replace-one"),
        (([(1.0, 0.1, 10)], "poisson", "remove"), "adjacency add-remove or"),
        (([(1.0, 0.3, 10)], "shuffling", "zero-out"), "steps of an epoch"),
        (([(1.0, 0.1)],), "noise multiplier, sample rate, steps"),
        (([(1.0, 0.1, 0)],), "noise multiplier, sample rate, steps"),
        (([("a", 0.1, 1)],), "noise multiplier, sample rate, steps"),
        (({"steps": 1},), "key `history`"),
    ],
)
def test_bad_histories_are_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(DomainError, match=words):
        from_opacus(*arguments)


def test_poisson_sampling_with_a_replaced_example_is_that_of_the_accountant() -> None:
    run = from_opacus([(1.0, 0.05, 40)], adjacency="replace-one")
    other = PrivsweepAccountant(NeighboringRelation.REPLACE_ONE)
    other.compose(PoissonSampledDpEvent(0.05, GaussianDpEvent(1.0)), 40)
    assert run.get_epsilon_interval(1e-5) == other.get_epsilon_interval(1e-5)
    assert run.get_delta_interval(1.0) == other.get_delta_interval(1.0)


def test_epochs_that_use_all_examples_have_the_ends_of_their_run() -> None:
    history = [(1.1, 1 / 6, 60)]
    found = from_opacus(history, "shuffling", "zero-out", batch=2000, kept=0.1).get_epsilon_interval(1e-5)
    wider = from_opacus(history, "shuffling", "zero-out").get_epsilon_interval(1e-5)
    run = "shuffling(sigma=1.1,steps=5,epochs=10,redraw=each-epoch,batch=2000,kept=0.1)"
    problem = find_problem("run-epsilon").from_fields({"phases": run, "adjacency": "zero-out", "delta": 1e-5})
    answer = evaluate(Point(problem=problem, method=find("runs.certified")()))
    assert found[1] < 0.97 * wider[1]
    assert found == pytest.approx((answer.lower, answer.upper), rel=1e-3)


@pytest.mark.parametrize(
    ("sampler", "sizes"),
    [
        ("poisson", {"batch": 5}),
        ("shuffling-once", {"kept": 0.1}),
        ("shuffling", {"batch": 5, "dropped": 0.1}),
    ],
)
def test_sizes_are_refused_where_they_do_not_count(sampler: str, sizes: dict[str, Any]) -> None:
    with pytest.raises(DomainError, match="Expected batch and kept with sampler=shuffling"):
        from_opacus([(2.0, 0.1, 30)], sampler, "zero-out", **sizes)


def test_an_epoch_of_one_step_has_no_smaller_last_batch() -> None:
    with pytest.raises(DomainError, match="Expected epochs of at least 2 steps with kept"):
        from_opacus([(2.0, 1.0, 30)], "shuffling", "zero-out", kept=0.1)
