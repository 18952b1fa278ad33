"""The shipped lookup table: a Parquet file of the package, opened as a store in the cache of the user."""

import atexit
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from privcore.problem import Problem
from storage.catalog import Store, open_store
from storage.errors import ContradictionError, StoreError, reason
from storage.place.disk import write_atomically
from storage.place.layout import CACHE
from storage.place.located import CACHE_VARIABLE, cache_folder, located
from storage.sql.lookup import Found

VARIABLE = "PRIVSWEEP_TABLE"
"""Environment variable with the path of another lookup table, whose rows keep its mark, or `none`."""

CORRECT = f"correct the table, or unset {VARIABLE}"
"""Remedy if a table that the user named contradicts something."""

FOLDER = Path(__file__).parent
"""Folder of the package with the table, `lookup-<version>.parquet`."""

_VERSION = re.compile(r"lookup-([0-9.]+-[0-9a-f]{8})\.parquet")


def shipped_file() -> Path | None:
    """Return the path of the shipped table, or of the table that the user named instead; None without one."""
    if (named := os.environ.get(VARIABLE, "")) == "none":
        return None
    if named:
        return Path(named)
    return max(FOLDER.glob("lookup-*.parquet"), default=None)


def shipped_version() -> str:
    """Return the version of the shipped table, or of the table that the user named, from its rows.

    Raises:
        StoreError: The file that the user named is not a lookup table.
    """
    path = shipped_file()
    return _version(path, _identity(path)) if path else ""


def described(version: str) -> str:
    """Return the shipped table, or the table that the user named, in words."""
    return (
        f"shipped table {version}"
        if _is_shipped(shipped_file())
        else f"table {version} that {VARIABLE} names"
    )


def _is_shipped(path: Path | None) -> bool:
    """Return whether a table is a part of the release; the rows of any other keep its mark."""
    return path is not None and path.parent == FOLDER


def _identity(path: Path) -> str:
    """Return a text that changes with the file, or "" if it is missing."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ""
    parts = path.absolute(), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@cache
def _version(path: Path, identity: str) -> str:
    """Return the version of a table, once for each process: of a copied table, from the name of the copy."""
    if _is_shipped(path) and (match := _VERSION.fullmatch(path.name)):
        return match[1]
    try:
        if copy := next(cache_folder().glob(f"named-*-{identity}"), None):
            return copy.name.removeprefix("named-").removesuffix(f"-{identity}")
    except StoreError:  # the user has no home
        pass
    from storage.table.lookup_table import read_lookup_table  # imports modules that lookups do not need

    return read_lookup_table(path).version


def shipped_store() -> Store | None:
    """Return a store with the rows of the shipped table; it is made once, in the cache of the user.

    If the cache cannot be written, on a full or read-only disk, each process makes it in the folder for
    temporary files, and removes it at its end.

    Returns:
        The store; None if there is no table.

    Raises:
        StoreError: The table is damaged, a row of the table that the user named is refused, or neither folder
            can be written.
    """
    path = shipped_file()
    if path is None:
        return None
    return _opened(path, shipped_version(), _identity(path), os.environ.get(CACHE_VARIABLE, ""))


def shipped_lookup(problem: Problem) -> Found | None:
    """Return the bracket of a problem in the shipped table, or in the table that the user named.

    Raises:
        StoreError: The table is damaged, or a table that the user named contradicts itself.
    """
    store = shipped_store()
    try:
        return store.lookup(problem) if store is not None else None
    except ContradictionError as error:
        if _is_shipped(shipped_file()):
            raise
        raise StoreError(f"The table that {VARIABLE} names {error.said}; {CORRECT}.") from error


@cache
def _opened(path: Path, version: str, identity: str, _cache: str) -> Store:
    """Return the store of a table, once for each process."""
    trusted = _is_shipped(path)
    name = f"table-{version}" if trusted else f"named-{version}-{identity}"
    refused = "neither is a folder to write to"
    for parent in _parents():
        folder = parent / name
        try:
            if not _is_whole(folder):
                _make(path, folder, checked=not trusted)
        except (OSError, StoreError) as error:
            cause = error.__cause__ or error
            if not isinstance(cause, OSError):  # the table is damaged, or a row of it is refused
                raise
            refused = reason(cause)
        else:
            return open_store(folder)
    raise StoreError(
        f"The lookup table {path.name} cannot be unpacked into the cache or a temporary folder: {refused}. "
        f"Expected room in one of them; {VARIABLE}=none works without a table."
    )


def _parents() -> Iterator[Path]:
    """Yield the cache of the user, and a folder that is removed when the process ends."""
    with suppress(StoreError):  # the user has no home
        yield cache_folder()
    with suppress(OSError):  # there is no folder for temporary files
        yield _temporary()


@cache
def _temporary() -> Path:
    """Return a folder that is removed when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="privsweep-table-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _record(folder: Path) -> Path:
    """Return the file next to the store of a table that has the digests of its files."""
    return folder.with_name(f"{folder.name}.sha256")


def _digests(folder: Path) -> str:
    """Return the digests of the files in a store outside of its cache, as `sha256sum` prints them.

    Raises:
        OSError: Something is missing, or is neither a file nor a folder.
    """
    found = sorted(path for path in folder.rglob("*") if path.relative_to(folder).parts[0] != CACHE)
    files = [path for path in found if path.is_symlink() or not path.is_dir()]
    return "".join(
        f"{hashlib.sha256(_content(path)).hexdigest()}  {path.relative_to(folder)}\n" for path in files
    )


def _content(path: Path) -> bytes:
    """Return the bytes of a file, but not of a link, a pipe or a device, which may have no end."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(f"{path} is not a file")
    return path.read_bytes()


def _is_whole(folder: Path) -> bool:
    """Return whether the store of a table has the files that it was made with; else it is made again.

    That of another user, who may share the cache, is not believed.
    """
    try:
        if folder.lstat().st_uid not in {0, os.geteuid()}:
            return False
        return _content(_record(folder)) == _digests(folder).encode()
    except OSError:
        return False


def _make(path: Path, folder: Path, *, checked: bool) -> None:
    """Import a table into a new store, which gets its name when it is complete."""
    from storage.table.lookup_table import (
        import_lookup_table,
        read_lookup_table,  # these import modules that lookups do not need
    )

    table = read_lookup_table(path)  # compares all rows with the version
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".table-", suffix=".tmp", dir=folder.parent) as scratch:
        root = Path(scratch) / "store"
        import_lookup_table(table, located(root), checked=checked)
        write_atomically(_record(folder), _digests(root).encode())
        if os.path.lexists(folder):  # damaged
            folder.rename(Path(scratch) / "old")
        root.rename(folder)
    with open_store(folder) as store:
        store.sql("select 1")  # builds the snapshot, which is recorded with its path
