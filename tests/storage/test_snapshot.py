import os
import shutil
from pathlib import Path

import duckdb
import pytest

from privcore import Answer
from storage import QueryError, StoreError, open_store
from storage.garbage import collect, find_garbage
from storage.place.located import CACHE_VARIABLE, located
from storage.sql.snapshot import contents
from tests.storage.made_up import epsilon, put, row, rows


def upper(root: Path) -> float:
    with open_store(root) as store:
        found = store.lookup(epsilon())
    assert found is not None
    return found.upper


def snapshots(root: Path) -> list[Path]:
    return sorted((root / "cache").glob("*.duckdb"))


def forge(snapshot: Path) -> None:
    """Halve every stored bracket, and give the file its former times."""
    times = snapshot.stat()
    with duckdb.connect(str(snapshot)) as connection:
        connection.execute("update brackets.unamplified_epsilon set lower = 0, upper = upper / 2")
    os.utime(snapshot, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_forged_snapshot_is_built_again_from_the_parts(root: Path) -> None:
    put(root, rows(3))
    assert upper(root) == 2.0
    (snapshot,) = snapshots(root)
    forge(snapshot)
    assert upper(root) == 2.0
    assert snapshot not in snapshots(root)


def test_a_forged_log_of_changes_next_to_a_snapshot_is_not_replayed(root: Path, tmp_path: Path) -> None:
    put(root, rows(3))
    assert upper(root) == 2.0
    (snapshot,) = snapshots(root)
    copy = shutil.copy(snapshot, tmp_path / "copy.duckdb")
    with duckdb.connect(str(copy)) as connection:
        connection.execute("pragma disable_checkpoint_on_shutdown")
        connection.execute("update brackets.unamplified_epsilon set lower = 0, upper = upper / 2")
    shutil.copy(f"{copy}.wal", f"{snapshot}.wal")
    assert upper(root) == 2.0
    assert snapshots(root) == [snapshot]


@pytest.mark.parametrize("name", ["snapshot-{}.duckdb", "snapshot-{}-00000000.duckdb"])
def test_a_snapshot_that_somebody_else_made_is_not_believed(root: Path, name: str) -> None:
    put(root, rows(3))
    assert upper(root) == 2.0
    (snapshot,) = snapshots(root)
    copy = root / "cache" / name.format(contents(located(root)).digest)
    shutil.copy2(snapshot, copy)
    forge(copy)
    snapshot.unlink()
    assert upper(root) == 2.0


@pytest.mark.parametrize("shared", ["cache", ""], ids=["cache", "store"])
@pytest.mark.parametrize("mode", [0o777, 0o2775])
def test_a_snapshot_is_not_where_others_could_exchange_it_while_it_is_opened(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str, mode: int
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "private"))
    put(root, rows(3))
    assert upper(root) == 2.0
    (snapshot,) = snapshots(root)
    before = snapshot.read_bytes()
    (root / shared).chmod(mode)
    forge(snapshot)
    forged = snapshot.read_bytes()
    assert forged != before
    for _ in range(2):
        assert upper(root) == 2.0
    assert snapshot.read_bytes() == forged, "it is not even read"
    (own,) = (tmp_path / "private" / "snapshots").glob("*/snapshot-*.duckdb")
    assert own.parent.stat().st_mode & 0o777 == 0o700
    put(root, rows(3, first=3))
    assert upper(root) == 2.0
    collect(located(root), find_garbage(located(root)))
    (newest,) = (tmp_path / "private" / "snapshots").glob("*/snapshot-*.duckdb")
    assert newest != own
    assert snapshots(root) == [], "the old one is not needed"


def test_a_snapshot_of_another_size_is_replaced_unread(root: Path) -> None:
    put(root, rows(3))
    assert upper(root) == 2.0
    (snapshot,) = snapshots(root)
    os.truncate(snapshot, 8 * 10**12)  # 8 TB of zeros, which need no room but hours to hash
    put(root, rows(2, first=3))
    assert upper(root) == 2.0
    collect(located(root), find_garbage(located(root)))
    (again,) = snapshots(root)
    os.truncate(again, 8 * 10**12)
    assert upper(root) == 2.0
    assert again not in snapshots(root)


def test_a_snapshot_with_a_flipped_bit_is_replaced(root: Path) -> None:
    put(root, rows(400))
    assert upper(root) == 2.0
    (snapshot,) = snapshots(root)
    harmed = bytearray(snapshot.read_bytes())
    harmed[len(harmed) // 2] ^= 1
    snapshot.write_bytes(harmed)
    assert upper(root) == 2.0
    (again,) = snapshots(root)
    assert again != snapshot


def test_a_sound_snapshot_is_kept_and_read_again(root: Path) -> None:
    put(root, rows(3))
    assert upper(root) == 2.0
    before = {path: path.stat().st_mtime_ns for path in snapshots(root)}
    (snapshot,) = before
    snapshot.chmod(0o600)  # a new state, the same bytes
    assert upper(root) == 2.0
    assert {path: path.stat().st_mtime_ns for path in snapshots(root)} == before


def test_collection_keeps_the_snapshot_that_is_read_and_deletes_every_other_one(root: Path) -> None:
    put(root, rows(3))
    assert upper(root) == 2.0
    (good,) = snapshots(root)
    bad = good.with_name(f"snapshot-{contents(located(root)).digest}.duckdb")
    shutil.copy2(good, bad)
    forge(bad)
    collect(located(root), find_garbage(located(root)))
    assert snapshots(root) == [good]


@pytest.mark.thorough
def test_a_snapshot_that_goes_bad_while_it_is_open_is_built_again(root: Path) -> None:
    put(root, rows(5000))
    assert upper(root) == 2.0
    (snapshot,) = snapshots(root)
    with open_store(root) as store:
        store.sql("select 1")
        size = snapshot.stat().st_size
        with snapshot.open("r+b") as file:
            file.seek(3 * 4096)
            file.write(os.urandom(size - 3 * 4096))
        assert store.sql("from results").num_rows == 5000


# ------------------------------------------------------------------------------ links


@pytest.mark.parametrize("name", ["data/problem=unamplified-epsilon", "part", "sweeps/feedbeef.json"])
def test_a_link_in_a_store_is_foreign(root: Path, tmp_path: Path, name: str) -> None:
    part = put(root, rows(3))
    path = part if name == "part" else root / name
    path.parent.mkdir(exist_ok=True)
    outside = tmp_path / "outside"
    if path.exists():
        path.rename(outside)
    else:
        outside.write_text("{}")
    path.symlink_to(outside)
    with open_store(root) as store:
        assert store.verify() == [f"{path} is not part of the store; `privsweep repair` will quarantine it."]
        with pytest.raises(StoreError, match="is not part of the store"):
            store.sql("from results")


@pytest.mark.parametrize("name", ["data", "sweeps", "replaced"])
def test_a_link_in_the_place_of_a_folder_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    put(root, rows(3))
    (root / name).mkdir(exist_ok=True)
    (root / name).rename(tmp_path / "outside")
    (root / name).symlink_to(tmp_path / "outside")
    with (
        open_store(root) as store,
        pytest.raises(StoreError, match=f"{root / name} is a link: put the folder"),
    ):
        store.sql("from results")


def test_nothing_is_written_or_deleted_through_a_link_in_the_place_of_the_cache(
    root: Path, tmp_path: Path
) -> None:
    put(root, rows(3))
    (tmp_path / "outside").mkdir()
    mine = tmp_path / "outside" / "snapshot-mine.duckdb"
    mine.touch()
    (root / "cache").symlink_to(tmp_path / "outside")
    assert upper(root) == 2.0
    collect(located(root), find_garbage(located(root)))
    assert list((tmp_path / "outside").iterdir()) == [mine]


# ------------------------------------------------------------------------------ room


@pytest.mark.thorough
def test_without_room_for_a_file_a_store_is_queried_in_memory_with_the_same_answers(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, [*rows(20), row(epsilon(delta=1e-6), Answer.enclosure(1.5, 3.0))])
    query = "select * from results order by point_id"
    with open_store(root) as store:
        expected, best = store.sql(query), store.sql("select * from best order by problem_id")
    shutil.rmtree(root / "cache")
    (root / "cache").write_text("a file where the folder would be")
    monkeypatch.setattr("tempfile.tempdir", str(root / "missing"))
    with open_store(root) as store:
        assert store.sql(query).equals(expected)
        assert store.sql("select * from best order by problem_id").equals(best)
        assert upper(root) == 2.0
        for forbidden in (
            "select * from read_text('/etc/hostname')",
            "create table t (a int)",
            "set threads = 1",
        ):
            with pytest.raises(QueryError):
                store.sql(forbidden)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (duckdb.OutOfMemoryException("Out of Memory"), r"No room for the snapshot in .*: Out of Memory\."),
        (duckdb.InvalidInputException("Bad input"), r"Cannot build the snapshot in .*: Bad input\."),
    ],
)
def test_only_a_lack_of_room_is_called_one(
    root: Path, monkeypatch: pytest.MonkeyPatch, error: duckdb.Error, sentence: str
) -> None:
    put(root, rows(1))

    def fails(*_: object) -> None:
        raise error

    for name in ("build", "build_in_memory"):
        monkeypatch.setattr(f"storage.sql.snapshot.{name}", fails)
    with open_store(root) as store, pytest.raises(StoreError, match=sentence):
        store.sql("from results")
