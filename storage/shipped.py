"""The shipped lookup table: a Parquet file of the package, opened as a store in the cache of the user."""

import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from storage.catalog import Store, open_store
from storage.errors import StoreError
from storage.located import CACHE_VARIABLE, cache_folder, located

if TYPE_CHECKING:
    from storage.lookup_table import LookupTable

VARIABLE = "PRIVSWEEP_TABLE"
"""Environment variable with the path of another lookup table, whose rows count as imported, or `none`."""

FOLDER = Path(__file__).parent / "table"
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
    """Return the version of the shipped table, from the name of its file or else from its rows.

    Raises:
        StoreError: The file that the user named is not a lookup table.
    """
    path = shipped_file()
    if path is None:
        return ""
    match = _VERSION.fullmatch(path.name)
    return match[1] if match else _version_in(path, path.stat().st_mtime_ns if path.exists() else 0)


@cache
def _version_in(path: Path, _changed: int) -> str:
    """Return the version of a table with any name."""
    from storage.lookup_table import read_lookup_table  # imports modules that lookups do not need

    return read_lookup_table(path).version


def shipped_store() -> Store | None:
    """Return a store with the rows of the shipped table; it is made once, in the cache of the user.

    Returns:
        The store; None if there is no table, or the cache cannot be written.

    Raises:
        StoreError: The table is damaged, or a row of the table that the user named is refused.
    """
    path = shipped_file()
    if path is None:
        return None
    return _opened(path, shipped_version(), os.environ.get(CACHE_VARIABLE, ""))


@cache
def _opened(path: Path, version: str, _cache: str) -> Store | None:
    """Return the store of a table, once for each process."""
    trusted = path.parent == FOLDER  # as a part of the release; another table is marked as imported
    try:
        folder = cache_folder() / f"{'table' if trusted else 'named'}-{version}"
    except StoreError:  # the user has no home
        return None
    if not folder.exists():
        from storage.lookup_table import read_lookup_table

        table = read_lookup_table(path)  # compares all rows with the version
        try:
            _make(table, folder, checked=not trusted)
        except (OSError, StoreError) as error:  # the disk is full or read-only, or another process was faster
            if not folder.exists():
                if isinstance(error, StoreError) and not trusted:
                    raise
                return None
    return open_store(folder)


def _make(table: "LookupTable", folder: Path, *, checked: bool) -> None:
    """Import a table into a new store, which gets its name when it is complete."""
    from storage.table_import import import_lookup_table

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".table-", suffix=".tmp", dir=folder.parent) as scratch:
        root = Path(scratch) / "store"
        import_lookup_table(table, located(root), checked=checked)
        root.rename(folder)
    with open_store(folder) as store:
        store.sql("select 1")  # builds the snapshot, which is recorded with its path
