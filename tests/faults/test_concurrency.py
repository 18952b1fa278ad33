"""Many writers and readers of one store, without a lock: no row is lost, and no reader gets a point twice."""

import time
from pathlib import Path

import pytest

import flows.runs.plan
import flows.runs.run
from storage import open_store, write_manifest
from storage.parts import parts
from storage.place.located import located
from tests.faults.children import FORKED, Child
from tests.faults.sweeps import POINTS, content, ids, sweep
from tests.faults.tally import Tally
from tests.storage.made_up import manifest, put, read_rows, rows

pytestmark = pytest.mark.sampled(1)

WRITERS = 8


def commit(root: Path, start: object, first: int, count: int, per_part: int) -> list[float]:
    """Commit parts with distinct rows, some with a manifest; return the seconds of each commit."""
    start.wait(timeout=60)  # type: ignore[attr-defined]
    seconds = []
    for number in range(first, first + count):
        began = time.perf_counter()
        part = put(root, rows(per_part, first=per_part * number))
        seconds.append(time.perf_counter() - began)
        if number % 25 == 0:
            write_manifest(located(root), manifest(part, digest=f"{number:08x}"))
    return seconds


def eight_writers(faults: Tally, root: Path, commits: int, per_part: int) -> list[float]:
    """Return the seconds of each commit."""
    start = FORKED.Manager().Barrier(WRITERS)
    writers = [Child(commit, root, start, k * commits, commits, per_part) for k in range(WRITERS)]
    seconds: list[float] = []
    for writer in writers:
        ending = writer.end()
        assert ending.error is None
        with faults.trial(commits):
            assert len(ending.value) == commits
        seconds += ending.value
    assert len(parts(located(root))) == WRITERS * commits
    with open_store(root) as store:
        assert store.verify() == []
        assert len(store.manifests()) == WRITERS * commits // 25
    faults.compare(root, {row.point.id for row in rows(WRITERS * commits * per_part)})
    return seconds


@pytest.mark.thorough
def test_eight_writers_of_one_store_lose_nothing(faults: Tally, root: Path) -> None:
    """T11: 8 writers of 25 commits each, which first create the store."""
    eight_writers(faults, root, 25, 2)


@pytest.mark.soak
def test_two_thousand_commits_of_eight_writers_are_all_there_once(faults: Tally, root: Path) -> None:
    """T11: 8 writers of 250 commits each: 2,000 of 2,000, none twice."""
    seconds = eight_writers(faults, root, 250, 5)
    assert sorted(seconds)[int(0.99 * len(seconds))] < 1.0, "of a commit, 99 of 100"


def sweep_after(root: Path, start: object) -> int:
    """Plan the sweep, wait until all other processes have planned it too, and run it."""
    plan = flows.runs.plan.make_plan

    def planned(*arguments: object, **options: object) -> object:
        made = plan(*arguments, **options)  # type: ignore[arg-type]
        start.wait(timeout=60)  # type: ignore[attr-defined]
        return made

    flows.runs.run.make_plan = planned  # type: ignore[assignment,attr-defined]  # a name it imports
    return sweep(root)


@pytest.mark.thorough
@pytest.mark.parametrize("runs", [2, 4])
def test_one_sweep_started_several_times_at_once_is_stored_once(faults: Tally, root: Path, runs: int) -> None:
    """T12: runs that all planned before any of them stored a row, which is the worst case."""
    start = FORKED.Manager().Barrier(runs)
    with faults.trial(runs):
        endings = [child.end() for child in [Child(sweep_after, root, start) for _ in range(runs)]]
        assert [ending.error for ending in endings] == [None] * runs
        assert all(ending.value == POINTS for ending in endings)
        with open_store(root) as store:
            assert store.verify() == []
            (record,) = store.manifests()
            assert (record.status, record.counts) == ("complete", {"ok": POINTS, "missing": 0})
        raw = sum(len(read_rows(path)) for path in parts(located(root)))
        assert POINTS <= raw <= runs * POINTS, "points in flight, and no more"
        faults.compare(root, ids())
    alone = root.with_name("alone")
    assert Child(sweep, alone).end().value == POINTS
    assert content(root) == content(alone)
