import errno
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcore import Answer, Status
from storage import StoreError, open_store, publish, write_manifest
from storage.compaction import compact, merged
from storage.parts import ids_hash, parts
from storage.place.folder import Folder
from storage.place.located import located
from tests.storage.contents import counting, fail_at, kill_at, row_hashes, steps_of
from tests.storage.made_up import epsilon, manifest, put, read_rows, row, rows
from tests.suites import some


def several(root: Path) -> list[Path]:
    """Four parts that overlap, with a failure that a success replaces, listed by a manifest."""
    made = [put(root, rows(6, first=4 * i, seconds_later=i)) for i in range(3)]
    made.append(put(root, [row(epsilon(sigma=1.0), Answer.without(Status.TIMEOUT, "slow"), seconds_later=9)]))
    write_manifest(located(root), manifest(*made))
    return made


def test_small_parts_become_one_and_every_row_keeps_its_bits(root: Path) -> None:
    several(root)
    before, counted = row_hashes(root), counting(root)
    assert sum(before.values()) == 19
    (made,) = compact(located(root))
    assert (made.problem, made.parts, made.rows) == ("unamplified-epsilon", 4, 19)
    assert row_hashes(root) == before
    assert counting(root) == counted
    assert len(parts(located(root))) == 1
    assert open_store(root).verify() == []


def test_a_merged_part_is_sorted_by_the_fields_and_named_by_its_points(root: Path) -> None:
    several(root)
    compact(located(root))
    (part,) = parts(located(root))
    table = read_rows(part)
    sigmas = table["sigma"].to_pylist()
    assert sigmas == sorted(sigmas)
    assert part.name.startswith(ids_hash(table["point_id"].to_pylist()))


def test_the_same_rows_make_the_same_part_in_whatever_order_they_come(root: Path) -> None:
    made = several(root)
    tables, names = [read_rows(path) for path in made], [path.name for path in made]
    assert merged(tables, names).equals(merged(tables[::-1], names[::-1]))


def test_a_second_compaction_has_nothing_to_do(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several(root)
    compact(located(root))
    assert steps_of(monkeypatch, lambda: compact(located(root))) == []


def test_large_parts_stay_and_merged_ones_do_not_grow_beyond_their_limit(root: Path) -> None:
    large = put(root, rows(20, first=1000))
    for first in range(0, 50, 5):
        put(root, rows(5, first=first))
    compact(located(root), small=10, largest=25)
    sizes = sorted(pq.read_metadata(path).num_rows for path in parts(located(root)))
    assert sizes == [20, 25, 25]
    assert large in parts(located(root))


def test_a_manifest_lists_the_new_part_and_its_file_is_left_alone(root: Path) -> None:
    several(root)
    (file,) = (root / "sweeps").iterdir()
    written = file.read_bytes()
    compact(located(root))
    put(root, rows(2, first=100))
    compact(located(root))
    (part,) = parts(located(root))
    with open_store(root) as store:
        assert store.manifests()[0].parts == (f"{part.parent.name}/{part.name}",)
        part.unlink()
        (complaint,) = store.verify()
    assert complaint.startswith(f"{part} of sweep made-up is missing")
    assert file.read_bytes() == written


def test_a_sweep_that_ends_during_a_compaction_may_list_parts_that_are_gone(root: Path) -> None:
    made = several(root)
    compact(located(root))
    write_manifest(located(root), manifest(*made, digest="feedbeef"))
    assert open_store(root).verify() == []


@pytest.mark.thorough
def test_killed_at_any_step_a_compaction_loses_nothing_and_the_next_one_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(tmp_path / "0")
    before, counted = row_hashes(tmp_path / "0"), counting(tmp_path / "0")
    steps = len(steps_of(monkeypatch, lambda: compact(located(tmp_path / "0"))))
    assert steps > 12
    for number in range(1, steps + 1):
        root = tmp_path / str(number)
        several(root)
        kill_at(monkeypatch, number, lambda root=root: compact(located(root)))  # type: ignore[misc]
        assert set(row_hashes(root)) == set(before), f"step {number}"
        assert counting(root) == counted, f"step {number}"
        assert open_store(root).verify() == [], f"step {number}"
        compact(located(root))
        assert row_hashes(root) == before, f"step {number}"
        assert len(parts(located(root))) == 1, f"step {number}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_is_one_sentence_and_costs_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    several(tmp_path / "0")
    before = row_hashes(tmp_path / "0")
    steps = len(steps_of(monkeypatch, lambda: compact(located(tmp_path / "0"))))
    for number in some(range(1, steps + 1), 5):
        root = tmp_path / str(number)
        several(root)
        with pytest.raises(StoreError, match=r"^Cannot (write|delete) .*: no\.$"):
            fail_at(monkeypatch, number, lambda root=root: compact(located(root)), OSError(code, "no"))  # type: ignore[misc]
        assert set(row_hashes(root)) == set(before), f"step {number}"
        compact(located(root))
        assert row_hashes(root) == before, f"step {number}"


def test_a_damaged_part_stops_a_compaction_by_name_and_nothing_is_deleted(root: Path) -> None:
    made = several(root)
    content = made[1].read_bytes()
    made[1].write_bytes(content[:-30] + b"x" + content[-29:])
    with pytest.raises(StoreError) as caught:
        compact(located(root))
    assert str(made[1]) in str(caught.value)
    assert sorted(parts(located(root))) == sorted(made)


def test_rows_that_only_their_parts_tell_apart_are_kept_once(root: Path) -> None:
    same = [
        put(root, [row(epsilon(), sweep=name), row(epsilon(sigma=2 + i))])
        for i, name in enumerate(("one", "two"))
    ]
    first = read_rows(min(same))
    compact(located(root))
    (part,) = parts(located(root))
    (sweep,) = (r["sweep"] for r in read_rows(part).to_pylist() if r["sigma"] == 1.0)
    assert sweep in first["sweep"].to_pylist()


@pytest.mark.thorough
def test_readers_and_a_writer_do_not_notice_compactions(root: Path) -> None:
    for first in range(0, 100, 10):
        put(root, rows(10, first=first))
    seen: list[int] = []
    wrong: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                with open_store(root) as store:
                    seen.append(len(store.stored("unamplified-epsilon")))
                    assert store.verify() == []
        except BaseException as error:  # noqa: BLE001  it is looked at below
            wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for first in range(100, 200, 10):
        put(root, rows(10, first=first))
        compact(located(root))
    done.set()
    reader.join()
    assert wrong == []
    assert seen == sorted(seen), "no reader misses a row that was there before"
    assert sum(row_hashes(root).values()) == 200


def test_a_part_that_somebody_else_merges_at_once_replaces_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = several(root)
    before = row_hashes(root)

    def taken(place: Folder, table: pa.Table) -> Path:
        path = publish(place, table)
        path.unlink()
        return path

    monkeypatch.setattr("storage.compaction.publish", taken)
    assert compact(located(root)) == []
    assert sorted(parts(located(root))) == sorted(made)
    assert row_hashes(root) == before
