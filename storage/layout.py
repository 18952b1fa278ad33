"""What stands where in a store, and how a file appears there whole or not at all."""

import json
import os
import secrets
import shutil
import stat
import time
from pathlib import Path

from storage.errors import StoreError
from storage.schema import SCHEMA_VERSION

MARK = "store.json"
DATA = "data"
SWEEPS = "sweeps"
CACHE = "cache"

DAY = 86_400.0


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that every reader sees all of it or nothing, also after a crash.

    Args:
        path: Where the file is to appear; missing folders are made.
        content: Its bytes.

    Raises:
        StoreError: The disk refused; nothing is left behind.
    """
    temporary = path.parent / f".{path.name[:80]}.{secrets.token_hex(8)}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {reason(error)}.") from error


def _sync_folder(folder: Path) -> None:
    """Make a rename inside the folder survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create(root: Path) -> None:
    """Make a folder into a store; a store stays as it is.

    Raises:
        StoreError: There is a file in its place, or a folder with other things in it.
    """
    if _is_folder(root):
        if (root / MARK).exists():
            return
        foreign = [entry.name for entry in entries(root)]
        if foreign and not (root / MARK).exists():  # another process may have made it in between
            raise StoreError(f"Expected a store or an empty folder, got {root} with {foreign[0]} in it.")
    mark = json.dumps({"format": "privsweep store", "schema_version": SCHEMA_VERSION}).encode() + b"\n"
    if not _is_folder(root):
        _appear(root, mark)
    if not (root / MARK).exists():
        write_atomically(root / MARK, mark)


def _appear(root: Path, mark: bytes) -> None:
    """Make a store at once, so that no other process meets its folder without the mark."""
    staged = root.parent / f".{root.name[:80]}.{secrets.token_hex(8)}.tmp"
    write_atomically(staged / MARK, mark)
    try:
        staged.rename(root)
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        if not _is_folder(root):  # else somebody else was quicker
            raise StoreError(f"Cannot write {root}: {reason(error)}.") from error


def check(root: Path) -> None:
    """Refuse what is no store, or one that a newer release made.

    Raises:
        StoreError: With the path, and with both versions where they differ.
    """
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


def reason(error: Exception) -> str:
    """Return why the system refused, in its own words, without number and path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def refuse_newer(version: object, where: Path) -> None:
    """Raise `StoreError` unless this release can read a file or store of that schema version."""
    if type(version) is not int or version < 1:
        raise StoreError(f"{where} has no valid schema version, got {version!r}.")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{where} has schema version {version} and this release reads {SCHEMA_VERSION}: update privsweep."
        )


def remove_leftovers(root: Path, older_than: float = DAY) -> None:
    """Delete temporary files and folders that a killed writer left behind.

    Args:
        root: The store.
        older_than: Age in seconds below which a file may still belong to a living writer.
    """
    limit = time.time() - older_than
    for leftover in root.glob("**/.*.tmp"):
        try:
            if leftover.stat().st_mtime >= limit:
                continue
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)
        except OSError:  # somebody else's cleaning, or a read-only disk: neither hurts a reader
            continue
