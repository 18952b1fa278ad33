"""A store in a folder: how its files appear, change their names and go, and what people call them.

`storage.bucket.Bucket` is the same for a store in a bucket. Whoever changes a store has one of the two.
"""

import json
import re
import secrets
import shutil
import stat
import time
from pathlib import Path

from storage import disk
from storage.errors import StoreError, reason
from storage.layout import DATA, DAY, MARK, refuse_newer
from storage.schema import SCHEMA_VERSION

FRESH = 1.0
"""Seconds for which an open store does not look at its bucket again."""


class Folder:
    """A store in a folder, which need not exist yet.

    Attributes:
        root: The folder; of a bucket, the one that mirrors it.
        data: Folder of its parts.
        name: Text by which people call the store.
        address: Text by which processes elsewhere call it.
        is_remote: Whether every machine reaches the same store by this address.
    """

    is_remote = False

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / DATA
        self.name = str(root)
        self.address = str(root.absolute())

    def shown(self, path: object) -> str:
        """Return the text by which people call a file of the store."""
        return str(path)

    def refresh(self, *, older_than: float = 0.0, afresh: bool = False) -> None:
        """Make the folder equal to what it mirrors; a folder that mirrors nothing stays as it is.

        Args:
            older_than: Seconds since this was last done, below which nothing is done.
            afresh: Whether to fetch also what the mirror has, since its own disk may have damaged it.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """

    def take(self, path: Path) -> bool:
        """Return whether there is a file, which a mirror fetches."""
        return path.exists()

    def create(self) -> None:
        """Make a store where there is none.

        Raises:
            StoreError: There is a file in its place, or a folder with other things in it, or a path
                that no store can have.
        """
        self.check_path()
        mark = {"format": "privsweep store", "schema_version": SCHEMA_VERSION}
        self._create(json.dumps(mark).encode() + b"\n")

    def _create(self, content: bytes) -> None:
        """Make the store at once, so that no other process meets it without its mark."""
        mark = self.root / MARK
        if self.is_there():
            if mark.exists():
                return
            others = self.entries()
            if others and not mark.exists():  # another process may have made it in between
                other = others[0].name
                raise StoreError(f"Expected a store or an empty folder, got {self.root}, which has {other}.")
        else:
            self._remove_staged()
            self._appear(content)
        if not mark.exists():
            self.write(mark, content)

    def check(self) -> None:
        """Refuse what is no store, or one that a newer release made; of a bucket, fetch what is there now.

        Raises:
            StoreError: With the path, and with both versions where they differ.
        """
        self.refresh(older_than=FRESH)
        self.check_mark()

    def check_mark(self) -> None:
        """Refuse what is no store, or one that a newer release made, without looking at anything else.

        Raises:
            StoreError: With the path, and with both versions where they differ.
        """
        self.check_path()
        mark = self.root / MARK
        if not self.is_there():
            raise StoreError(f"No store found at {self.name}.")
        try:
            version = json.loads(mark.read_bytes())["schema_version"]
        except FileNotFoundError:
            raise StoreError(f"{self.name} is not a store: it has no {MARK}.") from None
        except OSError as error:
            raise StoreError(f"Cannot read {self.shown(mark)}: {reason(error)}.") from error
        except (ValueError, KeyError, TypeError):
            raise StoreError(f"{self.shown(mark)} is damaged: expected JSON with schema_version.") from None
        refuse_newer(version, self.name)

    def check_path(self) -> None:
        """Raise `StoreError` about a path that no store can have, before anything is made there."""
        if "?" in str(self.root.absolute()):  # DuckDB names its log by what stands before one
            where = str(self.root)[:200]
            raise StoreError(f"Expected a path without question marks for the store, got {where!r}.")

    def is_empty(self) -> bool:
        """Return whether there is nothing, or a folder with nothing in it."""
        return not self.root.exists() or (self.root.is_dir() and not any(self.root.iterdir()))

    def is_there(self) -> bool:
        """Return whether there is a folder, False where there is nothing.

        Raises:
            StoreError: There is something else, or the system refuses to say.
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
            if not self.is_there():  # else somebody else was quicker
                raise StoreError(f"Cannot write {self.root}: {reason(error)}.") from error

    def entries(self, name: str = "") -> list[Path]:
        """Return the entries of a folder of the store, sorted, without dot-names; none if it is missing.

        Args:
            name: The folder, relative to the root.
        """
        folder = self.root / name
        try:
            return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"Cannot read {self.shown(folder)}: {reason(error)}.") from error

    def write(self, path: Path, content: bytes) -> None:
        """Write a file so that every reader sees all of it or nothing, also after a crash.

        Args:
            path: File that is to appear; missing folders are made.
            content: Its bytes.

        Raises:
            StoreError: The disk refused; nothing is left behind.
        """
        disk.write_atomically(path, content)

    def put(self, path: Path, content: bytes) -> None:
        """Write a file that every reader sees whole, but that a power loss may take."""
        path.parent.mkdir(exist_ok=True)
        staged = path.with_name(f".{path.name}.tmp")
        staged.write_bytes(content)
        staged.replace(path)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file or folder another name; a file that had it before is replaced."""
        disk.rename(old, new)

    def delete(self, path: Path) -> None:
        """Delete a file without a step that tests can stop at; one that is gone already is no error."""
        path.unlink(missing_ok=True)

    def unlink(self, path: Path) -> None:
        """Delete a file; one that is gone already is no error."""
        disk.step(disk.UNLINK, path)
        self.delete(path)

    def remove(self, path: Path) -> None:
        """Delete a file or folder; a file that is gone already is no error."""
        if path.is_dir() and not path.is_symlink():
            disk.remove_folder(path)
        else:
            self.unlink(path)

    def leftovers(self, older_than: float = DAY) -> list[Path]:
        """Return the temporary files and folders that a killed writer left behind, sorted.

        Args:
            older_than: Age in seconds below which one may still belong to a living writer.
        """
        limit = time.time() - older_than
        found: list[Path] = []
        for path in sorted(self.root.glob("**/.*.tmp")):
            try:
                if path.stat().st_mtime < limit and not any(path.is_relative_to(folder) for folder in found):
                    found.append(path)
            except OSError:  # somebody else's cleaning
                continue
        return found

    def remove_leftovers(self) -> None:
        """Delete what `leftovers` finds, and what killed makers of this store left next to it."""
        self._remove_staged()
        for leftover in self.leftovers():
            try:
                if leftover.is_dir():
                    shutil.rmtree(leftover, ignore_errors=True)
                else:
                    self.unlink(leftover)
            except OSError:  # somebody else's cleaning, or a read-only disk: neither hurts a reader
                continue

    def _remove_staged(self) -> None:
        """Delete what `create` left next to the store when it was killed more than a day ago."""
        name = re.compile(rf"\.{re.escape(self.root.name[:80])}\.[0-9a-f]{{16}}\.tmp")
        limit = time.time() - DAY
        try:
            beside = [path for path in self.root.parent.iterdir() if name.fullmatch(path.name)]
            old = [p for p in beside if stat.S_ISDIR(p.lstat().st_mode) and p.lstat().st_mtime < limit]
        except OSError:  # no such folder yet, or somebody else's cleaning
            return
        for path in old:
            if not {entry.name for entry in path.glob("*")} - {MARK}:  # else it is not ours
                shutil.rmtree(path, ignore_errors=True)
