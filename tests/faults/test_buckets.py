"""Stores in a bucket under the faults of stores on a disk: killed writers, and many writers at once."""

import os
from pathlib import Path

import pytest

from storage import open_store, write_manifest
from storage.parts import parts
from storage.place.located import CACHE_VARIABLE, located
from tests.faults import disk
from tests.faults.children import FORKED, Child, run, value_of
from tests.faults.sweeps import POINTS, PROBLEM, ids, sweep
from tests.faults.tally import Tally
from tests.storage.made_up import manifest, put, read_rows, rows

pytestmark = pytest.mark.xdist_group("bucket")  # one server

Machine = dict[str, str]
"""Environment of a process: the address of the server, and the folder of its mirrors."""


def machine(folder: Path) -> Machine:
    """Return the environment of a machine without mirrors."""
    folder.mkdir(parents=True)
    aws = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    return aws | {CACHE_VARIABLE: str(folder)}


def swept(on: Machine, address: str, killed_at: int | None) -> tuple[int, list[str]]:
    """Run the sweep on a machine; return the number of computed points, and the fault points passed.

    Between two requests to the server a process only changes its mirror, so these fault points cover all
    states in which the process can leave the bucket.
    """
    os.environ.update(on)
    passed = disk.watch(Path(on[CACHE_VARIABLE]), disk.kill_at(-1 if killed_at is None else killed_at))
    return sweep(Path(address)), list(passed)


def kills(faults: Tally, tmp_path: Path, address: str, every: int) -> None:
    """Kill a sweep at every `step`-th fault point, then read and resume from other machines."""
    _, points = value_of(swept, machine(tmp_path / "undisturbed"), address + "/undisturbed", None)
    assert len(points) > 50
    for k in range(0, len(points), every):
        store = f"{address}/{k}"
        with faults.trial():
            assert run(swept, machine(tmp_path / f"{k}" / "killed"), store, k).killed, points[k]
            with faults.recovery():
                computed, _ = value_of(swept, machine(tmp_path / f"{k}" / "next"), store, None)
            assert computed % 4 == 0, "whole batches or nothing"
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(CACHE_VARIABLE, str(tmp_path / f"{k}" / "reader"))
                with open_store(store) as opened:
                    assert set(opened.stored(PROBLEM)) == ids(), points[k]
                    assert opened.verify() == []
                    assert [m.status for m in opened.manifests()] == ["complete"]
                place = located(store)
                assert sum(len(read_rows(path)) for path in parts(place)) == POINTS, "nothing twice"
                if k % (2 * every) == 0:
                    faults.compare(place.root, ids())


@pytest.mark.thorough
def test_killed_between_requests_a_run_leaves_whole_objects_and_another_machine_goes_on(
    faults: Tally, tmp_path: Path, address: str
) -> None:
    """T6: kill at every forty-eighth operation of a sweep on a bucket."""
    kills(faults, tmp_path, address, 48)


@pytest.mark.soak
def test_killed_between_any_two_requests_a_run_leaves_whole_objects(
    faults: Tally, tmp_path: Path, address: str
) -> None:
    """T6: kill at every operation of a sweep on a bucket."""
    kills(faults, tmp_path, address, 1)


def commit(on: Machine, address: str, start: object, first: int, count: int) -> int:
    """Commit parts of two rows each, with a manifest for every fifth."""
    os.environ.update(on)
    start.wait(timeout=60)  # type: ignore[attr-defined]
    for number in range(first, first + count):
        part = put(Path(address), rows(2, first=2 * number))
        if number % 5 == 0:
            write_manifest(located(address), manifest(part, digest=f"{number:08x}"))
    return count


def writers(faults: Tally, tmp_path: Path, address: str, machines: int, each: int, commits: int) -> None:
    """Commit from several writers on each of several machines at once; each machine has one mirror."""
    count = machines * each
    start = FORKED.Manager().Barrier(count)
    known = [machine(tmp_path / f"{number}") for number in range(machines)]
    children = [
        Child(commit, known[k % machines], address, start, k * commits, commits) for k in range(count)
    ]
    for child in children:
        with faults.trial(commits):
            ending = child.end()
            assert ending.error is None
            assert ending.value == commits
    with open_store(address) as store:
        assert store.verify() == []
        assert len(store.manifests()) == -(-count * commits // 5)
    place = located(address)
    assert len(parts(place)) == count * commits
    faults.compare(place.root, {row.point.id for row in rows(2 * count * commits)})


@pytest.mark.thorough
def test_four_writers_on_two_machines_lose_nothing(faults: Tally, tmp_path: Path, address: str) -> None:
    """T11: four writers of 10 commits each to one bucket, which first create the store."""
    writers(faults, tmp_path, address, 2, 2, 10)


@pytest.mark.soak
def test_two_thousand_commits_to_a_bucket_are_all_there_once(
    faults: Tally, tmp_path: Path, address: str
) -> None:
    """T11: eight writers on four machines, of 250 commits each: 2,000 of 2,000, none twice."""
    writers(faults, tmp_path, address, 4, 2, 250)
