"""Failures that end a deployed run as Failed, on stores with made-up answers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from flows.runs.ledger import Ledger
from flows.runs.plan import make_plan
from flows.runs.status import after, check_share, coverage, too_many_failed
from flows.spec.grid import expand
from flows.spec.sweep import parse
from privcore import Answer, Status
from privcore.errors import DomainError
from storage import open_store
from tasks import engine
from tasks.guard import Limits
from tasks.tally import Tally
from tasks.work import Job
from tests.storage.made_up import epsilon, put, row

SWEEP = parse(
    b"""
    name = "two"
    [[grid]]
    problem = "unamplified-epsilon"
    methods = ["unamplified.exact"]
    product = {sigma = [1, 2, 3, 4], delta = 1e-5}
    [[grid]]
    problem = "unamplified-delta"
    methods = ["unamplified.exact"]
    product = {sigma = [1, 2], epsilon = 1}
    """,
    "two.toml",
)
POINTS = {
    "epsilon": [each for each in expand(SWEEP.grids) if each.problem.name == "unamplified-epsilon"],
    "delta": [each for each in expand(SWEEP.grids) if each.problem.name == "unamplified-delta"],
}
OK, FAILED, TIMEOUT, NO = Status.OK, Status.FAILED, Status.TIMEOUT, Status.NOT_APPLICABLE


def answer(status: Status) -> Answer:
    return Answer.enclosure(1.0, 2.0) if status is OK else Answer.without(status, "A reason.")


def reason(root: Path, statuses: Mapping[str, list[Status]], most: float | None = None) -> str:
    """The reason for too many failures in a store in which the points have these statuses."""
    for kind, given in statuses.items():
        put(
            root,
            [
                row(point.problem, answer(status), method=point.method)
                for point, status in zip(POINTS[kind], given, strict=False)
            ],
        )
    with open_store(root, create=True) as store:
        ledger = Ledger(SWEEP.grids)
        ledger.read(store)
        return too_many_failed(coverage(SWEEP, ledger), most)


def test_a_method_without_any_answer_to_a_problem_is_too_much(tmp_path: Path) -> None:
    statuses = {"epsilon": [OK] * 4, "delta": [TIMEOUT, FAILED]}
    assert reason(tmp_path, statuses) == "unamplified.exact answered no point of unamplified-delta."


@pytest.mark.parametrize(
    "statuses",
    [
        {"epsilon": [OK] * 4, "delta": [OK, OK]},
        {"epsilon": [TIMEOUT, TIMEOUT, TIMEOUT, OK], "delta": [OK, FAILED]},
        {"epsilon": [OK] * 4, "delta": [NO, NO]},
    ],
    ids=["all answered", "one answered", "not applicable"],
)
def test_a_method_with_an_answer_or_without_failures_is_fine(
    tmp_path: Path, statuses: dict[str, list[Status]]
) -> None:
    assert not reason(tmp_path, statuses)


def test_answers_and_failures_of_other_sweeps_do_not_count(tmp_path: Path) -> None:
    for name in ("inapplicable", "failed"):
        put(tmp_path / name, [row(epsilon(sigma=9), answer(OK)), row(epsilon(sigma=8), answer(FAILED))])
    assert not reason(tmp_path / "inapplicable", {"epsilon": [NO] * 4, "delta": [OK, FAILED]})
    assert "unamplified-epsilon" in reason(tmp_path / "failed", {"epsilon": [FAILED] * 4})


def test_a_share_can_be_given_instead(tmp_path: Path) -> None:
    statuses = {"epsilon": [OK] * 4, "delta": [FAILED, FAILED]}
    assert not reason(tmp_path, statuses, most=0.5)
    assert reason(tmp_path, {}, most=0.25) == "33.3% of the points failed, more than max_failed 0.25."


def test_reports_of_batches_count_like_the_points_that_they_stored(tmp_path: Path) -> None:
    """One method exceeds its limit at every point; an earlier run stored an answer of the other."""
    put(tmp_path, [row(POINTS["epsilon"][0].problem, method=POINTS["epsilon"][0].method)])
    sweep = replace(SWEEP, limits=Limits(point_seconds=1e-9))
    with open_store(tmp_path) as store:
        plan, tally = make_plan(sweep, store), Tally()
        for done in engine.run_serially(plan.batches, Job(sweep="two", limits=sweep.limits), store.place):
            assert done is not None
            tally.add(done)
        now, parts = after(plan, tally, sweep, store)
        ledger = Ledger(sweep.grids)
        ledger.read(store)
    assert (now, parts) == (coverage(sweep, ledger), ledger.parts)
    assert now.statuses == {"ok": 1, "timeout": 5}
    assert too_many_failed(now, None) == "unamplified.exact answered no point of unamplified-delta."


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_outside_its_domain_is_refused(share: float) -> None:
    with pytest.raises(DomainError, match=r"Expected max_failed in \[0, 1\]"):
        check_share(share)
