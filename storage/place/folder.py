"""A store in a folder: creation, renaming and deletion of its files, and their names in messages.

All code that changes a store uses the class Folder or its counterpart for buckets, `Bucket`.
"""

import json
import re
import secrets
import shutil
import stat
import time
from pathlib import Path

from storage.errors import StoreError, reason
from storage.place import disk
from storage.place.layout import DATA, DAY, MARK, content_of, is_no_file, refuse_newer
from storage.schema import SCHEMA_VERSION

FRESH = 1.0
"""Seconds during which an open store does not list its bucket again."""


class Folder:
    """A store in a folder, which need not exist yet.

    Attributes:
        root: The folder; for a bucket, its mirror.
        data: Folder of its parts.
        name: Name of the store in messages.
        address: Name of the store for processes on other machines.
        is_remote: Whether every machine reaches the same store by this address.
    """

    is_remote = False

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / DATA
        self.name = str(root)
        self.address = str(root.absolute())

    def shown(self, path: object) -> str:
        """Return the name of a file of the store in messages."""
        return str(path)

    def refresh(self, *, older_than: float = 0.0, afresh: bool = False) -> None:
        """Make a mirror equal to its bucket; do nothing for a store in a folder.

        Args:
            older_than: Do nothing if the last refresh was less than this many seconds ago.
            afresh: Whether to fetch every object again, also those in the mirror, in case the local disk
                damaged them.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """

    def take(self, path: Path) -> bool:
        """Return whether a file exists; a mirror fetches it first."""
        return path.exists()

    def create(self) -> None:
        """Create the store unless it exists.

        Raises:
            StoreError: The path is a file, a folder with other files in it, or invalid for a store.
        """
        self.check_path()
        mark = json.dumps({"format": "privsweep store", "schema_version": SCHEMA_VERSION})
        self._create(mark.encode() + b"\n")

    def _create(self, content: bytes) -> None:
        """Create the folder together with its mark: other processes never find it without the mark."""
        mark = self.root / MARK
        if self.is_there():
            if mark.exists():
                return
            others = self.entries()
            if others and not mark.exists():  # another process may have created the store meanwhile
                other = others[0].name
                raise StoreError(f"Expected a store or an empty folder, got {self.root}, which has {other}.")
        else:
            self._remove_staged()
            self._appear(content)
        if not mark.exists():
            self.write(mark, content)

    def check(self) -> None:
        """Refresh a mirror, and check that this is a store that this release can read.

        Raises:
            StoreError: It is not a store, or a newer release made it.
        """
        self.refresh(older_than=FRESH)
        self.check_mark()

    def check_mark(self) -> None:
        """Check that this is a store that this release can read, from its mark alone.

        Raises:
            StoreError: It is not a store, or a newer release made it.
        """
        self.check_path()
        mark = self.root / MARK
        if not self.is_there():
            raise StoreError(f"No store found at {self.name}.")
        if is_no_file(mark):
            raise StoreError(f"{self.shown(mark)} is not a file, so {self.name} is not a store.")
        try:
            version = json.loads(content_of(mark))["schema_version"]
        except FileNotFoundError:
            raise StoreError(f"{self.name} is not a store: it has no {MARK}.") from None
        except OSError as error:
            raise StoreError(f"Cannot read {self.shown(mark)}: {reason(error)}.") from error
        except (ValueError, KeyError, TypeError, RecursionError):
            raise StoreError(f"{self.shown(mark)} is damaged: expected JSON with schema_version.") from None
        refuse_newer(version, self.name)

    def check_path(self) -> None:
        """Raise `StoreError` for a path that is invalid for a store, before anything is created there."""
        if "?" in str(self.root.absolute()):  # DuckDB cuts the name of its log at a question mark
            where = str(self.root)[:200]
            raise StoreError(f"Expected a path without question marks for the store, got {where!r}.")

    def is_empty(self) -> bool:
        """Return whether the path is missing or an empty folder."""
        return not self.root.exists() or (self.root.is_dir() and not any(self.root.iterdir()))

    def is_there(self) -> bool:
        """Return whether the path is a folder, or False if it is missing.

        Raises:
            StoreError: The path is not a folder, or cannot be read.
        """
        try:
            mode = self.root.stat().st_mode
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise StoreError(f"Cannot read the store {str(self.root)[:200]!r}: {reason(error)}.") from error
        if not stat.S_ISDIR(mode):
            raise StoreError(f"Expected a folder for the store, got the file {self.root}.")
        return True

    def _appear(self, content: bytes) -> None:
        staged = self.root.parent / f".{self.root.name[:80]}.{secrets.token_hex(8)}.tmp"
        try:
            disk.make_folder(staged)
            disk.write(staged / MARK, content)
            disk.sync_folder(staged)
            disk.rename(staged, self.root)
            disk.sync_folder(self.root.parent)
        except BaseException as error:
            shutil.rmtree(staged, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            if not self.is_there():  # else another process created it first
                raise StoreError(f"Cannot write {self.root}: {reason(error)}.") from error

    def entries(self, name: str = "") -> list[Path]:
        """Return the sorted entries of a folder of the store, without names that begin with a dot.

        Args:
            name: The folder, relative to the root; a missing folder has no entries.
        """
        folder = self.root / name
        if name and folder.is_symlink():
            raise StoreError(f"{self.shown(folder)} is a link: put the folder that it leads to in its place.")
        try:
            return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"Cannot read {self.shown(folder)}: {reason(error)}.") from error

    def write(self, path: Path, content: bytes) -> None:
        """Write a file atomically: readers find all of it or nothing, also after a crash.

        Args:
            path: The file; missing folders are created.
            content: Its bytes.

        Raises:
            StoreError: The disk refused; no partial file remains.
        """
        disk.write_atomically(path, content)

    def put(self, path: Path, content: bytes) -> None:
        """Write a file atomically for readers, without waiting for the disk: a power loss may delete it."""
        path.parent.mkdir(exist_ok=True)
        # Others may write into a shared store: a link in the place of a known name would lead elsewhere.
        staged = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        try:
            with staged.open("xb") as file:
                file.write(content)
            staged.replace(path)
        except BaseException:
            staged.unlink(missing_ok=True)
            raise

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file or folder; an existing file of the new name is replaced."""
        disk.rename(old, new)

    def delete(self, path: Path) -> None:
        """Delete a file if it exists, without a step at which tests can stop."""
        path.unlink(missing_ok=True)

    def unlink(self, path: Path) -> None:
        """Delete a file if it exists."""
        disk.step(disk.UNLINK, path)
        self.delete(path)

    def remove(self, path: Path) -> None:
        """Delete a folder, or a file if it exists."""
        if path.is_dir() and not path.is_symlink():
            disk.remove_folder(path)
        else:
            self.unlink(path)

    def leftovers(self, older_than: float = DAY) -> list[Path]:
        """Return the temporary files and folders that a killed writer left behind, sorted.

        Args:
            older_than: Least age in seconds; a younger file may belong to a running writer.
        """
        limit = time.time() - older_than
        found: list[Path] = []
        for path in sorted(self.root.glob("**/.*.tmp")):
            try:
                if path.stat().st_mtime < limit and not any(path.is_relative_to(folder) for folder in found):
                    found.append(path)
            except OSError:  # another process deleted it
                continue
        return found

    def remove_leftovers(self) -> None:
        """Delete the files of `leftovers`, and remains of killed attempts to create this store."""
        self._remove_staged()
        for leftover in self.leftovers():
            try:
                if leftover.is_dir():
                    shutil.rmtree(leftover, ignore_errors=True)
                else:
                    self.unlink(leftover)
            except OSError:  # another process deleted it, or the disk is read-only: readers are unaffected
                continue

    def _remove_staged(self) -> None:
        """Delete the folders that `create` left next to the store if it was killed more than a day ago."""
        name = re.compile(rf"\.{re.escape(self.root.name[:80])}\.[0-9a-f]{{16}}\.tmp")
        limit = time.time() - DAY
        try:
            beside = [path for path in self.root.parent.iterdir() if name.fullmatch(path.name)]
            old = [p for p in beside if stat.S_ISDIR(p.lstat().st_mode) and p.lstat().st_mtime < limit]
        except OSError:  # the folder does not exist yet, or another process deleted an entry
            return
        for path in old:
            if not {entry.name for entry in path.glob("*")} - {MARK}:  # else privsweep did not create it
                shutil.rmtree(path, ignore_errors=True)
