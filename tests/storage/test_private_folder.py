"""Private folders: nothing that another user may have planted is used."""

import os
import pwd
from pathlib import Path

import pytest

from storage import StoreError, open_store
from storage.heartbeats import beat
from storage.place.disk import is_sheltered, make_private
from storage.place.located import CACHE_VARIABLE, located
from storage.place.mirror import make
from tests.storage.made_up import put, rows
from tests.storage.test_heartbeats import heartbeat

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@as_root
def test_a_folder_of_another_user_is_not_private_and_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    folder.mkdir(mode=0o755)
    os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    assert not make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_folder_into_which_others_could_write_is_not_private(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    assert not make_private(folder)
    assert folder.stat().st_mode & 0o7777 == mode


def test_a_link_is_not_private_and_its_target_stays_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    assert not make_private(tmp_path / "link")
    assert not make_private(tmp_path / "dangling")
    assert target.stat().st_mode & 0o777 == 0o755
    assert not (tmp_path / "missing").exists()


def test_a_file_is_not_private(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not make_private(tmp_path / "file")
    assert not make_private(tmp_path / "file" / "below")


def test_a_new_folder_and_one_that_others_can_only_read_become_private(tmp_path: Path) -> None:
    readable = tmp_path / "readable"
    readable.mkdir(mode=0o755)
    (readable / "kept").touch()
    for folder in (tmp_path / "new" / "folder", readable):
        assert make_private(folder)
        assert folder.stat().st_mode & 0o777 == 0o700
    assert (readable / "kept").exists()


def test_entries_of_a_folder_are_safe_unless_others_may_rename_them(tmp_path: Path) -> None:
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    for mode, safe in ((0o755, True), (0o1777, True), (0o777, False), (0o2775, False)):
        folder.parent.chmod(mode)
        assert is_sheltered(folder) is safe, oct(mode)
    assert not is_sheltered(tmp_path / "missing")


@as_root
def test_entries_of_a_folder_of_another_user_are_not_safe(tmp_path: Path) -> None:
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    os.chown(folder.parent, pwd.getpwnam("nobody").pw_uid, -1)
    folder.parent.chmod(0o1777)
    assert not is_sheltered(folder)


def test_records_of_snapshots_in_a_folder_of_others_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    put(tmp_path / "store", rows(3))
    names = []
    for mode in (0o700, 0o700, 0o777):
        if (records := tmp_path / "cache" / "snapshots").exists():
            records.chmod(mode)
        with open_store(tmp_path / "store") as store:
            assert store.sql("from results").num_rows == 3
        names.append({path.name for path in (tmp_path / "store" / "cache").iterdir()})
    assert names[0] == names[1]
    assert names[2] != names[1], "the snapshot was built again"


def test_the_copy_of_a_bucket_is_not_put_into_a_folder_of_others(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy").chmod(0o777)
    with pytest.raises(StoreError, match=r"^Expected a folder in which only this user"):
        make(tmp_path / "copy" / "store", "s3://bucket/prefix", "")
    assert list((tmp_path / "copy").iterdir()) == []


def test_a_heartbeat_is_not_written_through_a_link(tmp_path: Path) -> None:
    place = located(tmp_path / "store")
    place.create()
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    (place.root / "running").mkdir()
    for name in (".1234.json.tmp", "1234.json"):
        (place.root / "running" / name).symlink_to(precious)
    beat(place, heartbeat())
    assert precious.read_text() == "precious"
    assert (place.root / "running" / "1234.json").is_file()
    assert not (place.root / "running" / "1234.json").is_symlink()
