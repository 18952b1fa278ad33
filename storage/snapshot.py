"""A snapshot: all parts of a store in one sorted DuckDB file, built under another name, for queries."""

import hashlib
import json
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from privcore import PROBLEMS
from privcore.registry import versions
from storage import layout
from storage.build import LAYOUT, build
from storage.errors import StoreError, reason
from storage.folder import Folder
from storage.manifest import Manifest, manifests, missing, to_json
from storage.parts import parts
from storage.schema import SCHEMA_VERSION, schema_for

KEPT = 2  # snapshots that stay: the newest, and the one before it, which another process may be opening

_OPENING = threading.Lock()
_FULL = (duckdb.Error, pa.ArrowException, OSError)  # errors of a full disk or memory

# Queries come from users: they may not read files, use the network, write, or change these settings.
_LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "2GB",
}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The parts and manifests of a store at one moment, and the digest that names their snapshot."""

    place: Folder
    parts: tuple[Path, ...]
    manifests: tuple[Manifest, ...]
    digest: str


def contents(place: Folder) -> Contents:
    """Return the current contents of a store.

    Raises:
        StoreError: A file is not part of the store, or a part that a manifest lists is missing.
    """
    place.check()
    sweeps = manifests(place)  # before the parts: a sweep that ends in between would list later parts
    found = parts(place)
    names = {str(path.relative_to(place.data)) for path in found}
    for sweep in sweeps:
        for name in sorted(set(sweep.parts) - names):
            raise StoreError(missing(place, sweep, name))
    content = [
        [LAYOUT, SCHEMA_VERSION, duckdb.__version__],
        [[p.name, str(schema_for(p))] for p in PROBLEMS],
        list(versions().items()),
        [[path.name, *_size_and_time(place, path)] for path in found],
        [to_json(sweep) for sweep in sweeps],
    ]
    digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
    return Contents(place=place, parts=tuple(found), manifests=tuple(sweeps), digest=digest)


def _size_and_time(place: Folder, path: Path) -> tuple[int, int]:
    """Return size and time of a part: if they change, the part is read and checked again."""
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"Cannot read {place.shown(path)}: {reason(error)}.") from error
    return status.st_size, status.st_mtime_ns


def connect(what: Contents) -> duckdb.DuckDBPyConnection:
    """Return a read-only, locked connection to the snapshot of these contents; build it if it is missing.

    Raises:
        StoreError: A part is damaged, or the disk is full; the sentence names the file.
    """
    try:
        folder = what.place.root / layout.CACHE
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:  # a store on a read-only disk can be queried too
        with tempfile.TemporaryDirectory(prefix="privsweep-") as scratch:
            path = Path(scratch) / "snapshot.duckdb"
            try:
                build(path, what.place, what.parts, what.manifests)
            except _FULL as error:
                raise _unbuilt(path, error) from error
            return _open(path)  # the file lives as long as the connection
    path = folder / f"snapshot-{what.digest}.duckdb"
    for _ in range(3):
        if not path.exists():
            try:
                _build_aside(what, path)
            except _FULL as error:
                raise _unbuilt(path, error) from error
        try:
            return _open(path)
        except duckdb.Error:  # removed by another process in between, or damaged
            path.unlink(missing_ok=True)
    raise StoreError(f"Cannot open {path}; delete the folder {folder}.")


def _unbuilt(path: Path, error: Exception) -> StoreError:
    return StoreError(f"Cannot build {path}: {str(error).splitlines()[0]}.")


def _open(path: Path) -> duckdb.DuckDBPyConnection:
    with _OPENING:  # connections of one process to one file share their settings
        connection = duckdb.connect(str(path.absolute()), read_only=True, config=dict(_LOCKED))
        if not connection.execute("select current_setting('lock_configuration')").fetchall()[0][0]:
            connection.execute("set global TimeZone = 'UTC'")
            connection.execute("set global lock_configuration = true")
    return connection


def _build_aside(what: Contents, path: Path) -> None:
    """Build a snapshot under another name, rename it, and remove old snapshots."""
    with tempfile.TemporaryDirectory(prefix=".snapshot-", suffix=".tmp", dir=path.parent) as scratch:
        unfinished = Path(scratch) / path.name
        build(unfinished, what.place, what.parts, what.manifests)
        unfinished.replace(path)
    others = [p for p in path.parent.glob("snapshot-*.duckdb") if p != path]
    for old in sorted(others, key=_age)[KEPT - 1 :]:
        old.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """Return a number that is larger for older files."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0
