"""The layout of a store, and the schema versions that this release can read."""

import errno
import os
import stat
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
LARGEST = 64_000_000
"""Most bytes of a file other than a part or a snapshot."""


def is_no_file(path: Path) -> bool:
    """Return whether the path exists but is not a file: a folder, a link or a pipe."""
    return os.path.lexists(path) and (path.is_symlink() or not path.is_file())


def refuse_no_file(path: Path, where: object) -> None:
    """Raise `DamagedError` for a folder, a link or a pipe in the place of a file."""
    if is_no_file(path):
        raise DamagedError(f"{where} is not part of the store; `privsweep repair` will quarantine it.")


def content_of(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a file.

    Args:
        path: The file.
        largest: Most bytes that are read.

    Raises:
        OSError: The path is a folder, a link or a pipe, or the file is too large or cannot be read.
    """
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    if status.st_size > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest // 10**6} MB", str(path))
    return path.read_bytes()


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
