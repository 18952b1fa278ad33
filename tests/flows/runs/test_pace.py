"""The time left of a run, replayed from the estimated and measured seconds of real sweeps."""

import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flows.runs import progress as of_pace
from flows.runs.plan import PER_BATCH
from flows.runs.progress import Pace
from privcore.answer import Status
from tasks.work import Done

RECORDED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("recorded_batches.json").read_text()
)
"""For each sweep, its problems and methods, and its batches in order: place of the method, points, estimated
seconds, and seconds of a processor, from a serial run. The wall time of a replay follows from them."""
START = 3.0  # seconds until the first batch begins
FROM = 0.2  # share of the work from which the time must be right
GRACE = {"allocation-figure1": 3.0}
"""Seconds by which the time may err in any case, if not one second."""
UNFORESEEN = pytest.mark.xfail(
    strict=True,
    reason="The one batch of a method without measured points takes three times as long as usual.",
)


class Batches(list[None]):
    """The batches of a plan, without their points."""

    def __init__(self, name: str) -> None:
        batches = RECORDED[name]["batches"]
        super().__init__([None] * len(batches))
        self.group, self.points = (np.array([batch[k] for batch in batches], np.int64) for k in (0, 1))
        self.seconds = np.array([batch[2] for batch in batches])


def planned(name: str, workers: int = 2) -> Any:
    """The plan of a sweep, without its points."""
    batches = Batches(name)
    groups = [
        SimpleNamespace(name=tuple(pair), seconds=float(batches.seconds[batches.group == number].sum()))
        for number, pair in enumerate(RECORDED[name]["methods"])
    ]
    new = int(batches.points.sum())
    return SimpleNamespace(batches=batches, groups=groups, workers=workers, new=new)


def ends(name: str, workers: int) -> Iterator[tuple[float, int]]:
    """Yield when a batch ends, and its number, if each worker takes the next batch."""
    free = [START] * workers
    found = []
    for number, (_, _, _, seconds) in enumerate(RECORDED[name]["batches"]):
        end = free[0] + seconds + PER_BATCH
        found.append((end, number))
        heapq.heapreplace(free, end)
    yield from sorted(found)


def replayed(
    name: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[float, float, float]]:
    """Yield the share of the work, the seconds left as estimated and as they are, twice a batch."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(of_pace, "time", SimpleNamespace(monotonic=lambda: clock.now))
    plan = planned(name, workers)
    batches, pace = plan.batches, Pace(plan)
    times = list(ends(name, workers))
    last = times[-1][0]
    for (now, number), (later, _) in zip(times, [*times[1:], (last, 0)], strict=True):
        clock.now = now
        problem, method = plan.groups[batches.group[number]].name
        points, estimate = int(batches.points[number]), float(batches.seconds[number])
        took = RECORDED[name]["batches"][number][3]
        pace.add(
            Done(
                part="",
                statuses={Status.OK: points},
                seconds=took,
                problem=problem,
                method=method,
                estimate=estimate,
            )
        )
        for moment in (now, (now + later) / 2):
            clock.now = moment
            assert pace.seconds_left is not None
            yield pace.share, pace.seconds_left, last - moment


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        pytest.param(name, workers, marks=UNFORESEEN if (name, workers) == ("labels-claims", 2) else ())
        for name in RECORDED
        for workers in (1, 2)
    ],
)
def test_the_time_left_is_right_within_a_factor_of_two_from_a_fifth_of_the_work(
    name: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace, looked = GRACE.get(name, 1.0), 0
    for share, told, true in replayed(name, workers, monkeypatch):
        if share >= FROM:
            looked += 1
            right = true / 2 <= told <= 2 * true or abs(told - true) <= grace
            assert right, f"{told:.1f} s left at {share:.0%}, {true:.1f} s are true"
    assert looked >= 4


@pytest.mark.parametrize("name", RECORDED)
def test_the_share_of_the_work_ends_with_1(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, (share, told, _) = replayed(name, 2, monkeypatch)
    assert share == pytest.approx(1.0)
    assert told == pytest.approx(0.0)


def test_nothing_is_said_before_the_first_batch() -> None:
    assert Pace(planned("quickstart")).seconds_left is None
