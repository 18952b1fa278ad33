"""The order of flushes and names: after a power loss, a file that has its name also has its content."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage import open_store, publish, to_table
from storage.manifest import COMPLETE, Manifest, Replacement, write_manifest, write_replacement
from storage.place.disk import write_atomically
from storage.place.located import located
from tests.storage.made_up import rows

Event = tuple[str, Path, int]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Flushes, each with the size of the file at that moment, and renames with the new name."""
    found: list[Event] = []
    flush, rename = os.fsync, Path.rename

    def noted_flush(descriptor: int) -> None:
        found.append(("flush", Path(f"/proc/self/fd/{descriptor}").readlink(), os.fstat(descriptor).st_size))
        flush(descriptor)

    def noted_rename(self: Path, target: Path) -> Path:
        found.append(("rename", Path(target), self.stat().st_size))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", noted_flush)
    monkeypatch.setattr(Path, "rename", noted_rename)
    return found


def part_of(root: Path) -> Path:
    return publish(located(root), to_table(rows(3)))


def manifest_of(root: Path) -> Path:
    now = datetime.now(UTC)
    manifest = Manifest(
        digest="0" * 32,
        name="small",
        spec={},
        counts={},
        parts=(),
        git_commit="unknown",
        started_at=now,
        finished_at=now,
        status=COMPLETE,
    )
    return write_manifest(located(root), manifest)


def record_of(root: Path) -> Path:
    names = tuple(f"problem=a/{digit * 32}-{digit * 64}.parquet" for digit in "12")
    return write_replacement(located(root), Replacement(old=names[:1], new=names[1:]))


def file_of(root: Path) -> Path:
    path = root / "new" / "folders" / "file"
    write_atomically(path, b"content")
    return path


@pytest.mark.parametrize("write", [file_of, part_of, manifest_of, record_of])
def test_a_file_is_flushed_before_it_gets_its_name_and_its_folder_afterwards(
    write: Callable[[Path], Path], root: Path, events: list[Event]
) -> None:
    open_store(root, create=True).close()
    events.clear()
    path = write(root)
    size = path.stat().st_size
    named = events.index(("rename", path, size))
    flushed = [k for k, (kind, at, length) in enumerate(events) if kind == "flush" and length == size]
    assert any(k < named and events[k][1].parent == path.parent for k in flushed), "its content is flushed"
    folders = [at for kind, at, _ in events[named:] if kind == "flush"]
    assert path.parent in folders, "its name is flushed"


def test_a_new_folder_is_flushed_into_the_one_above(root: Path, events: list[Event]) -> None:
    path = file_of(root)
    flushed = {at for kind, at, _ in events if kind == "flush"}
    assert {path.parent, path.parent.parent, path.parent.parent.parent} <= flushed
