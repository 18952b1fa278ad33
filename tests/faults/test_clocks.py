"""Clocks: neither answers nor decisions about files in use depend on the time of day of any machine."""

import ast
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tasks.guard
from privcore import Answer, Status
from storage import open_store
from storage.parts import parts
from storage.place.layout import DAY
from storage.place.located import located
from tasks.guard import Limits
from tasks.work import Job, names_of_parts, published
from tests.faults.children import value_of
from tests.faults.sweeps import MANY, POINTS, batches_of, content, ids, sweep, work
from tests.faults.tally import Tally
from tests.storage.made_up import epsilon, put, read_rows, row, rows

pytestmark = pytest.mark.sampled(3)

HOUR = 3600.0

WALL_CLOCKS = {
    # Modules that read the wall clock, and the purpose. Deadlines and durations use monotonic clocks.
    "flows/deployments/flow.py": {"datetime.now"},  # name of a run in Prefect; displayed
    "flows/deployments/shown.py": {"datetime.now"},  # time of a progress report; displayed
    "flows/runs/progress.py": {"datetime.now"},  # time of the last heartbeat of a run; displayed
    "flows/answers/explain.py": {"datetime.now"},  # date of an answer that was just computed; displayed
    "flows/answers/held.py": {"datetime.now"},  # the same, if the answer is kept
    "flows/runs/orchestration.py": {"datetime.now"},  # name of a run in Prefect; displayed
    "flows/runs/repair.py": {"datetime.now"},  # start of a repair; only displayed
    "flows/runs/run.py": {"datetime.now"},  # start of a sweep; only displayed
    "flows/runs/status.py": {"datetime.now"},  # time of recording; displayed, and orders manifests
    "storage/catalog.py": {"time.time_ns"},  # whether the time of a folder is too recent to rely on
    "storage/garbage.py": {"time.time"},  # age of files that a running process may use, in days
    "storage/heartbeats.py": {"datetime.now"},  # whether a heartbeat is fresh and needs no watching
    "storage/place/mirror.py": {"time.time"},  # age of files that killed processes fetched, in days
    "storage/parts.py": {"time.time"},  # whether a row is from a time to come, by more than a day
    "storage/verify.py": {"datetime.now"},  # name of a folder in quarantine
    "storage/sql/snapshot.py": {"time.time"},  # age of snapshots that other users may read, in days
    "storage/place/folder.py": {"time.time"},  # age of leftovers, in days
    "tasks/guard.py": {"datetime.now"},  # end of a point; among equal answers the earliest is kept
    "tasks/work.py": {"datetime.now"},  # the same for points that are given up
}


def wall_clocks(module: Path) -> set[str]:
    """The calls in a module that read the time of day."""
    asked = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
    return {
        text
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute) and (text := ast.unparse(node)) in asked
    }


def test_every_look_at_the_time_of_day_is_known_and_no_deadline_is_among_them(
    faults: Tally, repository: Path
) -> None:
    """T13: deadlines, limits and durations use monotonic clocks."""
    with faults.trial():
        found = {
            str(module.relative_to(repository)): clocks
            for package in ("flows", "tasks", "storage", "privcore", "privsweep")
            for module in sorted((repository / package).rglob("*.py"))
            if (clocks := wall_clocks(module))
        }
        assert found == WALL_CLOCKS


def set_clock(offset: float) -> None:
    """Shift every wall clock of this process by a number of seconds; for children."""
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + offset
    time.time_ns = lambda: now_ns() + int(offset * 1e9)

    class Moved(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(time.time(), UTC)

    import flows.runs.run
    import tasks.work
    import tests.faults.sweeps

    for module in (flows.runs.run, tasks.guard, tasks.work, tests.faults.sweeps):
        module.datetime = Moved  # type: ignore[attr-defined]


def sweep_at(offset: float, root: Path) -> int:
    set_clock(offset)
    return sweep(root)


@pytest.mark.thorough
@pytest.mark.parametrize("offset", [-HOUR, HOUR], ids=["an hour slow", "an hour fast"])
def test_a_run_on_a_machine_whose_clock_is_off_continues_another_one(
    faults: Tally, root: Path, offset: float
) -> None:
    """T13: two runs whose clocks differ by an hour, each after half of the other's parts were lost."""
    assert value_of(sweep_at, offset, root) == POINTS
    answers = content(root)
    for clock in (0.0, offset):
        with faults.trial():
            lost = parts(located(root))[0]
            gone = len(read_rows(lost))
            lost.unlink()
            with faults.recovery():
                assert value_of(sweep_at, clock, root) == gone
            faults.compare(root, ids())
            assert content(root) == answers


@pytest.mark.parametrize("hours", [-1, 1])
def test_which_of_several_rows_counts_depends_on_what_they_say_before_when(
    faults: Tally, root: Path, hours: int
) -> None:
    """T13: an answer from a machine with a wrong clock beats a crash from any other, and never changes."""
    wrong = 3600.0 * hours
    crash = Answer.without(Status.CRASHED, "It was killed.")
    with faults.trial():
        put(root, row(epsilon(), crash, seconds_later=0))
        put(root, row(epsilon(), seconds_later=wrong))
        put(root, row(epsilon(), crash, seconds_later=2 * wrong))
        put(root, row(epsilon(), seconds_later=-wrong))
        for _ in range(2):
            with open_store(root) as store:
                (shown,) = store.sql("select status, lower, upper, finished_at from results").to_pylist()
                assert (shown["status"], shown["lower"], shown["upper"]) == ("ok", 1.0, 2.0)
                assert store.stored("unamplified-epsilon") == {row(epsilon()).point.id: "ok"}
        faults.compare(root, {row(epsilon()).point.id})


def opened_at(offset: float, root: Path) -> list[str]:
    """Open a store as a run does, with a wrong clock; return the unfinished files that are still there."""
    set_clock(offset)
    open_store(root, create=True).close()
    return sorted(path.name for path in root.rglob("*.tmp"))


@pytest.mark.thorough
def test_the_unfinished_file_of_a_living_writer_survives_a_clock_that_is_off(
    faults: Tally, root: Path
) -> None:
    """T13: a clock an hour fast or slow does not make the file of a running writer look left over."""
    part = put(root, rows(1))
    living = part.parent / ".living.tmp"
    living.write_bytes(b"half a part")
    for offset in (-HOUR, 0.0, HOUR, DAY - HOUR):
        with faults.trial():
            assert value_of(opened_at, offset, root) == [".living.tmp"]
    with faults.trial():
        assert value_of(opened_at, DAY + HOUR, root) == [], "a day later it is left over"


@pytest.mark.thorough
@pytest.mark.parametrize("offset", [-HOUR, HOUR])
def test_a_reader_with_a_wrong_clock_sees_what_is_published_next(
    faults: Tally, root: Path, monkeypatch: pytest.MonkeyPatch, offset: float
) -> None:
    """T13: a reader that stays open, with its clock off by an hour, reads every later part."""
    put(root, rows(1))
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + int(offset * 1e9))
    with open_store(root) as store:
        for count in range(2, 6):
            with faults.trial():
                assert store.sql("from results").num_rows == count - 1
                time.sleep(0.01)  # the finest common resolution of the time of a folder
                put(root, rows(1, first=count - 1))
        assert store.sql("from results").num_rows == 5


@pytest.mark.thorough
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_part_is_recognised_as_published_whatever_the_clock_of_its_disk_shows(
    faults: Tally, root: Path, hours: int
) -> None:
    """T13: a worker dies after it published its batch, and the clock of the disk is off by an hour."""
    batch, other = batches_of(MANY)[:2]
    job, store = Job(sweep="harmed", limits=Limits()), located(root)
    with faults.trial():
        value_of(work, other, job, root, None)
        before = names_of_parts(store)
        assert published(batch, store, before) is None
        value_of(work, batch, job, root, None)
        for part in parts(located(root)):
            os.utime(part, (time.time() + hours * HOUR,) * 2)
        done = published(batch, store, before)
        assert done is not None
        assert done.points == len(batch)
        assert published(other, store, before) is None, "it was stored before this run"
        faults.compare(root, {point.id for each in (batch, other) for point in each.points()})


def test_a_point_may_take_its_time_though_the_clock_jumps(
    faults: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T13: a clock that jumps by an hour at every reading neither ends a point nor lengthens it."""
    jumps = iter(range(10**6))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + HOUR * next(jumps) * (-1) ** next(jumps))
    batch = batches_of(MANY)[0]
    with faults.trial(), tasks.guard.Guard(Limits(point_seconds=60)) as guard:
        results = list(guard.results(batch))
    assert [result.answer.status for result in results] == [Status.OK] * 4
    assert all(0 <= result.seconds < 60 for result in results)
    assert abs(results[-1].finished_at - datetime.now(UTC)) < timedelta(minutes=5)
