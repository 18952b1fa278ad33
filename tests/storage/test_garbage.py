import os
import time
from pathlib import Path

import pytest

from privcore import Answer, Status
from storage import open_store, write_manifest
from storage.compaction import compact
from storage.garbage import Garbage, collect, find_garbage
from storage.manifest import Replacement, write_replacement
from storage.parts import parts
from storage.place.located import located
from tests.storage.contents import counting, kill_at, row_hashes, steps_of
from tests.storage.made_up import epsilon, manifest, put, row, rows
from tests.suites import some

pytestmark = pytest.mark.sampled(7)

LONG_AGO = 90_000.0  # seconds: more than a day


def make_old(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (time.time() - LONG_AGO,) * 2)


def overlapping(root: Path) -> list[Path]:
    """Three parts; the second has two superseded rows, and all rows of the third are superseded."""
    made = [
        put(root, rows(4)),
        put(root, rows(4, first=2, seconds_later=5)),
        put(root, row(epsilon(sigma=1.0), Answer.without(Status.CRASHED, "gone"), seconds_later=-5)),
    ]
    write_manifest(located(root), manifest(*made))
    return made


def gc(root: Path) -> Garbage:
    garbage = find_garbage(located(root))
    collect(located(root), garbage)
    return garbage


def test_rows_that_do_not_count_are_dropped_and_the_others_keep_their_bits(root: Path) -> None:
    first, _, third = overlapping(root)
    counted = counting(root)
    assert gc(root).rows == 3
    assert sorted(row_hashes(root).elements()) == counting(root) == counted
    assert first in parts(located(root)), "a part whose rows all count stays"
    assert third not in parts(located(root))
    with open_store(root) as store:
        assert [finding.detail for finding in store.examine().findings] == []
        assert len(store.manifests()[0].parts) == 2


def test_finding_garbage_deletes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlapping(root)
    assert steps_of(monkeypatch, lambda: find_garbage(located(root))) == []


def test_a_second_collection_has_nothing_to_do(root: Path) -> None:
    overlapping(root)
    gc(root)
    again = find_garbage(located(root))
    assert (again.idle, again.files) == ((), ())


def test_rows_that_do_not_count_are_dropped_from_a_merged_part_too(root: Path) -> None:
    overlapping(root)
    counted = counting(root)
    compact(located(root))
    assert gc(root).rows == 3
    assert sorted(row_hashes(root).elements()) == counted


@pytest.mark.thorough
def test_killed_at_any_step_a_collection_loses_no_row_that_counts_and_the_next_one_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlapping(tmp_path / "0")
    counted = counting(tmp_path / "0")
    steps = len(steps_of(monkeypatch, lambda: gc(tmp_path / "0")))
    for number in some(range(1, steps + 1), 6):
        root = tmp_path / str(number)
        overlapping(root)
        kill_at(monkeypatch, number, lambda root=root: gc(root))  # type: ignore[misc]
        assert counting(root) == counted, f"step {number}"
        assert open_store(root).verify() == [], f"step {number}"
        gc(root)
        assert sorted(row_hashes(root).elements()) == counted, f"step {number}"


def test_copies_of_a_row_are_told_apart_only_when_nobody_can_be_at_work_on_them(root: Path) -> None:
    made = [put(root, [row(epsilon()), row(epsilon(sigma=2 + i))]) for i in range(2)]
    assert find_garbage(located(root)).rows == 0, "a compaction may be about to delete one of the two"
    make_old(max(made))
    assert find_garbage(located(root)).rows == 0
    make_old(min(made))
    (idle,) = find_garbage(located(root)).idle
    assert idle.part == max(made)
    collect(located(root), find_garbage(located(root)))
    assert sum(row_hashes(root).values()) == 3


def test_leftovers_snapshots_and_needless_records_go(root: Path) -> None:
    made = overlapping(root)
    with open_store(root) as store:
        store.sql("from results")
        (stale,) = (root / "cache").iterdir()
        compact(located(root))
        store.sql("from results")
        old, young = made[0].parent / ".old.tmp", made[0].parent / ".young.tmp"
        for path in (old, young):
            path.write_text("half a part")
        (record,) = (root / "replaced").iterdir()
        make_old(old, record)
        log = stale.with_name(f"{stale.name}.wal")
        log.write_bytes(b"changes that no process of this program wrote")
        assert set(find_garbage(located(root)).files) == {old, stale, log}
        write_manifest(located(root), manifest(*parts(located(root))))
        assert set(find_garbage(located(root)).files) >= {old, record}
        gc(root)
        assert not old.exists()
        assert not stale.exists()
        assert not log.exists()
        assert young.exists()
        assert store.verify() == []


def test_quarantine_is_kept_unless_asked_for(root: Path) -> None:
    put(root, rows(1))
    folder = root / "quarantine" / "20260101T000000-00000000"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "x.parquet").write_text("damaged")
    make_old(folder)
    assert gc(root).files == ()
    assert find_garbage(located(root), quarantine=2 * LONG_AGO).files == ()
    garbage = find_garbage(located(root), quarantine=LONG_AGO / 2)
    assert garbage.files == (folder,)
    collect(located(root), garbage)
    assert not folder.exists()


def test_rows_that_a_compaction_added_and_gc_dropped_again_do_not_lead_in_a_circle(root: Path) -> None:
    """The rows of the first part remain after gc; the new part must not get the name of that part again."""
    first, second = put(root, row(epsilon())), put(root, row(epsilon(), seconds_later=5))
    write_manifest(located(root), manifest(first, second))
    counted = counting(root)
    for _ in range(3):
        compact(located(root))
        gc(root)
        assert counting(root) == counted
    assert first not in parts(located(root))
    with open_store(root) as store:
        assert [finding.detail for finding in store.examine().findings] == []
        assert store.manifests()[0].parts == tuple(
            str(path.relative_to(root / "data")) for path in parts(located(root))
        )


def name_of(part: Path) -> str:
    return f"{part.parent.name}/{part.name}"


@pytest.mark.thorough
@pytest.mark.parametrize("first", [0, 200, 400, 500])
def test_a_day_after_a_compaction_was_killed_no_row_is_lost_whichever_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    for number in range(10, 15):  # from the record of the replacement to the last old part
        root = tmp_path / str(number)
        write_manifest(located(root), manifest(*(put(root, rows(3, first=first + 3 * i)) for i in range(3))))
        counted = counting(root)
        kill_at(monkeypatch, number, lambda root=root: compact(located(root)))  # type: ignore[misc]
        make_old(*root.rglob("*"))
        gc(root)
        assert sorted(row_hashes(root).elements()) == counted, f"step {number}"
        assert open_store(root).verify() == [], f"step {number}"
        assert find_garbage(located(root)) == Garbage(), f"step {number}"


def test_parts_that_a_killed_compaction_left_behind_are_told_before_they_go(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [put(root, rows(3, first=3 * i)) for i in range(3)]
    kill_at(monkeypatch, 12, lambda: compact(located(root)))
    assert find_garbage(located(root)).replaced == tuple(sorted(set(made) & set(parts(located(root))))) != ()
    gc(root)
    assert not set(made) & set(parts(located(root)))


def test_rows_stay_where_what_holds_them_too_was_replaced_by_their_part_meanwhile(root: Path) -> None:
    """A compaction that slept for a day between its part and its record wakes up during a collection."""
    made = [put(root, row(epsilon())), put(root, [row(epsilon()), row(epsilon(sigma=2))])]
    make_old(*made)
    garbage = find_garbage(located(root))
    (idle,) = garbage.idle
    (kept,) = (part for part in made if part != idle.part)
    write_replacement(located(root), Replacement(old=(name_of(kept),), new=(name_of(idle.part),)))
    collect(located(root), garbage)
    assert row(epsilon()).point.id in open_store(root).stored("unamplified-epsilon")


@pytest.mark.sampled(1)
def test_rows_stay_where_the_part_that_holds_them_too_is_gone_meanwhile(root: Path) -> None:
    """A repair may have moved it away between the search and the collection."""
    made = [put(root, row(epsilon())), put(root, [row(epsilon()), row(epsilon(sigma=2))])]
    make_old(*made)
    garbage = find_garbage(located(root))
    (idle,) = garbage.idle
    for name in idle.kept_in:
        (located(root).data / name).unlink()
    collect(located(root), garbage)
    assert idle.part in parts(located(root))
    assert row(epsilon()).point.id in open_store(root).stored("unamplified-epsilon")


def test_a_part_that_vanishes_under_the_eyes_of_a_collection_is_no_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlapping(root)
    counted = counting(root)
    garbage = find_garbage(located(root))
    monkeypatch.setattr("storage.garbage._is_held", lambda place, _idle: compact(place) is not None)
    collect(located(root), garbage)
    assert counting(root) == counted
    assert len(parts(located(root))) == 1


def test_a_part_that_two_compactions_replaced_needs_the_records_of_both(root: Path) -> None:
    made = [put(root, rows(2, first=2 * i)) for i in range(4)]
    old, one, other, last = map(name_of, made)
    write_manifest(located(root), manifest(made[0]))
    records = [
        write_replacement(located(root), Replacement(old=(before,), new=(after,)))
        for before, after in ((old, one), (old, other), (one, last), (other, last))
    ]
    for part in made[:3]:
        part.unlink()
    make_old(*records)
    assert find_garbage(located(root)).files == ()


def test_of_a_link_among_the_leftovers_only_the_link_goes(root: Path, tmp_path: Path) -> None:
    part = put(root, rows(1))
    (tmp_path / "mine").mkdir()
    link = part.parent / ".link.tmp"
    link.symlink_to(tmp_path / "mine")
    make_old(tmp_path / "mine")
    gc(root)
    assert (link.is_symlink(), (tmp_path / "mine").exists()) == (False, True)


@pytest.mark.parametrize(("confidence", "upper"), [(1.0, 2.001), (0.9, 2.000000001)])
def test_an_answer_of_another_processor_is_superseded(root: Path, confidence: float, upper: float) -> None:
    put(root, row(epsilon(), Answer.enclosure(1.0, 2.0, confidence=confidence)))
    put(root, row(epsilon(), Answer.enclosure(1.0, upper, confidence=confidence), seconds_later=5))
    assert gc(root).rows == 1


@pytest.mark.sampled(1)
def test_an_answer_that_contradicts_the_one_that_counts_is_kept_as_evidence(root: Path) -> None:
    put(root, row(epsilon(), Answer.enclosure(1.0, 2.0)))
    put(
        root,
        [row(epsilon(), Answer.enclosure(2.25, 2.5), seconds_later=5), *rows(1, first=7, seconds_later=5)],
    )
    put(root, [row(epsilon(), Answer.enclosure(1.0, 2.0), seconds_later=9), *rows(1, first=8)])
    assert gc(root).rows == 1
    with open_store(root) as store:
        assert "contradiction" in [finding.kind for finding in store.examine().findings]
    assert gc(root) == Garbage()
