"""Private records of the snapshots that this user built: other files in the cache of a store are not read.

A hash next to a snapshot would not help, since both can be changed together. So the hash is
in the user's own cache folder, and a snapshot without a record is built again.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from storage.errors import StoreError
from storage.layout import is_no_file
from storage.snapshot_folder import records_folder


def remember(path: Path, sha256: str, origin: str = "") -> None:
    """Record a snapshot that was just built; without room for the record, it is built again next time.

    Args:
        path: The snapshot.
        sha256: Hash of its bytes.
        origin: A text about its origin, for a later extension.
    """
    with suppress(OSError, StoreError):
        record = _record(path)
        if origin:
            _write(_origin(record), origin)
        _write(record, json.dumps([sha256, *_state(path)]))


def origin_of(path: Path) -> tuple[str, str] | None:
    """Return the hash of a snapshot that this user built, and the text about its origin, or None.

    It is None, too, if the size of the file has changed since.
    """
    try:
        record = _record(path)
        sha256, _, size, *_ = json.loads(record.read_bytes())
        if not isinstance(sha256, str) or size != path.stat().st_size:
            return None
        return sha256, _origin(record).read_text()
    except (OSError, ValueError, LookupError, TypeError, StoreError):
        return None


def forget(path: Path) -> None:
    """Delete a snapshot, and its record."""
    path.unlink(missing_ok=True)
    with suppress(OSError, StoreError):
        record = _record(path)
        record.unlink(missing_ok=True)
        _origin(record).unlink(missing_ok=True)


def trusted(paths: list[Path]) -> Iterator[Path]:
    """Yield the snapshots that this user built and that have not changed since; delete those that have.

    The bytes are hashed only if the state of the file changed: no program can change a file and keep the time
    of its last change of state, and DuckDB has a checksum of each block for changes by the disk itself.
    """
    for path in paths:
        try:
            sha256, *state = json.loads(_record(path).read_bytes())
            if is_no_file(path):
                continue
            # DuckDB would replay a log next to the file; a snapshot that was built whole has none.
            path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
            if state != (now := _state(path)):
                # Inode, size, times: of another size, the file is another one, and may be too long to hash.
                if state[1] != now[1] or sha256_of(path) != sha256:
                    forget(path)
                    continue
                remember(path, sha256)
        except (OSError, ValueError, TypeError, StoreError):  # no record, or none that this release wrote
            continue
        yield path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _write(path: Path, text: str) -> None:
    staged = path.with_suffix(f".{os.getpid()}.tmp")
    staged.write_text(text)
    staged.replace(path)


def _origin(record: Path) -> Path:
    return record.with_suffix(".origin")


def _record(path: Path) -> Path:
    name = hashlib.blake2b(os.fsencode(path.resolve()), digest_size=16).hexdigest()
    return records_folder() / f"{name}.json"
