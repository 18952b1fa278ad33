"""The layout of a store, and the schema versions that this release can read."""

import os
from collections.abc import Mapping
from pathlib import Path

from storage.errors import DamagedError, StoreError
from storage.schema import SCHEMA_VERSION, VERSION_KEY

MARK = "store.json"
DATA = "data"
SWEEPS = "sweeps"
REPLACED = "replaced"
QUARANTINE = "quarantine"
CACHE = "cache"
RUNNING = "running"

DAY = 86_400.0


def is_no_file(path: Path) -> bool:
    """Return whether the path exists but is not a file: a folder, a link or a pipe."""
    return os.path.lexists(path) and (path.is_symlink() or not path.is_file())


def refuse_no_file(path: Path, where: object) -> None:
    """Raise `DamagedError` for a folder, a link or a pipe in the place of a file."""
    if is_no_file(path):
        raise DamagedError(f"{where} is not part of the store; `privsweep repair` will quarantine it.")


def version_in(metadata: Mapping[bytes, bytes]) -> object:
    """Return the schema version in the metadata of a Parquet file; a text if it is not a number.

    Example:
        >>> version_in({VERSION_KEY: b"1"}), version_in({VERSION_KEY: b"new"}), version_in({})
        (1, 'new', '')
    """
    text = metadata.get(VERSION_KEY, b"").decode(errors="replace")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def refuse_newer(version: object, where: object) -> None:
    """Raise `StoreError` unless this release can read a file or store of this schema version.

    Raises:
        DamagedError: The version is invalid.
        StoreError: The version is newer.
    """
    if type(version) is not int or version < 1:
        raise DamagedError(f"{where} has an invalid schema version: {repr(version)[:60]}.")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{where} has schema version {str(version)[:60]}, but this release reads {SCHEMA_VERSION}: "
            "update privsweep."
        )
