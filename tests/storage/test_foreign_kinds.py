"""Pipes, links and folders in the place of files of a store are not read, and each command ends."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import open_store
from storage.errors import StoreError
from storage.export import write_store_sql
from storage.garbage import collect, find_garbage
from storage.place import layout
from storage.place.located import located
from storage.verify import set_aside
from tests.storage.made_up import epsilon, put, rows


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    (path / "mine").mkdir(parents=True)


@pytest.mark.parametrize("make", [pipe, endless, folder])
def test_what_is_no_file_in_the_place_of_a_snapshot_is_not_read(
    root: Path, make: Callable[[Path], None]
) -> None:
    put(root, rows(3))
    with open_store(root) as store:
        assert store.lookup(epsilon()) is not None
    (snapshot,) = (root / "cache").glob("*.duckdb")
    snapshot.unlink()
    make(snapshot)
    with open_store(root) as store:
        assert store.lookup(epsilon()) is not None
    collect(located(root), find_garbage(located(root)))
    (kept,) = (root / "cache").glob("*.duckdb")
    assert kept != snapshot, "the next one was built under another name"


@pytest.mark.parametrize("make", [pipe, endless])
def test_what_is_no_file_in_the_place_of_store_sql_is_replaced(
    root: Path, make: Callable[[Path], None]
) -> None:
    put(root, rows(3))
    make(root / "store.sql")
    path = write_store_sql(located(root))
    assert not layout.is_no_file(path)
    assert "create or replace view" in path.read_text()


def test_a_folder_in_the_place_of_store_sql_stops_no_run_and_is_found(root: Path) -> None:
    put(root, rows(3))
    folder(root / "store.sql")
    write_store_sql(located(root))
    assert (root / "store.sql" / "mine").exists()
    with open_store(root) as store:
        (finding,) = store.examine().findings
    assert (finding.kind, finding.file) == ("foreign", "store.sql")
    set_aside(located(root), [root / finding.file])
    assert "create or replace view" in write_store_sql(located(root)).read_text()


@pytest.mark.parametrize("name", ["store.json", "sweeps/0123abcd.json", f"replaced/{'0' * 32}.json"])
def test_a_huge_file_is_refused_before_it_is_read(root: Path, name: str) -> None:
    put(root, rows(3))
    (root / name).parent.mkdir(exist_ok=True)
    with (root / name).open("w") as file:
        file.truncate(10**12)
    refused = pytest.raises(StoreError, match=r"Cannot read .*: it has more than 64 MB")
    with refused, open_store(root) as store:
        store.lookup(epsilon())


def test_nothing_is_moved_through_a_link_in_the_place_of_the_quarantine(root: Path, tmp_path: Path) -> None:
    part = put(root, rows(3))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "quarantine").symlink_to(elsewhere)
    with pytest.raises(StoreError, match="is a link: put the folder that it leads to in its place"):
        set_aside(located(root), [part])
    assert part.exists()
    assert not list(elsewhere.iterdir())
    shutil.rmtree(elsewhere)
