"""Stores in a bucket, on a real S3 server. A missing mirror simulates another machine."""

import multiprocessing
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from storage import Store, StoreError, open_store, write_manifest
from storage.compaction import compact
from storage.export import write_store_sql
from storage.garbage import collect, find_garbage
from storage.heartbeats import Heartbeat, beat, heartbeats, stop
from storage.parts import parts
from storage.place import bucket, mirror, server
from storage.place.bucket import Bucket, Listing, Objects
from storage.place.folder import Folder
from storage.place.located import CACHE_VARIABLE, located
from storage.place.server import _connected, check_answer, connected, content_of, longest, put_new
from storage.verify import set_aside
from tests.s3 import keys
from tests.storage.contents import counting, kill_at, row_hashes, steps_of
from tests.storage.made_up import epsilon, manifest, put, read_rows, row, rows

pytestmark = [pytest.mark.sampled(8), pytest.mark.xdist_group("bucket")]  # one server


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


def folder(address: str) -> Folder:
    """The place, with a mirror that is equal to the bucket."""
    place = located(address)
    place.refresh()
    return place


def damage(address: str, name: str) -> None:
    """Flip a bit of an object."""
    key = f"{address.removeprefix('s3://')}/{name}"
    content = bytearray(connected("").cat_file(key))
    content[len(content) // 2] ^= 1
    connected("").pipe_file(key, bytes(content))


def test_what_one_machine_publishes_another_reads_to_the_bit(address: str, elsewhere: Machines) -> None:
    put(Path(address), rows(5))
    here = row_hashes(folder(address).root)
    elsewhere.go("b")
    assert row_hashes(folder(address).root) == here
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


def test_another_machine_hears_the_heartbeat_of_a_run_until_it_ends(
    address: str, elsewhere: Machines
) -> None:
    put(Path(address), rows(2))
    heartbeat = Heartbeat(
        run="12", sweep="made-up", digest="ab" * 8, total=9, new=7, started_at=datetime.now(UTC)
    )
    for number in range(2):
        beat(folder(address), replace(heartbeat, number=number))
    elsewhere.go("b")
    assert [one.number for one in heartbeats(folder(address))] == [1]
    elsewhere.go("a")
    stop(folder(address), "12")
    elsewhere.go("b")
    assert heartbeats(folder(address)) == []
    assert not [key for key in keys(address) if key.startswith("running")]


def test_the_same_part_is_put_once(
    address: str, monkeypatch: pytest.MonkeyPatch, elsewhere: Machines
) -> None:
    put(Path(address), rows(2))
    before = connected("").find(address, detail=True)
    elsewhere.go("b")
    put(Path(address), rows(2))
    assert connected("").find(address, detail=True) == before


@pytest.mark.thorough
def test_a_damaged_object_is_replaced_when_its_part_is_published_again(
    address: str, elsewhere: Machines
) -> None:
    part = put(Path(address), rows(2))
    damage(address, f"data/{part.parent.name}/{part.name}")
    elsewhere.go("b")
    part = put(Path(address), rows(2))
    assert read_rows(part).num_rows == 2
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
    assert complaint.startswith(f"{address}/data/problem=unamplified-epsilon/{part.name} is damaged")


def test_a_missing_object_is_missed(address: str) -> None:
    part = put(Path(address), rows(2))
    write_manifest(located(address), manifest(part))
    connected("").rm_file(f"{address}/data/{part.parent.name}/{part.name}")
    (complaint,) = opened(address).verify()
    assert "of sweep made-up is missing" in complaint


def test_compaction_on_one_machine_changes_no_row_for_another(address: str, elsewhere: Machines) -> None:
    made = [put(Path(address), rows(6, first=4 * i, seconds_later=i)) for i in range(3)]
    place = located(address)
    write_manifest(place, manifest(*made))
    before, counted = row_hashes(place.root), counting(place.root)
    elsewhere.go("b")
    assert row_hashes(folder(address).root) == before
    elsewhere.go("a")
    compact(folder(address))
    assert sum(name.endswith(".parquet") for name in keys(address)) == 1
    for machine in ("a", "b", "c"):
        elsewhere.go(machine)
        place = folder(address)
        assert row_hashes(place.root) == before
        assert counting(place.root) == counted
        assert opened(address).verify() == []
        assert len(opened(address).manifests()[0].parts) == 1


@pytest.mark.thorough
def test_gc_drops_rows_that_do_not_count_from_the_bucket(address: str, elsewhere: Machines) -> None:
    put(Path(address), [row(epsilon(sigma=s)) for s in (1.0, 2.0)])
    put(Path(address), [row(epsilon(sigma=1.0), seconds_later=5)])
    place = located(address)
    counted = counting(place.root)
    garbage = find_garbage(place)
    assert garbage.rows == 1
    collect(place, garbage)
    elsewhere.go("b")
    place = folder(address)
    assert counting(place.root) == counted
    assert sum(row_hashes(place.root).values()) == 2


def test_what_is_set_aside_is_set_aside_in_the_bucket_and_can_be_removed(
    address: str, elsewhere: Machines
) -> None:
    part = put(Path(address), rows(2))
    aside = set_aside(located(address), [part])
    assert aside is not None
    elsewhere.go("b")
    place = folder(address)
    assert parts(place) == []
    kept = place.root / "quarantine" / aside.name
    assert sum(path.is_file() for path in kept.rglob("*")) == 1
    place.remove(kept)
    assert keys(address) == ["store.json"]


@pytest.mark.thorough
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
        place = located(address)
        before = row_hashes(place.root).keys()
        kill_at(monkeypatch, number, lambda place=place: compact(place))  # type: ignore[misc]
        elsewhere.go(f"b{number}")
        place = folder(address)
        assert row_hashes(place.root).keys() == before
        compact(place)
        elsewhere.go(f"c{number}")
        assert row_hashes(folder(address).root).keys() == before
        assert opened(address).verify() == []
        assert len(parts(folder(address))) == 1


def test_a_store_that_was_deleted_is_gone_from_the_mirror_too(address: str) -> None:
    put(Path(address), rows(2))
    connected("").rm(address, recursive=True)
    with pytest.raises(StoreError, match="No store found at"):
        opened(address)
    assert not located(address).root.exists()


def test_a_bucket_with_other_things_in_it_is_refused_and_nothing_is_fetched(bucket: str) -> None:
    connected("").pipe_file(f"{bucket}/data/large.csv", b"1,2,3")
    with pytest.raises(
        StoreError, match=r"Expected a store or no objects, got s3://.*, which has data/large.csv\."
    ):
        put(Path(f"s3://{bucket}"), rows(2))
    with pytest.raises(StoreError, match="No store found at"):
        opened(f"s3://{bucket}")
    assert not located(f"s3://{bucket}").root.exists()


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
    place = folder(address)
    assert opened(address).verify() == []
    files = {path.relative_to(place.root).as_posix() for path in place.root.rglob("*") if path.is_file()}
    assert {file for file in files if not file.startswith("cache/")} == set(keys_of_store(address))
    assert not (place.root.parent / "escaped").exists()


def keys_of_store(address: str) -> list[str]:
    return [key for key in keys(address) if key == "store.json" or key.endswith(".parquet")]


def test_a_foreign_object_among_the_parts_is_reported(address: str) -> None:
    put(Path(address), rows(1))
    connected("").pipe_file(f"{address}/data/notes.txt", b"mine")
    (complaint,) = opened(address).verify()
    assert "notes.txt is not part of the store" in complaint


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
        StoreError, match=r"^Expected a folder or s3://bucket/prefix for the store, got '[^\n]*': [^\n]*\.$"
    ):
        open_store(address)


def test_a_bucket_that_is_not_there_is_named(s3_server: str) -> None:
    with pytest.raises(
        StoreError, match=r"^Cannot read s3://nowhere-at-all/x/store.json: [^\n]+ does not exist\.$"
    ):
        open_store("s3://nowhere-at-all/x")


def test_the_address_is_what_other_machines_are_told(address: str, tmp_path: Path) -> None:
    put(Path(address), rows(1))
    bucket, folder = located(address), located(tmp_path)
    assert (bucket.name, bucket.address, folder.address) == (address, address, str(tmp_path))
    assert bucket.shown(bucket.root) == address
    assert bucket.shown(bucket.data / "x") == f"{address}/data/x"
    assert bucket.shown(tmp_path) == folder.shown(tmp_path) == str(tmp_path)


def test_a_mirror_that_is_given_by_its_path_is_the_bucket(address: str) -> None:
    put(located(address).root, rows(2))
    assert sum(name.endswith(".parquet") for name in keys(address)) == 1
    assert located(located(address).root).address == address


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
    here = row_hashes(folder(address).root)
    monkeypatch.setattr("storage.place.bucket._BYTES_AT_ONCE", 12_000)
    monkeypatch.setattr("storage.place.bucket._AT_ONCE", 2)
    elsewhere.go("b")
    assert row_hashes(folder(address).root) == here


def test_what_a_killed_process_had_fetched_is_removed_after_a_day(address: str) -> None:
    put(Path(address), rows(1))
    left = located(address).root.parent / ".fetched-killed"
    left.mkdir()
    folder(address)
    assert left.exists()
    os.utime(left, (time.time() - 100_000,) * 2)
    folder(address)
    assert not left.exists()


@pytest.mark.thorough
def test_a_listing_that_was_made_while_parts_were_replaced_is_made_again(
    address: str, monkeypatch: pytest.MonkeyPatch, elsewhere: Machines
) -> None:
    """One page may be older than the new part, and the next one younger than the end of the old parts."""
    elsewhere.go("a")
    for i in range(3):
        put(Path(address), rows(2, first=2 * i))
    compact(folder(address))
    elsewhere.go("b")
    listed = Objects.listed
    calls = 0

    def torn(objects: Objects, prefix: str) -> Listing:
        nonlocal calls
        calls += prefix == ""
        found = listed(objects, prefix)
        seen = {name: info for name, info in found.items() if not name.startswith("data/")}
        return seen if prefix == "" and calls == 1 else found

    monkeypatch.setattr(Objects, "listed", torn)
    place = folder(address)
    assert calls == 2
    assert len(parts(place)) == 1
    assert len(opened(address).stored("unamplified-epsilon")) == 6


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


def put_object(address: str, name: str, content: bytes = b"x") -> None:
    """Put an object of any name."""
    bucket, _, key = f"{address.removeprefix('s3://')}/{name}".partition("/")
    connected("").call_s3("put_object", Bucket=bucket, Key=key, Body=content)


def _copy(part: Path) -> None:
    (part.parent / f"{'0' * 32}{part.name[32:]}").write_bytes(part.read_bytes())


def _file_for_folder(part: Path) -> None:
    part.unlink()
    part.parent.rmdir()
    part.parent.write_text("mine")


def _folder_for_file(part: Path) -> None:
    part.unlink()
    (part / "inner").mkdir(parents=True)
    (part / "file").write_text("mine")
    (part / "inner").rmdir()


@pytest.mark.parametrize("change", [_copy, _file_for_folder, _folder_for_file])
def test_whatever_somebody_did_to_the_mirror_it_becomes_equal_to_the_bucket(
    address: str, change: Callable[[Path], None]
) -> None:
    part = put(Path(address), rows(2))
    change(part)
    with opened(address) as store:
        assert store.verify() == []
        assert parts(store.place) == [part]


def test_a_store_that_was_deleted_is_made_anew_by_whoever_publishes_next(address: str) -> None:
    part = put(Path(address), rows(2))
    connected("").rm(address, recursive=True)
    assert put(Path(address), rows(2)) == part
    assert keys(address) == [f"data/{part.parent.name}/{part.name}", "store.json"]


def test_nothing_is_published_into_a_store_that_a_newer_release_has_taken_over(address: str) -> None:
    put(Path(address), rows(2))
    put_object(address, "store.json", b'{"schema_version": 99}')
    before = keys(address)
    with pytest.raises(StoreError, match="update privsweep"):
        put(Path(address), rows(2, first=5))
    assert keys(address) == before


def test_a_cache_that_is_deleted_while_a_process_works_costs_no_row(
    address: str, elsewhere: Machines
) -> None:
    elsewhere.go("a")
    put(Path(address), rows(2))
    place = located(address)
    with opened(address) as store:
        shutil.rmtree(place.root.parent)
        put(Path(address), rows(3, first=5))
        assert len(store.stored("unamplified-epsilon")) == 3
        time.sleep(1.1)
        assert len(store.stored("unamplified-epsilon")) == 5
    elsewhere.go("b")
    assert len(opened(address).stored("unamplified-epsilon")) == 5


def test_a_look_at_a_bucket_without_a_store_takes_nothing_from_who_makes_it_meanwhile(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, take = located(address), Bucket.take

    def made_meanwhile(bucket: Bucket, path: Path) -> bool:
        found = take(bucket, path)
        monkeypatch.setattr(Bucket, "take", take)
        put(Path(address), rows(2))
        return found

    monkeypatch.setattr(Bucket, "take", made_meanwhile)
    place.refresh()
    assert len(parts(place)) == 1


@pytest.mark.parametrize(
    "name", ["data/problem=unamplified-epsilon", "store.json/x", f"data/{'x' * 300}", "data/x?versionId=y"]
)
def test_an_object_that_can_be_no_file_hides_nothing(address: str, elsewhere: Machines, name: str) -> None:
    put(Path(address), rows(2))
    put_object(address, name)
    for machine in ("a", "b"):
        elsewhere.go(machine)
        assert opened(address).verify() == []
        assert len(opened(address).stored("unamplified-epsilon")) == 2


def test_names_that_look_like_patterns_are_set_aside_one_by_one(address: str) -> None:
    put(Path(address), rows(1))
    names = ["data/[x]*.txt", "data/a b+c%20&=.txt", "data/x1.txt"]
    for name in names:
        put_object(address, name)
    place = folder(address)
    aside = set_aside(place, [place.root / name for name in names[:2]])
    found = [name for name in keys(address) if name.endswith(".txt")]
    assert found == ["data/x1.txt", *(f"quarantine/{aside.name}/{name}" for name in names[:2])]


def test_what_another_machine_set_aside_already_is_no_error(address: str, elsewhere: Machines) -> None:
    elsewhere.go("a")
    part = put(Path(address), rows(1))
    elsewhere.go("b")
    there = folder(address)
    set_aside(there, parts(there))
    before = keys(address)
    elsewhere.go("a")
    set_aside(located(address), [part])
    assert keys(address) == before
    assert parts(folder(address)) == []


def test_the_mark_of_a_folder_that_consoles_make_is_no_foreign_object(address: str) -> None:
    put_object(address, "", b"")
    put(Path(address), rows(1))
    assert opened(address).verify() == []


@pytest.mark.parametrize("content", [b"junk" * 4000, None])
def test_a_damaged_or_locked_table_of_the_mirror_is_one_sentence(
    address: str, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(Path(address), rows(1))
    table = located(address).root.parent / mirror.INDEX
    monkeypatch.setattr(mirror, "_PATIENCE", 0.1)
    holder = sqlite3.connect(table, isolation_level=None)
    if content is None:
        holder.execute("begin exclusive")
    else:
        table.write_bytes(content)
    with pytest.raises(StoreError, match=r"^Cannot use \S+, the copy of a store in a bucket: [^\n]+\.$"):
        opened(address)
    holder.close()


def test_a_file_named_like_the_table_makes_no_mirror_of_a_store_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / mirror.INDEX).write_text("mine")
    put(tmp_path / "x" / "store", rows(2))
    assert open_store(tmp_path / "x" / "store").verify() == []


def test_a_forked_process_publishes_and_reads(address: str) -> None:
    put(Path(address), rows(1))
    child = multiprocessing.get_context("fork").Process(target=put, args=(Path(address), rows(2, first=5)))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert len(opened(address).stored("unamplified-epsilon")) == 3


@pytest.fixture
def anew() -> Iterator[None]:
    """The environment is read again, now and after the test."""
    _connected.cache_clear()
    yield
    _connected.cache_clear()


@pytest.mark.parametrize(
    ("variable", "value"), [("AWS_PROFILE", "nowhere"), ("AWS_ENDPOINT_URL", "nonsense")]
)
def test_an_environment_that_names_no_server_is_one_sentence(
    s3_server: str, monkeypatch: pytest.MonkeyPatch, anew: None, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(StoreError, match=rf"^Cannot read s3://bucket/store: [^\n]*{value}[^\n]*\.$"):
        located("s3://bucket/store")


def test_a_user_without_a_home_needs_one_for_buckets_only(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(StoreError, match=r"^This user has no home folder .*: set PRIVSWEEP_CACHE "):
        located(address)
    with pytest.raises(StoreError, match=r"^No store found at x\.$"):
        open_store("x")


class _Page(BaseHTTPRequestHandler):
    """A web page where a server was expected."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html><body>Welcome</body></html>")

    do_PUT = do_GET

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_a_web_page_is_no_store_and_takes_no_row(
    s3_server: str, monkeypatch: pytest.MonkeyPatch, anew: None
) -> None:
    with HTTPServer(("127.0.0.1", 0), _Page) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{page.server_port}")
        with pytest.raises(
            StoreError, match=r"^Cannot read \S+/store\.json: the endpoint is not an S3 server\.$"
        ):
            put(Path("s3://bucket/store"), rows(1))
        page.shutdown()


@pytest.mark.parametrize("code", ["PreconditionFailed", "412", "ConditionalRequestConflict", "409"])
def test_every_way_to_say_that_there_is_one_already_is_understood(code: str) -> None:
    class Server:
        def pipe_file(self, *_: object, **__: object) -> None:
            raise OSError(22, "no") from ClientError({"Error": {"Code": code}}, "PutObject")

    assert not put_new(Server(), "b/k", b"x")


def test_a_refusal_of_another_kind_is_none_of_them(bucket: str) -> None:
    class Server:
        def pipe_file(self, *_: object, **__: object) -> Any:
            raise OSError(5, "no") from ClientError({"Error": {"Code": "AccessDenied"}}, "PutObject")

    with pytest.raises(OSError, match="no"):
        put_new(Server(), "b/k", b"x")
    assert content_of(connected(""), f"{bucket}/nothing") is None


def test_a_server_that_stalls_is_given_up_within_three_minutes(s3_server: str) -> None:
    reached = connected("")
    tries = reached.retries * 5  # botocore's own
    assert reached.read_timeout * tries < 180


def test_a_server_that_accepts_and_says_nothing_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    check_answer.cache_clear()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        _connected.cache_clear()
        with pytest.raises(StoreError) as error:
            open_store("s3://bucket/store")
    _connected.cache_clear()
    assert str(error.value) == f"The server {endpoint} did not answer within 0.5 s."


@contextmanager
def dripping(path: str) -> Iterator[str]:
    """A server that sends a byte now and then if a path begins so, and refuses everything else at once."""

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self) -> bool:
            slow = self.path.startswith(path)
            self.send_response(200 if slow else 403)
            self.send_header("Content-Length", "100000" if slow else "0")
            self.end_headers()
            return slow

        def do_GET(self) -> None:
            slow = self.do_HEAD()
            with suppress(OSError):
                while slow and not stopping.wait(0.1):
                    self.wfile.write(b"<")

        def log_message(self, *_: object) -> None:
            pass

    stopping = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as slow:
        threading.Thread(target=slow.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{slow.server_port}"
        stopping.set()
        slow.shutdown()


def test_a_server_whose_first_answer_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    with dripping("/") as endpoint, pytest.raises(StoreError, match=r"did not answer within 0\.5 s\.$"):
        check_answer(endpoint)


def test_a_server_whose_answer_never_ends_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "WAIT_SECONDS", 0.5)
    wanted: Listing = {"data/x": {"Size": 10, "ETag": "t", "LastModified": datetime.now(UTC)}}
    with dripping("/bucket") as endpoint:
        check_answer(endpoint)
        there = Objects("s3://bucket/store", endpoint)
        for question in (
            lambda: there.first("mark"),
            lambda: there.listed("data/"),
            lambda: there.fetch(wanted, tmp_path),
        ):
            with pytest.raises(StoreError, match=r"^Cannot read .*: the server answers too slowly\.$"):
                question()


def test_a_time_that_no_calendar_has_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            entry = f"<Key>store/x</Key><Size>1</Size><ETag>t</ETag><LastModified>{'9' * 20}</LastModified>"
            page = f"<ListBucketResult><Name>b</Name><Contents>{entry}</Contents></ListBucketResult>".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as odd:
        threading.Thread(target=odd.serve_forever, daemon=True).start()
        with pytest.raises(StoreError, match=r"^Cannot read s3://bucket/store: "):
            Objects("s3://bucket/store", f"http://127.0.0.1:{odd.server_port}").listed("")
        odd.shutdown()


def test_a_download_may_take_as_long_as_its_size_explains() -> None:
    assert longest(2_000_000) == longest() + 100


def test_a_listing_has_all_of_its_pages(bucket: str) -> None:
    names = [f"data/problem=p/{number}.parquet" for number in range(1_003)]
    there = Objects(f"s3://{bucket}/store", "")
    connected("").pipe({f"{bucket}/store/{name}": b"x" for name in names})
    assert sorted(there.listed("")) == sorted(there.listed("data/")) == sorted(names)
    assert there.listed("sweeps/") == {}


def test_a_listing_that_goes_round_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    page = {
        "Name": "b",
        "Contents": [{"Key": "store/data/x"}],
        "IsTruncated": True,
        "NextContinuationToken": "t",
    }
    monkeypatch.setattr(bucket, "_page", lambda *_, **__: page)
    with pytest.raises(StoreError, match=r"^Cannot read s3://b/store: its listing does not end\.$"):
        Objects("s3://b/store", "").listed("")


ENTRY = {"Key": "store/data/x", "Size": 1, "ETag": "t", "LastModified": datetime.now(UTC)}


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"Name": "b", "IsTruncated": True},
        {"Name": "b", "Contents": [{**ENTRY, "Size": 10**400}]},
        {"Name": "b", "Contents": [{"Key": "store/data/x"}]},
    ],
    ids=["html", "no-token", "huge", "no-size"],
)
def test_a_listing_that_is_none_of_s3_is_refused(
    monkeypatch: pytest.MonkeyPatch, page: dict[str, Any]
) -> None:
    class Server:
        def call_s3(self, *_: object, **__: object) -> dict[str, Any]:
            return page

    monkeypatch.setattr(server, "connected", lambda _: Server())
    with pytest.raises(StoreError, match=r"^Cannot read s3://b/store: the endpoint is not an S3 server\.$"):
        Objects("s3://b/store", "").listed("data/")


def test_objects_that_were_not_asked_for_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "_page", lambda *_, **__: {"Contents": [ENTRY, {**ENTRY, "Key": "data/y"}]})
    assert list(Objects("s3://b/store", "").listed("")) == ["data/x"]
