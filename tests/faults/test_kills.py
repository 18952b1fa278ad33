"""Processes killed at any instant: no stored row is lost or duplicated, and a run can be resumed."""

import os
from pathlib import Path

import psutil
import pytest

from storage import open_store
from storage.parts import parts
from storage.place.located import located
from tasks.guard import Limits
from tasks.work import Job, names_of_parts, published
from tests.faults.children import Child, run, value_of
from tests.faults.sweeps import (
    BATCHES,
    MANY,
    POINTS,
    PROBLEM,
    batches_of,
    content,
    fault_points,
    ids,
    leftovers,
    sweep,
    sweep_on,
    work,
)
from tests.faults.tally import Tally
from tests.storage.made_up import read_rows
from tests.suites import some

pytestmark = pytest.mark.sampled(2)


def stored(root: Path) -> set[str]:
    """Points that are stored in readable parts."""
    return {
        point
        for path in (parts(located(root)) if root.exists() else [])
        for point in read_rows(path)["point_id"].to_pylist()
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """The fault points of an undisturbed sweep, and the hash of its answers."""
    root = tmp_path_factory.mktemp("undisturbed") / "store"
    return value_of(fault_points, root), content(root)


def test_every_file_of_a_sweep_is_written_synced_renamed_and_its_folder_synced_the_manifest_last(
    undisturbed: tuple[list[str], str],
) -> None:
    points = [tuple(point.split(" ", 1)) for point in undisturbed[0]]
    renamed = [Path(path) for operation, path in points if operation == "rename" and path != "store"]
    renamed = [path for path in renamed if path.parent.name != "running"]  # heartbeats need not survive
    folders = [path.parent.name for path in renamed if path.suffix in (".parquet", ".json")]
    assert folders == [
        "sweeps",
        *[f"problem={PROBLEM}"] * BATCHES,
        "sweeps",
    ]
    for path in renamed:
        of_file = [
            k for k, (_, name) in enumerate(points) if Path(name).name.startswith(f".{path.name[:60]}")
        ]
        named = next(k for k in range(of_file[-1], len(points)) if points[k][0] in ("rename", "remove"))
        assert {"open", "write", "sync"} <= {points[k][0] for k in of_file}
        assert ("sync", str(path.parent)) in points[named:], f"{path} survives a power loss"
    # The marker file is renamed together with its folder.
    appeared = points.index(("rename", "store"))
    staged = points[0][1]
    assert [points[k] for k in range(appeared) if points[k][0] in ("write", "sync")][-3:] == [
        ("write", f"{staged}/store.json"),
        ("sync", f"{staged}/store.json"),
        ("sync", staged),
    ]
    assert ("sync", ".") in points[appeared:]
    assert sum(operation == "compute" for operation, _ in points) == POINTS


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_killed_at_any_operation_a_run_leaves_whole_files_and_the_next_computes_what_is_missing(
    faults: Tally, tmp_path: Path, undisturbed: tuple[list[str], str], every: int
) -> None:
    """T6: kill before, between and after the renames of parts and manifests, and in the middle of a file."""
    points, answers = undisturbed
    for k, point in some(list(enumerate(points))[::every], 5):
        root = tmp_path / f"{k}" / "store"
        root.parent.mkdir()
        with faults.trial():
            assert run(sweep_on, "kill", k, 0, root).killed, point
            before = stored(root)
            assert len(before) % (POINTS // BATCHES) == 0, "whole batches or nothing"
            if root.exists():
                with open_store(root) as store:
                    assert store.verify() == [], point
                    assert set(store.stored(PROBLEM)) == before, point
                    assert {m.status for m in store.manifests()} <= {"incomplete", "complete"}
                    assert all(m.status == "incomplete" or before == ids() for m in store.manifests())
            with faults.recovery():
                assert value_of(sweep, root) == POINTS - len(before), point
            assert stored(root) == ids()
            assert sum(len(read_rows(path)) for path in parts(located(root))) == POINTS, (
                "nothing was computed twice"
            )
            with open_store(root) as store:
                assert store.verify() == [], point
                assert [m.status for m in store.manifests()] == ["complete"]
            if k % 15 == 0:  # a reader's snapshot takes ten times as long as the rest
                faults.compare(root, ids())
                assert content(root) == answers


def test_a_file_that_a_killed_run_left_unfinished_is_found_and_never_read(
    faults: Tally, root: Path, undisturbed: tuple[list[str], str]
) -> None:
    """T6: kill between the data and its rename; verify finds the orphan, readers do not."""
    inside = [k for k, point in enumerate(undisturbed[0]) if point.startswith("rename store/data")]
    with faults.trial():
        assert run(sweep_on, "kill", inside[1], 0, root).killed
        (orphan,) = root.rglob("*.tmp")
        assert orphan.stat().st_size > 1000, "it is complete except for its name"
        assert len(stored(root)) == POINTS // BATCHES
        with open_store(root) as store:
            assert store.verify() == []
            assert [orphan.name in sentence for sentence in leftovers(root)] == [True]
            assert store.sql("from results").num_rows == POINTS // BATCHES


@pytest.mark.thorough
def test_a_hundred_kills_of_workers_lose_nothing_and_store_nothing_twice(faults: Tally, root: Path) -> None:
    """T1: SIGKILL a worker in the middle of its batch, a hundred times; the batch is assigned again."""
    batches = batches_of(MANY)
    assert (len(batches), sum(map(len, batches))) == (25, 100)
    job, elsewhere, store = Job(sweep="harmed", limits=Limits()), root.with_name("elsewhere"), located(root)
    steps = [len(value_of(work, batch, job, elsewhere, None)) for batch in batches[:2]][1]
    open_store(root, create=True).close()
    for number, batch in enumerate(batches):
        before = names_of_parts(store)
        # Three kills before the part exists, and one at about the time when it appears.
        for k in (0, (steps - 3) // 4, (steps - 3) // 2, steps - 3):
            assert published(batch, store, before) is None
            with faults.trial():
                assert run(work, batch, job, root, k + number % 3).killed
                with open_store(root) as opened:
                    assert opened.verify() == []
        if published(batch, store, before) is None:
            with faults.recovery():
                value_of(work, batch, job, root, None)
    assert faults.numbers["survived"] == 100
    assert sum(len(read_rows(path)) for path in parts(located(root))) == 100
    faults.compare(root, ids(MANY))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_killed_run_leaves_no_process_and_the_next_computes_exactly_the_rest(
    faults: Tally, root: Path, undisturbed: tuple[list[str], str], share: float
) -> None:
    """T3: SIGKILL the run after a tenth, half and nine tenths of its points; its child ends with it."""
    points, answers = undisturbed
    on_disk = sum(not point.startswith("compute") for point in points)
    with faults.trial():
        driver = Child(sweep_on, "kill", int(share * on_disk), 0, root, True)
        assert driver.end().killed
        mine = f", {driver.process.pid})"  # the child of a guard ends with its parent
        orphans = [
            p for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [""])[-1].endswith(mine)
        ]
        assert psutil.wait_procs(orphans, timeout=60)[1] == []
        before = stored(root)
        with faults.recovery():
            assert value_of(sweep, root) == POINTS - len(before)
        faults.compare(root, ids())
        assert content(root) == answers


def test_a_store_that_was_killed_in_the_making_leaves_nothing_beside_it_for_ever(
    faults: Tally, root: Path, undisturbed: tuple[list[str], str]
) -> None:
    """T6: kill while the store itself is created, before it has its name."""
    made = undisturbed[0].index("rename store")
    with faults.trial():
        assert run(sweep_on, "kill", made, 0, root).killed
        (staged,) = root.parent.iterdir()
        for path in (*staged.rglob("*"), staged):
            os.utime(path, (1e9, 1e9))
        value_of(sweep, root)
        assert [path.name for path in root.parent.iterdir()] == ["store"]
