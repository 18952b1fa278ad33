"""A snapshot: all parts of a store in one sorted DuckDB file, built under another name, for queries."""

import hashlib
import json
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from privcore import PROBLEMS
from privcore.registry import used_versions
from storage.errors import StoreError, reason
from storage.manifest import Manifest, manifests, missing, to_json
from storage.parts import parts, problem_of
from storage.place import layout
from storage.place.disk import is_sheltered, make_private
from storage.place.folder import Folder
from storage.place.layout import CACHE, is_no_file
from storage.place.located import cache_folder
from storage.schema import SCHEMA_VERSION, schema_for
from storage.sql.build import LAYOUT, build, build_in_memory, extend, schemas

# The folder of the snapshots of a store, in which no other user can exchange files.

FOLDER = "snapshots"
"""Folder of the records of snapshots, and of snapshots, in the user's cache folder."""


def snapshot_folder(place: Folder) -> Path | None:
    """Return the folder `cache` of a store, or a private folder of this user if others can change `cache`.

    A snapshot is hashed before DuckDB opens it. Another user who can rename the files of a folder could put
    a forged file there in between.

    Returns:
        The folder, which may be missing; None if this user cannot have a private one.
    """
    cache = place.root / CACHE
    changed = cache if os.path.lexists(cache) else place.root
    if not cache.is_symlink() and is_sheltered(changed.absolute().resolve()):
        return cache
    try:
        root = os.fsencode(place.root.resolve())
        folder = records_folder() / hashlib.blake2b(root, digest_size=16).hexdigest()
    except (StoreError, OSError):
        return None
    return folder if make_private(folder) else None


def records_folder() -> Path:
    """Return the private folder for the records of the snapshots that this user built.

    Raises:
        StoreError: The folder is not private, or the user has no home folder.
    """
    folder = cache_folder() / FOLDER
    if not make_private(folder):
        raise StoreError(f"Expected {folder} to be a folder in which only this user can write.")
    return folder


# Private records of the snapshots that this user built: other files in the cache of a store are not read.
#
# A hash next to a snapshot would not help, since both can be changed together. So the hash is in the user's
# own cache folder, and a snapshot without a record is built again.


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
            _write(_origin_file(record), origin)
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
        return sha256, _origin_file(record).read_text()
    except (OSError, ValueError, LookupError, TypeError, StoreError):
        return None


def forget(path: Path) -> None:
    """Delete a snapshot, and its record."""
    path.unlink(missing_ok=True)
    with suppress(OSError, StoreError):
        record = _record(path)
        record.unlink(missing_ok=True)
        _origin_file(record).unlink(missing_ok=True)


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


def _origin_file(record: Path) -> Path:
    return record.with_suffix(".origin")


def _record(path: Path) -> Path:
    name = hashlib.blake2b(os.fsencode(path.resolve()), digest_size=16).hexdigest()
    return records_folder() / f"{name}.json"


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
            forget(path)
            path = None
    return _elsewhere(what)


def sound(what: Contents) -> Path | None:
    """Return the snapshot of these contents in its folder, or None if it must be built."""
    folder = snapshot_folder(what.place)
    if folder is None:
        return None
    return next(trusted(sorted(folder.glob(f"snapshot-{what.digest}-*.duckdb"))), None)


def discard(place: Folder, digest: str) -> None:
    """Delete the snapshot of contents with this digest, because DuckDB found it damaged."""
    if folder := snapshot_folder(place):
        for path in folder.glob(f"snapshot-{digest}-*.duckdb"):
            forget(path)


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
        sha256 = sha256_of(unfinished)
        unfinished.replace(path)
    remember(path, sha256, _origin(what))
    found = [p for p in folder.glob("snapshot-*.duckdb") if not p.is_dir()]  # `gc` deletes folders
    others = [p for p in found if p != path and not _is_of_others(what, p)]
    for old in sorted(others, key=_age)[KEPT - 1 :]:
        forget(old)
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
        sha256, origin = origin_of(old) or ("", '["", {}]')
        of_release, known = json.loads(origin or '["", {}]')
        if of_release != release or not known.items() <= parts.items():
            continue
        new = [one for one in what.parts if str(one.relative_to(what.place.data)) not in known]
        more = sum(parts[str(one.relative_to(what.place.data))][0] for one in new)
        if more > MOST_NEW * size or not all(problem_of(one) in schemas() for one in what.parts):
            continue
        try:
            shutil.copyfile(old, path)
            if sha256_of(path) == sha256:
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
