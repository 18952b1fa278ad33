"""A snapshot: all parts of a store in one sorted DuckDB file, built under another name, for queries."""

import hashlib
import json
import secrets
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from privcore import PROBLEMS
from privcore.registry import used_versions
from storage import layout, snapshot_records
from storage.build import LAYOUT, build, build_in_memory, extend
from storage.empty_snapshot import schemas
from storage.errors import StoreError, reason
from storage.folder import Folder
from storage.manifest import Manifest, manifests, missing, to_json
from storage.parts import parts, problem_of
from storage.schema import SCHEMA_VERSION, schema_for
from storage.snapshot_folder import snapshot_folder

MOST_NEW = 0.5
"""Bytes of new parts, as a share of the bytes of all parts, up to which an older snapshot is extended."""
KEPT = 2  # snapshots that stay: the newest, and the one before it, which another process may be opening
DAMAGE = "Corrupt database file"
"""Text in the errors of DuckDB for blocks that do not match their checksums."""

_OPENING = threading.Lock()
_FULL = (duckdb.Error, pa.ArrowException, OSError)  # errors of a full disk or memory, among others
_NO_ROOM = (duckdb.OperationalError, pa.ArrowMemoryError, OSError)

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
    """The parts and manifests of a store at one moment, and the digest that names their snapshot.

    Attributes:
        place: The store.
        parts: The parts.
        manifests: The manifests.
        digest: The digest.
        release: Hash of everything else that a snapshot depends on; "" if it must not be extended.
    """

    place: Folder
    parts: tuple[Path, ...]
    manifests: tuple[Manifest, ...]
    digest: str
    release: str = ""


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
    release = [
        [LAYOUT, SCHEMA_VERSION, duckdb.__version__],
        [[p.name, str(schema_for(p))] for p in PROBLEMS],
        list(used_versions().items()),
    ]
    content = [
        *release,
        [[path.name, *_size_and_time(place, path)] for path in found],
        [to_json(sweep) for sweep in sweeps],
    ]
    digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
    return Contents(
        place=place,
        parts=tuple(found),
        manifests=tuple(sweeps),
        digest=digest,
        release=hashlib.blake2b(json.dumps(release).encode(), digest_size=16).hexdigest(),
    )


def _size_and_time(place: Folder, path: Path) -> tuple[int, int]:
    """Return size and time of a part: if they change, the part is read and checked again."""
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"Cannot read {place.shown(path)}: {reason(error)}.") from error
    return status.st_size, status.st_mtime_ns


def connect(what: Contents) -> duckdb.DuckDBPyConnection:
    """Return a read-only, locked connection to the snapshot of these contents; build it if it is missing.

    A file is opened only if this user built it and it has not changed since. Without room for it in the
    cache, the snapshot is built in the folder for temporary files, and without room there in memory.

    Raises:
        StoreError: A part is damaged, or nothing has room for the snapshot; the sentence names the file.
    """
    path = sound(what)
    for _ in range(3):
        try:
            path = path or _build_aside(what)
        except _FULL:  # a store on a read-only or full disk can be queried too
            return _elsewhere(what)
        try:
            return _open(path)
        except duckdb.Error:  # removed by another process in between
            snapshot_records.forget(path)
            path = None
    return _elsewhere(what)


def sound(what: Contents) -> Path | None:
    """Return the snapshot of these contents in its folder, or None if it must be built."""
    folder = snapshot_folder(what.place)
    if folder is None:
        return None
    return next(snapshot_records.trusted(sorted(folder.glob(f"snapshot-{what.digest}-*.duckdb"))), None)


def discard(place: Folder, digest: str) -> None:
    """Delete the snapshot of contents with this digest, because DuckDB found it damaged."""
    if folder := snapshot_folder(place):
        for path in folder.glob(f"snapshot-{digest}-*.duckdb"):
            snapshot_records.forget(path)


def _elsewhere(what: Contents) -> duckdb.DuckDBPyConnection:
    """Return a connection to a snapshot outside of the store."""
    arguments = what.place, what.parts, what.manifests
    try:
        with tempfile.TemporaryDirectory(prefix="privsweep-") as scratch:
            path = Path(scratch) / "snapshot.duckdb"
            build(path, *arguments)
            return _open(path)  # the file lives as long as the connection
    except _FULL:
        pass
    try:
        connection = build_in_memory(*arguments)
    except _FULL as error:
        folder = what.place.root / layout.CACHE
        reason = str(error).splitlines()[0].rstrip(".")
        failure = "No room for" if isinstance(error, _NO_ROOM) else "Cannot build"
        raise StoreError(f"{failure} the snapshot in {folder} or in memory: {reason}.") from error
    for name in ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_access"):
        connection.execute(f"set global {name} = {_LOCKED[name]}")
    _lock(connection)
    return connection


def _open(path: Path) -> duckdb.DuckDBPyConnection:
    with _OPENING:  # connections of one process to one file share their settings
        connection = duckdb.connect(str(path.absolute()), read_only=True, config=dict(_LOCKED))
        if not connection.execute("select current_setting('lock_configuration')").fetchall()[0][0]:
            _lock(connection)
    return connection


def _lock(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("set global TimeZone = 'UTC'")
    connection.execute("set global lock_configuration = true")


def _build_aside(what: Contents) -> Path:
    """Build a snapshot under another name, rename it, record it, and remove old snapshots."""
    folder = snapshot_folder(what.place)
    if folder is None:
        raise NotADirectoryError(what.place.root / layout.CACHE)
    folder.mkdir(mode=0o755, exist_ok=True)
    # Another user may have a snapshot of the same contents, which must not be overwritten.
    path = folder / f"snapshot-{what.digest}-{secrets.token_hex(4)}.duckdb"
    with tempfile.TemporaryDirectory(prefix=".snapshot-", suffix=".tmp", dir=folder) as scratch:
        unfinished = Path(scratch) / path.name
        if not _extended(unfinished, what, folder):
            build(unfinished, what.place, what.parts, what.manifests)
        sha256 = snapshot_records.sha256_of(unfinished)
        unfinished.replace(path)
    snapshot_records.remember(path, sha256, _origin(what))
    found = [p for p in folder.glob("snapshot-*.duckdb") if not p.is_dir()]  # `gc` deletes folders
    others = [p for p in found if p != path and not _is_of_others(what, p)]
    for old in sorted(others, key=_age)[KEPT - 1 :]:
        snapshot_records.forget(old)
    return path


def _origin(what: Contents) -> str:
    """Return the text about the origin of a snapshot, from which the parts that it lacks follow."""
    parts = {str(path.relative_to(what.place.data)): _size_and_time(what.place, path) for path in what.parts}
    return json.dumps([what.release, parts]) if what.release else ""


def _extended(path: Path, what: Contents, folder: Path) -> bool:
    """Write a snapshot as an extension of an older one; return whether there is one with most of the parts.

    The older one is copied before its hash is compared, so that the extended bytes are those that this user
    built.
    """
    release, parts = json.loads(_origin(what) or '["", {}]')
    size = sum(bytes_ for bytes_, _ in parts.values())
    for old in sorted(folder.glob("snapshot-*.duckdb"), key=_age) if release else []:
        sha256, origin = snapshot_records.origin_of(old) or ("", '["", {}]')
        of_release, known = json.loads(origin or '["", {}]')
        if of_release != release or not known.items() <= parts.items():
            continue
        new = [one for one in what.parts if str(one.relative_to(what.place.data)) not in known]
        more = sum(parts[str(one.relative_to(what.place.data))][0] for one in new)
        if more > MOST_NEW * size or not all(problem_of(one) in schemas() for one in what.parts):
            continue
        try:
            shutil.copyfile(old, path)
            if snapshot_records.sha256_of(path) == sha256:
                extend(path, what.place, what.parts, new, what.manifests)
                return True
        except _FULL:  # if the disk is full, building again raises
            pass
        path.unlink(missing_ok=True)
    return False


def _is_of_others(what: Contents, path: Path) -> bool:
    """Return whether a snapshot of these contents is young; this user has no other one, so others read it."""
    return path.name.startswith(f"snapshot-{what.digest}-") and -_age(path) > time.time() - layout.DAY


def _age(path: Path) -> float:
    """Return a number that is larger for older files."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0
