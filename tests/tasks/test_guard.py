"""The guard: a point that harms its process costs only that point."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from privcore import Method, Problem, Status, evaluate, find, find_problem
from storage import open_store
from storage.place.located import located
from tasks.batch import Batch
from tasks.guard import ChildError, Guard, Limits
from tasks.work import Job, run_batch

PROBLEM = find_problem("unamplified-epsilon")


BRIEF = 1e-4


def batch_of(method: Method, problems: list[Problem], seconds: float = 1.0) -> Batch:
    """A batch; if its points are estimated to be brief, their results are sent several at once."""
    fields = [tuple(problem.as_fields().values()) for problem in problems]
    return Batch(problem=PROBLEM, method=method, fields=fields, seconds=seconds * len(fields), bytes=0.0)


def children() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "tasks.guard" in " ".join(p.cmdline())]


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    """One guard for the module: its child is used again until it must be replaced."""
    with Guard(Limits(point_seconds=1.0)) as guard:
        yield guard


def test_answers_are_those_of_this_process_bit_for_bit(guard: Guard) -> None:
    problems = [PROBLEM.from_fields({"sigma": 0.5 + i / 7, "delta": 10.0**-i}) for i in range(1, 9)]
    batch = batch_of(find("unamplified.exact")(), problems)
    assert [r.answer for r in guard.results(batch)] == [evaluate(point) for point in batch.points()]


@pytest.mark.parametrize(
    "seconds", [1.0, pytest.param(BRIEF, marks=pytest.mark.thorough)], ids=["alone", "several at once"]
)
def test_a_batch_of_good_and_bad_points_gives_each_its_status(
    guard: Guard, faulty: ModuleType, tmp_path: Path, seconds: float
) -> None:
    wanted = {
        faulty.GOOD: (Status.OK, ""),
        faulty.HANGS: (Status.TIMEOUT, "It took longer than the limit of 1 s."),
        faulty.CRASHES: (Status.CRASHED, "The process that computed it was ended by SIGSEGV."),
        faulty.EATS_MEMORY: (Status.OUT_OF_MEMORY, "faulty.mixed ran out of memory."),
        faulty.RAISES: (Status.FAILED, "ValueError: no such luck"),
        faulty.EXITS: (Status.CRASHED, "The process that computed it exited with 3."),
        faulty.TOO_DEAR: (Status.TIMEOUT, "Not started: it may need 1e+09 s, the limit is 1 s."),
        faulty.TOO_BIG: (Status.OUT_OF_MEMORY, "Not started: it may need 1e+15 bytes, the limit is 2e+09."),
    }
    steps = [faulty.GOOD, *wanted, faulty.GOOD]
    problems = [PROBLEM.from_fields({"sigma": 1 + i, "delta": 1e-5, "steps": s}) for i, s in enumerate(steps)]
    elsewhere = PROBLEM.from_fields({"sigma": 1, "delta": 1e-5, "epochs": 2})
    batch = batch_of(faulty.Mixed(), [*problems, elsewhere], seconds)
    store = tmp_path / "store"
    done = run_batch(batch, Job(sweep="faults", limits=guard.limits), guard, located(store))
    assert done.points == len(steps) + 1
    with open_store(store) as opened:
        rows = opened.sql("select steps, epochs, status, detail, attempt from results").to_pylist()
    assert sorted((r["steps"], r["status"], r["detail"]) for r in rows if r["epochs"] == 1) == sorted(
        (s, *wanted[s]) for s in steps
    )
    assert [(r["status"], r["detail"]) for r in rows if r["epochs"] == 2] == [
        ("not_applicable", "Only for one epoch.")
    ]
    assert {r["attempt"] for r in rows if r["status"] == "crashed"} == {2}, "a crash is tried once more"
    assert {r["attempt"] for r in rows if r["status"] != "crashed"} == {1}


def test_of_points_whose_results_come_together_only_the_one_at_fault_fails(
    guard: Guard, faulty: ModuleType
) -> None:
    steps = [faulty.GOOD, faulty.GOOD, faulty.CRASHES, faulty.GOOD]
    problems = [PROBLEM.from_fields({"sigma": 1 + i, "delta": 1e-5, "steps": s}) for i, s in enumerate(steps)]
    results = list(guard.results(batch_of(faulty.Mixed(), problems, BRIEF)))
    assert [r.answer.status for r in results] == [Status.OK, Status.OK, Status.CRASHED, Status.OK]
    assert [r.attempt for r in results] == [1, 1, 2, 1]


def test_a_point_that_hangs_is_ended_at_its_limit(guard: Guard, faulty: ModuleType) -> None:
    problem = PROBLEM.from_fields({"sigma": 1, "delta": 1e-5, "steps": faulty.HANGS})
    (result,) = guard.results(batch_of(faulty.Mixed(), [problem]))
    assert result.answer.status is Status.TIMEOUT
    assert result.seconds >= 1.0


def test_a_child_that_died_while_idle_is_replaced(guard: Guard) -> None:
    batch = batch_of(find("unamplified.exact")(), [PROBLEM.from_fields({"sigma": 1, "delta": 1e-5})])
    assert [r.answer.status for r in guard.results(batch)] == [Status.OK]
    (child,) = children()
    child.kill()
    child.wait(5)
    assert [(r.answer.status, r.attempt) for r in guard.results(batch)] == [(Status.OK, 1)]


def test_a_child_killed_at_work_is_replaced_and_its_point_tried_again(
    guard: Guard, faulty: ModuleType
) -> None:
    problems = [PROBLEM.from_fields({"sigma": s, "delta": 1e-5}) for s in (1, 2, 3)]
    results = guard.results(batch_of(faulty.Slow(seconds=0.4), problems))
    collected = [next(results)]
    children()[0].kill()
    collected += results
    assert [r.answer.upper for r in collected] == [10.0, 10 / 2, 10 / 3]
    assert [r.attempt for r in collected] == [1, 2, 1]


def test_what_is_finished_when_an_interruption_comes_is_published(faulty: ModuleType, tmp_path: Path) -> None:
    problems = [PROBLEM.from_fields({"sigma": s, "delta": 1e-5}) for s in range(1, 9)]
    batch = batch_of(faulty.Slow(seconds=0.3), problems)

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Guard(Limits()) as guard:
            list(guard.results(batch_of(faulty.Slow(seconds=0), problems[:1])))  # its child is up
            signal.setitimer(signal.ITIMER_REAL, 1.0)
            with pytest.raises(KeyboardInterrupt):
                run_batch(batch, Job(sweep="x", limits=guard.limits), guard, located(tmp_path))
    finally:
        signal.signal(signal.SIGALRM, before)
    with open_store(tmp_path) as store:
        assert 1 <= len(store.stored("unamplified-epsilon")) < 8


def test_a_method_that_cannot_be_imported_is_one_error_and_not_a_row_each(faulty: ModuleType) -> None:
    batch = batch_of(faulty.Mixed(), [PROBLEM.from_fields({"sigma": 1, "delta": 1e-5})])
    hidden, sys.path[0] = sys.path[0], "/nowhere"
    try:
        with (
            Guard(Limits()) as guard,
            pytest.raises(ChildError, match=r"faulty\.mixed exited with 1 before its first point"),
        ):
            list(guard.results(batch))
    finally:
        sys.path[0] = hidden


@pytest.mark.thorough
def test_a_child_does_not_outlive_a_parent_that_is_killed() -> None:
    script = (
        "from tasks.guard import _Child; import time; child = _Child(); "
        "print(child._process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    time.sleep(1.0)  # it must have requested that
    parent.kill()
    parent.wait()
    parent.stdout.close()
    child.wait(timeout=10)


def test_computing_children_use_one_thread(guard: Guard) -> None:
    batch = batch_of(find("unamplified.exact")(), [PROBLEM.from_fields({"sigma": 1, "delta": 1e-5})])
    list(guard.results(batch))
    (child,) = children()
    assert {child.environ()[name] for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")} == {"1"}


def test_a_guard_that_is_stopped_gives_up_its_point_and_begins_no_other(faulty: ModuleType) -> None:
    problem = PROBLEM.from_fields({"sigma": 1, "delta": 1e-5, "steps": faulty.HANGS})
    batch = batch_of(faulty.Mixed(), [problem])
    with Guard(Limits(point_seconds=60.0)) as guard:
        threading.Timer(1.0, guard.stop).start()
        with suppress(ChildError):  # if it was stopped while the child began
            (result,) = guard.results(batch)
            assert (result.answer.status, result.attempt) == (Status.CRASHED, 1)
        with pytest.raises(ChildError):
            list(guard.results(batch))


def test_a_point_may_take_its_bytes_on_top_of_what_its_process_has() -> None:
    """The process has more than 200 MB of address space by its imports and its data."""
    steps = (
        "from tasks.guard import _limit_memory",
        "held = bytearray(300 * 10**6)",
        "_limit_memory(2e8)",
        "bytearray(10**8)",
        "print('enough')",
        "bytearray(10**9)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(steps)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "enough\n", done.stderr
    assert "MemoryError" in done.stderr
