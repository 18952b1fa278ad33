import os
import time
from pathlib import Path

import pytest

from privcore import Answer, Status
from storage import open_store, parts, write_manifest
from storage.compaction import compact
from storage.garbage import Garbage, collect, find_garbage
from tests.storage.contents import counting, kill_at, row_hashes, steps_of
from tests.storage.made_up import epsilon, manifest, put, row, rows

LONG_AGO = 90_000.0  # seconds: more than a day


def make_old(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (time.time() - LONG_AGO,) * 2)


def overlapping(root: Path) -> list[Path]:
    """Three parts; the second has two rows that do not count, the third none that does."""
    made = [
        put(root, rows(4)),
        put(root, rows(4, first=2, seconds_later=5)),
        put(root, row(epsilon(sigma=1.0), Answer.without(Status.CRASHED, "gone"), seconds_later=-5)),
    ]
    write_manifest(root, manifest(*made))
    return made


def gc(root: Path) -> Garbage:
    garbage = find_garbage(root)
    collect(root, garbage)
    return garbage


def test_rows_that_do_not_count_are_dropped_and_the_others_keep_their_bits(root: Path) -> None:
    first, _, third = overlapping(root)
    counted = counting(root)
    assert gc(root).rows == 3
    assert sorted(row_hashes(root).elements()) == counting(root) == counted
    assert first in parts(root), "a part whose rows all count stays"
    assert third not in parts(root)
    with open_store(root) as store:
        assert [finding.detail for finding in store.examine().findings] == []
        assert len(store.manifests()[0].parts) == 2


def test_finding_garbage_deletes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlapping(root)
    assert steps_of(monkeypatch, lambda: find_garbage(root)) == []


def test_a_second_collection_has_nothing_to_do(root: Path) -> None:
    overlapping(root)
    gc(root)
    again = find_garbage(root)
    assert (again.idle, again.files) == ((), ())


def test_rows_that_do_not_count_are_dropped_from_a_merged_part_too(root: Path) -> None:
    overlapping(root)
    counted = counting(root)
    compact(root)
    assert gc(root).rows == 3
    assert sorted(row_hashes(root).elements()) == counted


def test_killed_at_any_step_a_collection_loses_no_row_that_counts_and_the_next_one_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlapping(tmp_path / "0")
    counted = counting(tmp_path / "0")
    steps = len(steps_of(monkeypatch, lambda: gc(tmp_path / "0")))
    for number in range(1, steps + 1):
        root = tmp_path / str(number)
        overlapping(root)
        kill_at(monkeypatch, number, lambda root=root: gc(root))  # type: ignore[misc]
        assert counting(root) == counted, f"step {number}"
        assert open_store(root).verify() == [], f"step {number}"
        gc(root)
        assert sorted(row_hashes(root).elements()) == counted, f"step {number}"


def test_copies_of_a_row_are_told_apart_only_when_nobody_can_be_at_work_on_them(root: Path) -> None:
    made = [put(root, [row(epsilon()), row(epsilon(sigma=2 + i))]) for i in range(2)]
    assert find_garbage(root).rows == 0, "a compaction may be about to delete one of the two"
    make_old(max(made))
    assert find_garbage(root).rows == 0
    make_old(min(made))
    (idle,) = find_garbage(root).idle
    assert idle.part == max(made)
    collect(root, find_garbage(root))
    assert sum(row_hashes(root).values()) == 3


def test_leftovers_snapshots_and_needless_records_go(root: Path) -> None:
    made = overlapping(root)
    with open_store(root) as store:
        store.sql("from results")
        (stale,) = (root / "cache").iterdir()
        compact(root)
        store.sql("from results")
        old, young = made[0].parent / ".old.tmp", made[0].parent / ".young.tmp"
        for path in (old, young):
            path.write_text("half a part")
        (record,) = (root / "replaced").iterdir()
        make_old(old, record)
        assert set(find_garbage(root).files) == {old, stale}
        write_manifest(root, manifest(*parts(root)))
        assert set(find_garbage(root).files) >= {old, record}
        gc(root)
        assert not old.exists()
        assert not stale.exists()
        assert young.exists()
        assert store.verify() == []


def test_quarantine_is_kept_unless_asked_for(root: Path) -> None:
    put(root, rows(1))
    folder = root / "quarantine" / "20260101T000000-00000000"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "x.parquet").write_text("damaged")
    make_old(folder)
    assert gc(root).files == ()
    assert find_garbage(root, quarantine=2 * LONG_AGO).files == ()
    garbage = find_garbage(root, quarantine=LONG_AGO / 2)
    assert garbage.files == (folder,)
    collect(root, garbage)
    assert not folder.exists()


def test_rows_that_a_compaction_added_and_gc_dropped_again_do_not_lead_in_a_circle(root: Path) -> None:
    """What is left after gc are the rows of the first part; its name must not become that part's again."""
    first, second = put(root, row(epsilon())), put(root, row(epsilon(), seconds_later=5))
    write_manifest(root, manifest(first, second))
    counted = counting(root)
    for _ in range(3):
        compact(root)
        gc(root)
        assert counting(root) == counted
    assert first not in parts(root)
    with open_store(root) as store:
        assert [finding.detail for finding in store.examine().findings] == []
        assert store.manifests()[0].parts == tuple(
            str(path.relative_to(root / "data")) for path in parts(root)
        )
