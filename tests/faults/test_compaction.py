"""Compaction keeps every row, even with concurrent readers and writers, and wherever it is killed."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from storage import open_store
from storage.compaction import compact
from storage.garbage import collect, find_garbage
from storage.parts import parts
from storage.place.located import located
from tests.faults import disk
from tests.faults.children import Child, run, value_of
from tests.faults.tally import Tally
from tests.storage.made_up import put, read_rows, rows
from tests.suites import some

pytestmark = pytest.mark.sampled(1)


def all_rows(root: Path) -> pa.Table:
    """Every row of the parts of a store, in an order that does not depend on the parts."""
    tables = [read_rows(path) for path in parts(located(root))]
    order = [("point_id", "ascending"), ("finished_at", "ascending")]
    return pa.concat_tables(tables).unify_dictionaries().sort_by(order).combine_chunks()


def same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables have the same rows, bit by bit."""
    return bool(one.to_pylist() == other.to_pylist())


def seconds_to_open(root: Path) -> float:
    """Processor time of a first query, without a snapshot."""
    for path in (root / "cache").glob("*.duckdb"):
        path.unlink()
    began = time.process_time()
    with open_store(root) as store:
        store.sql("select count(*) from results")
    return time.process_time() - began


def many_tiny_parts(faults: Tally, root: Path, count: int) -> tuple[float, float]:
    """Return the processor time of a first query before and after."""
    for number in range(count):
        put(root, rows(2, first=2 * number))
    before, bytes_before, opened_before = all_rows(root), size(root), seconds_to_open(root)
    with faults.trial(count):
        with faults.recovery():
            compact(located(root))
        assert len(parts(located(root))) == 1
        assert same(all_rows(root), before), "every row, bit by bit"
        assert size(root) < bytes_before / 2
        opened_after = seconds_to_open(root)
        with open_store(root) as store:
            assert store.verify() == []
    faults.compare(root, {row.point.id for row in rows(2 * count)})
    return opened_before, opened_after


def size(root: Path) -> int:
    return sum(path.stat().st_size for path in parts(located(root)))


@pytest.mark.thorough
def test_tiny_parts_become_one_with_every_row_as_it_was(faults: Tally, root: Path) -> None:
    """T33: 200 tiny parts against one."""
    many_tiny_parts(faults, root, 200)


@pytest.mark.soak
def test_five_thousand_tiny_parts_become_one(faults: Tally, root: Path) -> None:
    """T33: 5,000 tiny parts against one."""
    before, after = many_tiny_parts(faults, root, 5000)
    assert after < before


def fill(root: Path) -> int:
    """Create a store with several rows for some points; return the number of points."""
    for number in range(6):
        put(root, rows(4, first=4 * number))
    put(root, rows(8, first=2, seconds_later=60))
    return 24


def collect_all(root: Path) -> None:
    """Delete all garbage, of any age."""
    for path in root.rglob("*"):
        os.utime(path, (1e9, 1e9))
    collect(located(root), find_garbage(located(root), older_than=0.0))


def compact_all(root: Path) -> None:
    """Merge all parts."""
    compact(located(root))


WORK: dict[str, Callable[[Path], object]] = {"compact": compact_all, "gc": collect_all}


def points_of(work: str, root: Path) -> list[str]:
    passed = disk.watch(root, lambda _k, _operation, _path: None)
    WORK[work](root)
    return list(passed)


def killed_at(work: str, number: int, root: Path) -> None:
    disk.watch(root, disk.kill_at(number))
    WORK[work](root)


@pytest.mark.thorough
@pytest.mark.parametrize("work", WORK)
def test_killed_at_any_operation_nothing_is_lost_and_the_next_one_goes_on(
    faults: Tally, tmp_path: Path, work: str
) -> None:
    """T34: compact and gc killed at every operation on the disk."""
    fill(tmp_path / "whole")
    points = value_of(points_of, work, tmp_path / "whole")
    assert len(points) > 6
    expected = {row.point.id for row in rows(24)}
    for k, point in some(list(enumerate(points)), 3, work):
        root = tmp_path / f"{k}"
        fill(root)
        with faults.trial():
            assert run(killed_at, work, k, root).killed, point
            with open_store(root) as store:
                assert store.verify() == [], point
                assert set(store.stored("unamplified-epsilon")) == expected, point
            if k % 12 == 0:
                faults.compare(root, expected)
            with faults.recovery():
                value_of(WORK[work], root)
            with open_store(root) as store:
                assert store.verify() == [], point
                assert set(store.stored("unamplified-epsilon")) == expected, point
        faults.compare(root, expected)


def disturbed(work: str, root: Path) -> list[str]:
    """Compact while at every operation a reader asks and a writer publishes; return the failures."""
    written = fill(root)
    reader = open_store(root)
    complaints = []
    assert reader.sql("from results").num_rows == written

    def strike(k: int, operation: str, _path: Path) -> None:
        nonlocal written
        expected = {row.point.id for row in rows(written)}
        with open_store(root) as fresh:
            if set(fresh.stored("unamplified-epsilon")) != expected:
                complaints.append(f"{k} {operation}: a new reader misses points")
            complaints.extend(f"{k} {operation}: {sentence}" for sentence in fresh.verify())
        if k % 6 == 0:
            count, points = reader.sql(
                "select count(*) as n, count(distinct point_id) as m from results"
            ).columns
            if not count[0].as_py() == points[0].as_py() == written:
                complaints.append(f"{k} {operation}: an open reader saw {count[0]} rows of {written}")
        put(root, rows(2, first=written))
        written += 2

    disk.watch(root, strike)
    WORK[work](root)
    return [f"{written}", *complaints]


@pytest.mark.thorough
@pytest.mark.parametrize("work", WORK)
def test_readers_and_writers_at_every_operation_of_a_compaction_lose_nothing(
    faults: Tally, root: Path, work: str
) -> None:
    """T34: between any two operations of compact or gc, a reader asks and a writer publishes."""
    with faults.trial():
        written, *complaints = value_of(disturbed, work, root)
        assert complaints == []
        value_of(compact_all, root)
    faults.compare(root, {row.point.id for row in rows(int(written))})


def publish_many(root: Path, count: int) -> None:
    for number in range(count):
        put(root, rows(2, first=100 + 2 * number))


def compact_often(root: Path, times: int) -> None:
    for _ in range(times):
        compact(located(root))
        collect(located(root), find_garbage(located(root)))


@pytest.mark.thorough
def test_two_compactions_a_writer_and_a_reader_at_once_lose_nothing(faults: Tally, root: Path) -> None:
    """T34: processes that compact, collect, write and read one store, as fast as they can."""
    put(root, rows(100))
    with faults.trial():
        others = [Child(publish_many, root, 40), Child(compact_often, root, 5), Child(compact_often, root, 5)]
        seen = 0
        with open_store(root) as store:
            while any(child.alive for child in others):
                now = store.sql("select count(*) as n from results").to_pylist()[0]["n"]
                assert now >= seen
                seen = now
        assert [child.end().error for child in others] == [None] * 3
        with open_store(root) as store:
            assert store.verify() == []
        faults.compare(root, {row.point.id for row in rows(180)})
