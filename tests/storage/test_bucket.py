"""Stores in a bucket, on a real S3 server. Another machine is one that has no mirror of it yet."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from storage import Store, StoreError, open_store, parts, write_manifest
from storage.bucket import Bucket
from storage.compaction import compact
from storage.disk import remove
from storage.export import write_store_sql
from storage.garbage import collect, find_garbage
from storage.located import CACHE_VARIABLE, address_of, located, refresh, shown
from storage.parts import read_part
from storage.repair import set_aside
from storage.server import connected
from tests.s3 import keys
from tests.storage.contents import counting, kill_at, row_hashes, steps_of
from tests.storage.made_up import epsilon, manifest, put, row, rows

pytestmark = pytest.mark.xdist_group("bucket")  # one server


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "Machines":
    return Machines(monkeypatch, tmp_path)


class Machines:
    """Several machines, each with its own mirrors; the test is on one of them at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._monkeypatch, self._folder = monkeypatch, folder

    def go(self, name: str) -> None:
        self._monkeypatch.setenv(CACHE_VARIABLE, str(self._folder / name))


def opened(address: str) -> Store:
    """The store, as it is now."""
    return open_store(address)


def folder(address: str) -> Path:
    """The mirror, equal to the bucket."""
    root = located(address)
    refresh(root)
    return root


def damage(address: str, name: str) -> None:
    """Flip a bit of an object."""
    key = f"{address.removeprefix('s3://')}/{name}"
    content = bytearray(connected("").cat_file(key))
    content[len(content) // 2] ^= 1
    connected("").pipe_file(key, bytes(content))


def test_what_one_machine_publishes_another_reads_to_the_bit(address: str, elsewhere: Machines) -> None:
    put(Path(address), rows(5))
    here = row_hashes(folder(address))
    elsewhere.go("b")
    assert row_hashes(folder(address)) == here
    with opened(address) as store:
        assert len(store.stored("unamplified-epsilon")) == 5
        assert store.sql("select count(*) as n from results").to_pylist() == [{"n": 5}]
        found = store.lookup(epsilon(sigma=1.0))
    assert found is not None
    assert (found.lower, found.upper) == (1.0, 2.0)


def test_a_store_is_objects_with_the_names_of_its_files_and_nothing_else(address: str) -> None:
    part = put(Path(address), rows(2))
    with opened(address) as store:
        store.sql("select 1")  # builds a snapshot
    assert keys(address) == [f"data/problem=unamplified-epsilon/{part.name}", "store.json"]


def test_an_open_store_sees_what_another_machine_publishes_within_a_second(
    address: str, elsewhere: Machines
) -> None:
    put(Path(address), rows(2))
    with opened(address) as store:
        count = "select count(*) as n from results"
        assert store.sql(count).to_pylist() == [{"n": 2}]
        elsewhere.go("b")
        put(Path(address), rows(3, first=50))
        time.sleep(1.1)
        assert store.sql(count).to_pylist() == [{"n": 5}]


def test_the_same_part_is_put_once(
    address: str, monkeypatch: pytest.MonkeyPatch, elsewhere: Machines
) -> None:
    put(Path(address), rows(2))
    before = connected("").find(address, detail=True)
    elsewhere.go("b")
    put(Path(address), rows(2))
    assert connected("").find(address, detail=True) == before


def test_a_damaged_object_is_replaced_when_its_part_is_published_again(
    address: str, elsewhere: Machines
) -> None:
    part = put(Path(address), rows(2))
    damage(address, f"data/{part.parent.name}/{part.name}")
    elsewhere.go("b")
    part = put(Path(address), rows(2))
    assert read_part(part).num_rows == 2
    elsewhere.go("c")
    assert opened(address).verify() == []


def test_a_flipped_bit_in_the_bucket_is_found_and_one_in_the_mirror_is_mended(address: str) -> None:
    part = put(Path(address), rows(2))
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(bytes(content))
    assert opened(address).verify() == []
    damage(address, f"data/{part.parent.name}/{part.name}")
    (complaint,) = opened(address).verify()
    assert complaint.startswith(f"{part} is damaged")
    assert shown(complaint).startswith(f"{address}/data/problem=unamplified-epsilon/")


def test_a_missing_object_is_missed(address: str) -> None:
    part = put(Path(address), rows(2))
    write_manifest(located(address), manifest(part))
    connected("").rm_file(f"{address}/data/{part.parent.name}/{part.name}")
    (complaint,) = opened(address).verify()
    assert "of sweep made-up is missing" in complaint


def test_compaction_on_one_machine_changes_no_row_for_another(address: str, elsewhere: Machines) -> None:
    made = [put(Path(address), rows(6, first=4 * i, seconds_later=i)) for i in range(3)]
    root = located(address)
    write_manifest(root, manifest(*made))
    before, counted = row_hashes(root), counting(root)
    elsewhere.go("b")
    assert row_hashes(folder(address)) == before
    elsewhere.go("a")
    compact(folder(address))
    assert sum(name.endswith(".parquet") for name in keys(address)) == 1
    for machine in ("a", "b", "c"):
        elsewhere.go(machine)
        root = folder(address)
        assert row_hashes(root) == before
        assert counting(root) == counted
        assert opened(address).verify() == []
        assert len(opened(address).manifests()[0].parts) == 1


def test_gc_drops_rows_that_do_not_count_from_the_bucket(address: str, elsewhere: Machines) -> None:
    put(Path(address), [row(epsilon(sigma=s)) for s in (1.0, 2.0)])
    put(Path(address), [row(epsilon(sigma=1.0), seconds_later=5)])
    root = located(address)
    counted = counting(root)
    garbage = find_garbage(root)
    assert garbage.rows == 1
    collect(root, garbage)
    elsewhere.go("b")
    root = folder(address)
    assert counting(root) == counted
    assert sum(row_hashes(root).values()) == 2


def test_what_is_set_aside_is_set_aside_in_the_bucket_and_can_be_removed(
    address: str, elsewhere: Machines
) -> None:
    part = put(Path(address), rows(2))
    aside = set_aside(located(address), [part])
    assert aside is not None
    elsewhere.go("b")
    root = folder(address)
    assert parts(root) == []
    kept = root / "quarantine" / aside.name
    assert sum(path.is_file() for path in kept.rglob("*")) == 1
    remove(kept)
    assert keys(address) == ["store.json"]


def test_a_compaction_that_is_killed_at_any_step_loses_no_row(
    s3_server: str, monkeypatch: pytest.MonkeyPatch, elsewhere: Machines
) -> None:
    def made(number: int) -> str:
        address = f"s3://killed-{number}-{time.time_ns()}/store"
        connected("").mkdir(address.split("/")[2])
        listed = [put(Path(address), rows(3, first=2 * i, seconds_later=i)) for i in range(3)]
        write_manifest(located(address), manifest(*listed))
        return address

    address = made(0)
    steps = steps_of(monkeypatch, lambda: compact(located(address)))
    assert steps == ["write", "write", "unlink", "unlink", "unlink", "sync-folder"]
    for number in range(1, len(steps) + 1):
        elsewhere.go(f"a{number}")
        address = made(number)
        root = located(address)
        before = row_hashes(root).keys()
        kill_at(monkeypatch, number, lambda root=root: compact(root))  # type: ignore[misc]
        elsewhere.go(f"b{number}")
        root = folder(address)
        assert row_hashes(root).keys() == before
        compact(root)
        elsewhere.go(f"c{number}")
        assert row_hashes(folder(address)).keys() == before
        assert opened(address).verify() == []
        assert len(parts(folder(address))) == 1


def test_a_store_that_was_deleted_is_gone_from_the_mirror_too(address: str) -> None:
    put(Path(address), rows(2))
    connected("").rm(address, recursive=True)
    with pytest.raises(StoreError, match="There is no store at"):
        opened(address)
    assert not located(address).exists()


def test_a_bucket_with_other_things_in_it_is_refused_and_nothing_is_fetched(bucket: str) -> None:
    connected("").pipe_file(f"{bucket}/data/large.csv", b"1,2,3")
    with pytest.raises(
        StoreError, match=r"Expected a store or no objects, got s3://.* with data/large.csv in it\."
    ):
        put(Path(f"s3://{bucket}"), rows(2))
    with pytest.raises(StoreError, match="There is no store at"):
        opened(f"s3://{bucket}")
    assert not located(f"s3://{bucket}").exists()


def test_a_bucket_can_be_a_store_and_a_prefix_can_hold_another(bucket: str) -> None:
    put(Path(f"s3://{bucket}"), rows(1))
    put(Path(f"s3://{bucket}/inner"), rows(3))
    assert len(opened(f"s3://{bucket}").stored("unamplified-epsilon")) == 1
    assert len(opened(f"s3://{bucket}/inner").stored("unamplified-epsilon")) == 3
    assert opened(f"s3://{bucket}").verify() == []


@pytest.mark.parametrize(
    "name", ["data/../../escaped", "data//x", "data/problem=a/.hidden", "other/thing", "data/"]
)
def test_objects_that_can_be_no_file_of_a_store_reach_no_disk(address: str, name: str) -> None:
    put(Path(address), rows(1))
    key = f"{address.removeprefix('s3://')}/{name}"
    bucket, _, key = key.partition("/")
    connected("").call_s3("put_object", Bucket=bucket, Key=key, Body=b"x")
    root = folder(address)
    assert opened(address).verify() == []
    files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert {file for file in files if not file.startswith("cache/")} == set(keys_of_store(address))
    assert not (root.parent / "escaped").exists()


def keys_of_store(address: str) -> list[str]:
    return [key for key in keys(address) if key == "store.json" or key.endswith(".parquet")]


def test_a_foreign_object_among_the_parts_is_reported(address: str) -> None:
    put(Path(address), rows(1))
    connected("").pipe_file(f"{address}/data/notes.txt", b"mine")
    (complaint,) = opened(address).verify()
    assert "notes.txt does not belong" in complaint


@pytest.mark.parametrize(
    "address",
    [
        "gs://bucket/x",
        "http://host/x",
        "s3://",
        "s3://b",
        "s3://bucket/../x",
        "s3://bucket/a//b",
        "s3://b?/x",
    ],
)
def test_other_addresses_are_refused_in_one_sentence(address: str) -> None:
    with pytest.raises(
        StoreError, match=r"^Expected a folder or s3://bucket/prefix for the store, got '[^\n]*'\.$"
    ):
        open_store(address)


def test_a_bucket_that_is_not_there_is_named(s3_server: str) -> None:
    with pytest.raises(
        StoreError, match=r"^Cannot read s3://nowhere-at-all/x/store.json: [^\n]+ does not exist\.$"
    ):
        open_store("s3://nowhere-at-all/x")


def test_the_address_is_what_other_machines_are_told(address: str, tmp_path: Path) -> None:
    put(Path(address), rows(1))
    root = located(address)
    assert str(address_of(root)) == address.replace("//", "/")
    assert address_of(tmp_path) == tmp_path
    assert shown(f"{root}/data and {tmp_path}") == f"{address}/data and {tmp_path}"


def test_store_sql_is_put_beside_the_parts(address: str) -> None:
    put(Path(address), rows(1))
    write_store_sql(located(address))
    assert "store.sql" in keys(address)


def test_without_the_driver_the_sentence_says_what_to_install() -> None:
    code = """
import sys
sys.modules["s3fs"] = None
from storage import open_store
open_store("s3://bucket/store")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreError: A store in a bucket needs s3fs: pip install 'privsweep[s3]'." in done.stderr


def test_objects_are_fetched_in_portions_that_fit_into_memory(
    address: str, elsewhere: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in range(5):
        put(Path(address), rows(2, first=2 * first))
    here = row_hashes(folder(address))
    monkeypatch.setattr("storage.bucket._BYTES_AT_ONCE", 12_000)
    monkeypatch.setattr("storage.bucket._AT_ONCE", 2)
    elsewhere.go("b")
    assert row_hashes(folder(address)) == here


def test_what_a_killed_process_had_fetched_is_removed_after_a_day(address: str) -> None:
    put(Path(address), rows(1))
    left = located(address).parent / ".fetched-killed"
    left.mkdir()
    folder(address)
    assert left.exists()
    os.utime(left, (time.time() - 100_000,) * 2)
    folder(address)
    assert not left.exists()


def test_a_store_that_another_machine_makes_at_the_same_moment_is_no_foreign_object(
    address: str, monkeypatch: pytest.MonkeyPatch, elsewhere: Machines
) -> None:
    foreign = Bucket.foreign

    def made_meanwhile(bucket: Bucket) -> str:
        monkeypatch.setattr(Bucket, "foreign", foreign)
        elsewhere.go("b")
        put(Path(address), rows(1))
        elsewhere.go("a")
        return foreign(bucket)

    elsewhere.go("a")
    monkeypatch.setattr(Bucket, "foreign", made_meanwhile)
    put(Path(address), rows(2, first=5))
    assert len(opened(address).stored("unamplified-epsilon")) == 3
