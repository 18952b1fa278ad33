"""What stands where in a store, and how a file appears there whole or not at all."""

import json
import os
import re
import secrets
import shutil
import stat
import time
from pathlib import Path

from storage import disk
from storage.errors import DamagedError, StoreError
from storage.located import FRESH, bucket_of, refresh
from storage.schema import SCHEMA_VERSION

MARK = "store.json"
DATA = "data"
SWEEPS = "sweeps"
REPLACED = "replaced"
QUARANTINE = "quarantine"
CACHE = "cache"
RUNNING = "running"

DAY = 86_400.0


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that every reader sees all of it or nothing, also after a crash.

    Args:
        path: Where the file is to appear; missing folders are made.
        content: Its bytes.

    Raises:
        StoreError: The disk refused; nothing is left behind.
    """
    if disk.put(path, content):
        return
    temporary = path.parent / f".{path.name[:80]}.{secrets.token_hex(8)}.tmp"
    try:
        disk.make_folder(path.parent)
        try:
            disk.write(temporary, content)
            disk.rename(temporary, path)
        except BaseException:
            disk.unlink(temporary)
            raise
        disk.sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {reason(error)}.") from error


def check_path(root: Path) -> None:
    """Refuse what cannot be the path of a store, before anything is made there.

    Raises:
        StoreError: It has a question mark.
    """
    if "?" in str(root.absolute()):  # DuckDB names its log by what stands before one
        raise StoreError(f"Expected a path without question marks for the store, got {str(root)[:200]!r}.")


def create(root: Path) -> None:
    """Make a folder into a store; a store stays as it is.

    Raises:
        StoreError: There is a file in its place, or a folder with other things in it, or a path
            that no store can have.
    """
    check_path(root)
    mark = json.dumps({"format": "privsweep store", "schema_version": SCHEMA_VERSION}).encode() + b"\n"
    if bucket := bucket_of(root):
        if bucket.take(root / MARK):
            return
        refresh(root)  # the copy of a store that is gone is none
        foreign = bucket.foreign()
        if foreign and not bucket.take(root / MARK):  # another machine may have made it in between
            raise StoreError(f"Expected a store or no objects, got {bucket.address} with {foreign} in it.")
        if not foreign:
            write_atomically(root / MARK, mark)
        return
    if _is_folder(root):
        if (root / MARK).exists():
            return
        others = [entry.name for entry in entries(root)]
        if others and not (root / MARK).exists():  # another process may have made it in between
            raise StoreError(f"Expected a store or an empty folder, got {root} with {others[0]} in it.")
    if not _is_folder(root):
        _remove_staged(root)
        _appear(root, mark)
    if not (root / MARK).exists():
        write_atomically(root / MARK, mark)


def _appear(root: Path, mark: bytes) -> None:
    """Make a store at once, so that no other process meets its folder without the mark."""
    staged = root.parent / f".{root.name[:80]}.{secrets.token_hex(8)}.tmp"
    try:
        disk.make_folder(staged)
        disk.write(staged / MARK, mark)
        disk.sync_folder(staged)
        disk.rename(staged, root)
        disk.sync_folder(root.parent)
    except BaseException as error:
        shutil.rmtree(staged, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        if not _is_folder(root):  # else somebody else was quicker
            raise StoreError(f"Cannot write {root}: {reason(error)}.") from error


def _remove_staged(root: Path) -> None:
    """Delete what `_appear` left beside a store when it was killed more than a day ago."""
    name = re.compile(rf"\.{re.escape(root.name[:80])}\.[0-9a-f]{{16}}\.tmp")
    limit = time.time() - DAY
    try:
        beside = [path for path in root.parent.iterdir() if name.fullmatch(path.name)]
        old = [
            path for path in beside if stat.S_ISDIR(path.lstat().st_mode) and path.lstat().st_mtime < limit
        ]
    except OSError:  # no such folder yet, or somebody else's cleaning
        return
    for path in old:
        if not {entry.name for entry in path.glob("*")} - {MARK}:  # else it is not ours
            shutil.rmtree(path, ignore_errors=True)


def check(root: Path) -> None:
    """Refuse what is no store, or one that a newer release made; of a bucket, fetch what is there now.

    Raises:
        StoreError: With the path, and with both versions where they differ.
    """
    refresh(root, older_than=FRESH)
    check_mark(root)


def check_mark(root: Path) -> None:
    """Refuse what is no store, or one that a newer release made, without looking at anything else.

    Raises:
        StoreError: With the path, and with both versions where they differ.
    """
    check_path(root)
    if not _is_folder(root):
        raise StoreError(f"There is no store at {root}.")
    try:
        version = json.loads((root / MARK).read_bytes())["schema_version"]
    except FileNotFoundError:
        raise StoreError(f"{root} is not a store: it has no {MARK}.") from None
    except OSError as error:
        raise StoreError(f"Cannot read {root / MARK}: {reason(error)}.") from error
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"{root / MARK} is damaged: expected JSON with schema_version.") from None
    refuse_newer(version, root)


def _is_folder(root: Path) -> bool:
    """Return whether there is a folder, False where there is nothing; refuse the rest."""
    try:
        mode = root.stat().st_mode
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise StoreError(f"Cannot read the store {str(root)[:200]!r}: {reason(error)}.") from error
    if not stat.S_ISDIR(mode):
        raise StoreError(f"Expected a folder for the store, got the file {root}.")
    return True


def entries(folder: Path) -> list[Path]:
    """Return what stands in a folder, sorted, but for dot-names; nothing where there is no folder."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"Cannot read {folder}: {reason(error)}.") from error


def is_no_file(path: Path) -> bool:
    """Return whether something stands there that is no file: a folder, a link to nothing, a pipe."""
    return not path.is_file() and os.path.lexists(path)


def reason(error: Exception) -> str:
    """Return why the system refused, in its own words, without number and path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def refuse_newer(version: object, where: Path) -> None:
    """Raise `StoreError` unless this release can read a file or store of that schema version.

    Raises:
        DamagedError: It is no version at all.
        StoreError: It is newer.
    """
    if type(version) is not int or version < 1:
        raise DamagedError(f"{where} has no valid schema version, got {version!r}.")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{where} has schema version {version} and this release reads {SCHEMA_VERSION}: update privsweep."
        )


def leftovers(root: Path, older_than: float = DAY) -> list[Path]:
    """Return the temporary files and folders that a killed writer left behind, sorted.

    Args:
        root: The store.
        older_than: Age in seconds below which one may still belong to a living writer.
    """
    limit = time.time() - older_than
    found: list[Path] = []
    for path in sorted(root.glob("**/.*.tmp")):
        try:
            if path.stat().st_mtime < limit and not any(path.is_relative_to(folder) for folder in found):
                found.append(path)
        except OSError:  # somebody else's cleaning
            continue
    return found


def remove_leftovers(root: Path, older_than: float = DAY) -> None:
    """Delete what `leftovers` finds, and what killed makers of this store left beside it."""
    _remove_staged(root)
    for leftover in leftovers(root, older_than):
        try:
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                disk.unlink(leftover)
        except OSError:  # somebody else's cleaning, or a read-only disk: neither hurts a reader
            continue
