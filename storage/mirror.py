"""The folder that mirrors a bucket: which state of which object each of its files is a copy of.

Processes of one machine share the folder. A file changes together with its row in an SQLite table, and a row
says less than is there rather than more: whoever is killed in between leaves a file that is fetched again.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

INDEX = "mirror.sqlite"
"""The file beside a mirror, which tells it from a store of its own."""

UNKNOWN = ""
"""The tag of a file that may be anything."""

FETCHED = ".fetched-"
"""How the names of folders begin that fetched files wait in."""

_DAY = 86_400.0
_PATIENCE = 60.0  # seconds for which a process waits until others have done their renames


def make(folder: Path, address: str, endpoint: str) -> None:
    """Make a folder the mirror of an address; it appears with the first file, and a mirror stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _changing(folder) as index:
        index.execute("create table if not exists origin (address text primary key, endpoint text)")
        index.execute("create table if not exists objects (name text primary key, tag text)")
        index.execute("insert or ignore into origin values (?, ?)", (address, endpoint))


def origin(folder: Path) -> tuple[str, str]:
    """Return the address that a folder mirrors, and its endpoint."""
    with closing(_open(folder)) as index:
        address, endpoint = index.execute("select address, endpoint from origin").fetchone()
    return str(address), str(endpoint)


def tags(folder: Path) -> dict[str, str]:
    """Return the names that are mirrored, each with the tag of the object's state."""
    with closing(_open(folder)) as index:
        return dict(index.execute("select name, tag from objects").fetchall())


def forget(folder: Path) -> None:
    """Trust no file any more, so that all are fetched again."""
    with _changing(folder) as index:
        index.execute("update objects set tag = ?", (UNKNOWN,))


def install(folder: Path, name: str, tag: str, fetched: Path) -> None:
    """Put a fetched file in its place.

    Args:
        folder: The mirror.
        name: Of the object, relative to the address.
        tag: Of the object, seen before it was fetched: a change in between makes it be fetched again.
        fetched: The file, on the same disk.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with _changing(folder) as index:  # known before it is there: else nobody would delete it
        index.execute("insert or replace into objects values (?, ?)", (name, UNKNOWN))
    with _changing(folder) as index:
        fetched.replace(path)
        index.execute("update objects set tag = ? where name = ?", (tag, name))


def drop(folder: Path, name: str, tag: str) -> None:
    """Delete a file whose object is gone, unless it was installed anew since it had that tag."""
    with _changing(folder) as index:
        if index.execute("delete from objects where name = ? and tag = ?", (name, tag)).rowcount:
            (folder / name).unlink(missing_ok=True)


def discard(folder: Path, name: str) -> None:
    """Delete a file whose object was just deleted."""
    with _changing(folder) as index:
        index.execute("delete from objects where name = ?", (name,))
        (folder / name).unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Delete the folder: the bucket holds no store."""
    with _changing(folder) as index:
        index.execute("delete from objects")
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Delete what was fetched more than a day ago by a process that was killed."""
    for path in folder.parent.glob(f"{FETCHED}*"):
        try:
            if path.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # somebody else's cleaning
            continue


def _open(folder: Path) -> sqlite3.Connection:
    index = sqlite3.connect(os.fspath(folder.parent / INDEX), timeout=_PATIENCE, isolation_level=None)
    index.execute("pragma synchronous = off")  # after a power loss the folder can be fetched again
    return index


@contextmanager
def _changing(folder: Path) -> Iterator[sqlite3.Connection]:
    """Let one process at a time change the folder; what fails half-way is not recorded."""
    with closing(_open(folder)) as index:
        index.execute("begin immediate")
        try:
            yield index
        except BaseException:
            index.execute("rollback")
            raise
        index.execute("commit")
