"""Decisions about batches that Ray lost: a node died, a worker crashed, or memory was short."""

from dataclasses import replace
from pathlib import Path

import pytest

from privcore import find, find_problem
from storage import open_store
from storage.place.located import located
from tasks.batch import Batch
from tasks.errors import StoppedError
from tasks.guard import Limits
from tasks.waiting import (
    ALONE,
    DEATHS,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    PATIENCE,
    PROCESSES,
    STEP,
    Attempt,
    Restraint,
    Waiting,
    request,
)
from tasks.work import Job

PROBLEM = find_problem("unamplified-epsilon")
GIB = 2.0**30


@pytest.fixture
def job() -> Job:
    return Job(sweep="waiting", limits=Limits())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    open_store(tmp_path / "store", create=True).close()
    return tmp_path / "store"


@pytest.fixture
def batch() -> Batch:
    problems = [PROBLEM.from_fields({"sigma": sigma, "delta": 1e-5}) for sigma in (1, 2, 3)]
    fields = [tuple(problem.as_fields().values()) for problem in problems]
    return Batch(problem=PROBLEM, method=find("unamplified.exact")(), fields=fields, seconds=1.0, bytes=1e9)


def drained(waiting: Waiting) -> list[Attempt]:
    """Remove all batches."""
    attempts = []
    while waiting:
        attempts.append(waiting.next())
    return attempts


def test_a_batch_under_which_nodes_die_is_tried_again_as_long_as_others_finish(
    job: Job, batch: Batch, store: Path
) -> None:
    waiting = Waiting([batch], job, located(store))
    attempt = waiting.next()
    for _ in range(3):
        for _ in range(DEATHS - 1):
            assert waiting.after_a_death(attempt, RuntimeError("gone")) is None
        waiting.finished()
    for _ in range(DEATHS - 1):
        assert waiting.after_a_death(attempt, RuntimeError("gone")) is None
    with pytest.raises(
        StoppedError, match=r"5 nodes .* in a row .* a batch of unamplified\.exact.* \(gone\)"
    ):
        waiting.after_a_death(attempt, RuntimeError("gone"))


def test_a_batch_whose_worker_dies_is_tried_again_whole_then_in_halves_until_a_point_is_alone(
    job: Job, batch: Batch, store: Path
) -> None:
    waiting = Waiting([batch], job, located(store))
    attempt = waiting.next()
    assert waiting.after_a_crash(attempt) is None
    assert drained(waiting) == [attempt], "the first time it is tried again"
    assert waiting.after_a_crash(attempt) is None
    halves = drained(waiting)
    assert [each.batch.fields for each in halves] == [batch.fields[:1], batch.fields[1:]]
    assert waiting.after_a_crash(halves[0]) is None
    done = waiting.after_a_crash(halves[0])
    assert done is not None
    assert dict(done.statuses) == {"crashed": 1}
    assert open_store(store).stored(PROBLEM.name) == {next(halves[0].batch.points()).id: "crashed"}


def test_no_number_of_kills_for_lack_of_memory_fails_points_that_fit_a_node(
    job: Job, batch: Batch, store: Path
) -> None:
    waiting = Waiting([batch], job, located(store))
    attempt = waiting.next()
    for _ in range(50):
        assert waiting.after_a_kill(attempt, 16 * GIB, 16 * GIB, flying=0) is None
        assert drained(waiting) == [attempt], "the whole batch is tried again"
        waiting.finished()
    assert open_store(store).stored(PROBLEM.name) == {}


def test_a_point_that_may_exceed_every_node_fails_after_kills_with_a_node_to_itself(
    job: Job, batch: Batch, store: Path
) -> None:
    roomy = replace(job, limits=Limits(point_bytes=32 * GIB))
    waiting = Waiting([batch.part(0, 1)], roomy, located(store))
    attempt = waiting.next()
    for _ in range(10):
        assert waiting.after_a_kill(attempt, 4 * GIB, 16 * GIB, flying=3) is None, "it was not alone"
        waiting.finished()
    for _ in range(ALONE - 1):
        assert waiting.after_a_kill(attempt, 16 * GIB, 16 * GIB, flying=0) is None
    done = waiting.after_a_kill(attempt, 16 * GIB, 16 * GIB, flying=0)
    assert done is not None
    assert dict(done.statuses) == {"out_of_memory": 1}
    assert "for lack of memory, on a node of 1.72e+10 bytes for itself" in done.reasons[0]


def test_a_request_has_room_for_the_processes_and_the_point_and_doubles_after_each_kill(batch: Batch) -> None:
    first = request(batch, 0, 16 * GIB)
    assert PROCESSES + batch.bytes <= first < PROCESSES + batch.bytes + STEP
    assert request(batch, 1, 16 * GIB) == 2 * first
    assert request(batch, 1000, 16 * GIB) == 16 * GIB, "no request exceeds the largest node"
    assert request(batch, 0, 0.0) == 0, "no node is known yet"


def test_similar_batches_request_the_same(batch: Batch) -> None:
    sizes = {request(replace(batch, bytes=1e5 * size), 0, 16 * GIB) for size in range(1000)}
    assert len(sizes) <= 2


def test_a_kill_holds_batches_back_and_leaves_fewer_in_flight_until_others_finish() -> None:
    restraint = Restraint()
    assert restraint.window(6, now=0.0) == 6
    restraint.killed(flying=5, now=0.0)
    assert restraint.window(6, now=0.5 * FIRST_PAUSE) == 0
    assert restraint.window(6, now=1.5 * FIRST_PAUSE) == 3
    for now in (10.0, 20.0, 30.0):
        restraint.killed(flying=2, now=now)
    assert restraint.window(6, now=31.0) == 0, "pauses become longer"
    assert restraint.window(6, now=60.0) == 1
    for _ in range(40):
        restraint.finished()
    assert restraint.window(6, now=60.0) == 6


def test_a_lack_of_memory_in_which_nothing_finishes_ends_the_run() -> None:
    restraint = Restraint()
    for now in range(0, int(PATIENCE), int(LONGEST_PAUSE)):
        restraint.killed(flying=0, now=float(now))
    restraint.finished()
    restraint.killed(flying=0, now=2 * PATIENCE)
    with pytest.raises(StoppedError, match="for 600 s because the memory of its nodes is used up"):
        restraint.killed(flying=0, now=3 * PATIENCE + 1)
