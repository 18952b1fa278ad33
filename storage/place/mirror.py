"""The folder that mirrors a bucket, with a table of the object state that each file is a copy of.

Processes of one machine share the folder. A file changes together with its row in an SQLite table, and the
row never claims a newer state than the file has: a process that is killed in between leaves a file that is
fetched again.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from storage.errors import StoreError
from storage.place.disk import make_private
from storage.place.layout import MARK

RECORDS, SWEEPS, RUNNING = "replaced/", "sweeps/", "running/"
_FILES, _FOLDERS = (MARK, "store.sql"), ("data/", RECORDS, SWEEPS, RUNNING, "quarantine/")

INDEX = "mirror.sqlite"
"""The file next to a mirror, by which it differs from a store in a folder."""

UNKNOWN = ""
"""Tag of a file in an unknown state."""

FETCHED = ".fetched-"
"""Prefix of the names of folders for files that are fetched but not installed."""

_DAY = 86_400.0
_LONGEST = 255  # bytes in the name of a file
_PATIENCE = 60.0  # seconds that a process waits for the changes of others


def is_mirrored(name: str) -> bool:
    """Return whether an object of this name is a file of the store that readers use.

    A name with a question mark is not, since the rest would be taken for the version of an object.
    """
    plain = all(
        part and not part.startswith(".") and len(part.encode()) <= _LONGEST for part in name.split("/")
    )
    return plain and not {"\0", "?"}.intersection(name) and (name in _FILES or name.startswith(_FOLDERS))


def make(folder: Path, address: str, endpoint: str) -> None:
    """Make a folder the mirror of an address, unless it is already; it is created with its first file."""
    with in_one_sentence(folder):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # its errors have a reason
    if not make_private(folder.parent):
        raise StoreError(
            f"Expected a folder in which only this user can write for the copy of {address}, got "
            f"{folder.parent}: delete it, or set PRIVSWEEP_CACHE to another folder."
        )
    with _changing(folder) as index:
        index.execute("create table if not exists origin (address text primary key, endpoint text)")
        index.execute("create table if not exists objects (name text primary key, tag text)")
        index.execute("insert or ignore into origin values (?, ?)", (address, endpoint))


def origin(folder: Path) -> tuple[str, str]:
    """Return the address that a folder mirrors, and its endpoint."""
    with _opened(folder) as index:
        address, endpoint = index.execute("select address, endpoint from origin").fetchone()
    return str(address), str(endpoint)


def tags(folder: Path) -> dict[str, str]:
    """Return the mirrored names, each with the tag of the object's state."""
    with _opened(folder) as index:
        return dict(index.execute("select name, tag from objects").fetchall())


def forget(folder: Path) -> None:
    """Mark all files as unknown, so that they are fetched again."""
    with _changing(folder) as index:
        index.execute("update objects set tag = ?", (UNKNOWN,))


def install(folder: Path, name: str, tag: str, fetched: Path) -> None:
    """Move a fetched file into the mirror.

    Args:
        folder: The mirror.
        name: Name of the object, relative to the address.
        tag: Tag of the object before it was fetched: if it changed since, it is fetched again.
        fetched: The file, on the same disk.
    """
    path = folder / name
    with _changing(folder) as index:  # before the file exists: a file without a row would never be deleted
        index.execute("insert or replace into objects values (?, ?)", (name, UNKNOWN))
    with _changing(folder) as index:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():  # not from privsweep, and empty, since `remove_strays` deleted its files
            path.rmdir()
        fetched.replace(path)
        index.execute("update objects set tag = ? where name = ?", (tag, name))


def drop(folder: Path, name: str, tag: str) -> None:
    """Delete a file whose object is gone, unless it was installed again since it had this tag."""
    with _changing(folder) as index:
        if index.execute("delete from objects where name = ? and tag = ?", (name, tag)).rowcount:
            (folder / name).unlink(missing_ok=True)


def discard(folder: Path, name: str) -> None:
    """Delete a file whose object was just deleted."""
    with _changing(folder) as index:
        index.execute("delete from objects where name = ?", (name,))
        (folder / name).unlink(missing_ok=True)


def clear(folder: Path, known: dict[str, str]) -> None:
    """Delete the folder, since the bucket has no store, unless a process installed a file since."""
    with _changing(folder) as index:
        if dict(index.execute("select name, tag from objects").fetchall()) == known:
            index.execute("delete from objects")
            shutil.rmtree(folder, ignore_errors=True)


def remove_strays(folder: Path) -> None:
    """Delete the files that were not fetched from the bucket, since readers would take them for results."""
    found = {
        name
        for path in folder.rglob("*")
        if (path.is_symlink() or not path.is_dir())
        and is_mirrored(name := path.relative_to(folder).as_posix())
    }
    if found <= tags(folder).keys():
        return
    with _changing(folder) as index:  # no other process installs files meanwhile
        for name in found.difference(name for (name,) in index.execute("select name from objects")):
            (folder / name).unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Delete the files that killed processes fetched more than a day ago."""
    for path in folder.parent.glob(f"{FETCHED}*"):
        try:
            if path.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # another process deleted it
            continue


@contextmanager
def in_one_sentence(folder: Path) -> Iterator[None]:
    """Turn an error of the disk or of the table into a `StoreError` of one sentence."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        where = f"{folder.parent}, the copy of a store in a bucket"
        raise StoreError(f"Cannot use {where}: {why}; the folder can be deleted at any time.") from error


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    index = os.fspath(folder.parent / INDEX)
    with (
        in_one_sentence(folder),
        closing(sqlite3.connect(index, timeout=_PATIENCE, isolation_level=None)) as connection,
    ):
        connection.execute("pragma synchronous = off")  # after a power loss the folder can be fetched again
        yield connection


@contextmanager
def _changing(folder: Path) -> Iterator[sqlite3.Connection]:
    """Let one process at a time change the folder; a change that fails is not recorded."""
    with _opened(folder) as index:
        index.execute("begin immediate")
        try:
            yield index
        except BaseException:
            index.execute("rollback")
            raise
        index.execute("commit")
