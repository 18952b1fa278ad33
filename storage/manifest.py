"""The manifest of a sweep: its points, their outcome, and the parts that hold them; written last."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privcore.problem import Problem
from storage.errors import DamagedError, StoreError, reason
from storage.parts import foreign_ids, is_name, read_part
from storage.place import disk, layout
from storage.place.folder import Folder
from storage.schema import SCHEMA_VERSION

# Records of replaced parts, which `compact` and `gc` write before they delete the old parts.

TRIES = 30
"""Most attempts of a reader while parts are being replaced; one compaction costs one attempt."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """Parts whose rows are now in other parts; names are relative to the store's data folder.

    Attributes:
        old: Parts that need not exist any more.
        new: Parts with all rows of the old parts that count.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]


def write_replacement(place: Folder, replacement: Replacement) -> Path:
    """Write the record of a replacement; afterwards the old parts may be deleted.

    Manifests that list old parts stay as they are, since rewriting the manifest of a running sweep would lose
    the parts that it adds. Readers of manifests follow these records.

    Raises:
        StoreError: The disk refused; no partial file remains.
    """
    content = (
        json.dumps({"schema_version": SCHEMA_VERSION, **replacement.__dict__}, indent=1).encode() + b"\n"
    )
    path = place.root / layout.REPLACED / f"{_name_of(content)}.json"
    if not path.exists():
        place.write(path, content)
    return path


def read_replacement(place: Folder, path: Path) -> Replacement:
    """Return one record.

    Raises:
        DamagedError: Its bytes do not match its name, or it lists an impossible name of a part.
        StoreError: The record cannot be read, or is of a newer version.
    """
    shown = place.shown(path)
    layout.refuse_no_file(path, shown)
    try:
        content = layout.content_of(path)
    except OSError as error:
        raise StoreError(f"Cannot read {shown}: {reason(error)}.") from error
    if _name_of(content) != path.stem:
        raise DamagedError(f"{shown} is damaged; `privsweep repair` will quarantine it.")
    try:
        table = json.loads(content)
        version, old, new = table["schema_version"], tuple(table["old"]), tuple(table["new"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedError(
            f"{shown} is damaged: expected a record of replaced parts; `privsweep repair` will quarantine it."
        ) from None
    layout.refuse_newer(version, shown)
    for name in (*old, *new):
        if not is_name(name):  # else deleting the old parts could delete any file
            raise DamagedError(
                f"{shown} is damaged: it lists {name!r} as a part; `privsweep repair` will quarantine it."
            )
    return Replacement(old=old, new=new)


def _name_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def replacements(place: Folder) -> list[Replacement]:
    """Return the replacements of a store.

    Raises:
        StoreError: A record is damaged or newer; the sentence names it.
    """
    return [read_replacement(place, path) for path in place.entries(layout.REPLACED)]


def newest(names: Iterable[str], made: Collection[Replacement]) -> tuple[str, ...]:
    """Return the sorted names of the parts that now hold the rows of these parts.

    A part whose records lead in a circle keeps its own name, so that it is reported if it is missing.

    Example:
        >>> made = [Replacement(old=("a", "b"), new=("c",)), Replacement(old=("c",), new=("d", "e"))]
        >>> newest(["a", "x"], made)
        ('d', 'e', 'x')
    """
    after = successors(made)
    held = ({end for end in reached([name], after) if end not in after} or {name} for name in names)
    return tuple(sorted(set[str]().union(*held)))


def successors(made: Iterable[Replacement]) -> dict[str, list[str]]:
    """Return the new parts of each old part; two processes may have replaced it by different parts."""
    after: dict[str, list[str]] = defaultdict(list)
    for replacement in made:
        for old in replacement.old:
            after[old] += replacement.new
    return dict(after)


def reached(names: Iterable[str], after: Mapping[str, Iterable[str]]) -> set[str]:
    """Return these names and the names of all parts that replaced them.

    Args:
        names: Names of parts.
        after: From `successors`.
    """
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += after.get(name, ())
    return found


def lingering(place: Folder) -> list[tuple[Replacement, tuple[str, ...]]]:
    """Return the replacements whose old parts still exist, each with the parts that now hold their rows.

    A killed `compact` or `gc` leaves old parts, and the next run deletes them. Until then, a row must not be
    dropped because an old part has it too.
    """
    made = replacements(place)
    after = successors(made)
    return [
        (one, tuple(sorted(held)))
        for one in made
        if any((place.data / name).exists() for name in one.old)
        and (held := {name for name in reached(one.new, after) if name not in after})
    ]


def delete_replaced(place: Folder, replacement: Replacement) -> None:
    """Delete the old parts of a replacement.

    Raises:
        StoreError: The disk refused; the next `compact` or `gc` continues.
    """
    folders = set()
    try:
        for name in replacement.old:
            path = place.data / name
            if path.exists():
                place.unlink(path)
                folders.add(path.parent)
        for folder in sorted(folders):
            disk.sync_folder(folder)
    except OSError as error:
        raise StoreError(f"Cannot delete {place.shown(error.filename)}: {reason(error)}.") from error


def steadily(place: Folder, read: Callable[[], T]) -> T:
    """Return the result of a reading function; call it again if files vanished while it failed.

    Args:
        place: The store.
        read: Lists files, then reads them; called up to `TRIES` times.

    Raises:
        StoreError: The function raised it although no file vanished meanwhile.
    """
    for _ in range(TRIES - 1):
        before = files(place)
        try:
            return read()
        except (StoreError, FileNotFoundError):
            if files(place).issuperset(before):
                raise
    return read()


def settled(place: Folder, read: Callable[[], T]) -> T:
    """Return the result of a reading function; call it again if files vanished meanwhile.

    Args:
        place: The store.
        read: Lists files, and returns the missing ones instead of raising; called up to `TRIES` times.
    """
    for _ in range(TRIES - 1):
        before = files(place)
        found = read()
        if files(place).issuperset(before):
            return found
    return read()


def files(place: Folder) -> set[tuple[str, int]]:
    """Return the paths of all parts, manifests and records, each with the time of its last change."""
    found = set()
    of_problems = [
        f"{layout.DATA}/{folder.name}"
        for folder in place.entries(layout.DATA)
        if folder.is_dir() and not folder.is_symlink()
    ]
    for name in (layout.SWEEPS, layout.REPLACED, *of_problems):
        for path in place.entries(name):
            try:
                found.add((str(path), path.stat().st_mtime_ns))
            except OSError:  # it vanished already
                continue
    return found


COMPLETE = "complete"
INCOMPLETE = "incomplete"
HASH = "sha256"
"""Key of the hash of a manifest's content; manifests of earlier releases lack it."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The record of one sweep.

    Attributes:
        digest: Hash of the sweep's content, hexadecimal; a new run of the sweep replaces its manifest.
        name: Name of the sweep.
        spec: The sweep as it was read, in JSON types.
        counts: Number of points by outcome, for example `{"ok": 90, "failed": 2}`.
        parts: Names of the parts that hold its points, relative to the store's data folder; every name ends
            with the SHA-256 of the part.
        git_commit: Commit of the code that ran it.
        started_at: Start of the run, in UTC.
        finished_at: End of the run, in UTC.
        status: `complete` or `incomplete`.
        schema_version: Version of the store's schema.
    """

    digest: str
    name: str
    spec: Mapping[str, Any]
    counts: Mapping[str, int]
    parts: tuple[str, ...]
    git_commit: str
    started_at: datetime
    finished_at: datetime
    status: str
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Raise `ValueError` for a digest that could name another file, and for an unknown status."""
        if not re.fullmatch(r"[0-9a-f]{8,128}", self.digest):
            raise ValueError(f"Expected a digest of 8 to 128 hexadecimal digits, got {self.digest[:130]!r}.")
        if self.status not in (COMPLETE, INCOMPLETE):
            raise ValueError(f"Expected status complete or incomplete, got {self.status!r}.")

    def with_parts(self, parts: tuple[str, ...]) -> Self:
        """Return the manifest with other parts."""
        return replace(self, parts=parts)


def write_manifest(place: Folder, manifest: Manifest) -> Path:
    """Write a manifest to `sweeps/<digest>.json`; an earlier manifest of the same sweep is replaced.

    Raises:
        StoreError: The disk refused; an earlier manifest stays as it was.
    """
    path = manifest_of(place, manifest.digest)
    content = _content(manifest)
    place.write(path, _canonical({**content, HASH: _hash(content)}).encode() + b"\n")
    return path


def manifest_of(place: Folder, digest: str) -> Path:
    """Return the path of a sweep's manifest, which need not exist."""
    return place.root / layout.SWEEPS / f"{digest}.json"


def to_json(manifest: Manifest) -> str:
    """Return a manifest as canonical JSON, without its hash."""
    return _canonical(_content(manifest))


def _content(manifest: Manifest) -> dict[str, Any]:
    return {
        **manifest.__dict__,
        "started_at": manifest.started_at.isoformat(),
        "finished_at": manifest.finished_at.isoformat(),
    }


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, indent=1, allow_nan=False)


def _hash(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest's content; order and spaces in the file do not matter."""
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def manifests(place: Folder) -> list[Manifest]:
    """Return the manifests of a store, the latest last, with replaced parts under their current names.

    Raises:
        StoreError: A manifest cannot be read, or is of a newer version; the sentence names the file.
    """
    files = [path for path in place.entries(layout.SWEEPS) if path.suffix == ".json"]
    found = sorted((read_manifest(place, file) for file in files), key=lambda m: (m.finished_at, m.digest))
    made = replacements(place)  # after the manifests: a part is replaced before it is deleted
    return [sweep.with_parts(newest(sweep.parts, made)) for sweep in found]


def read_manifest(place: Folder, path: Path) -> Manifest:
    """Return one manifest.

    Raises:
        DamagedError: The file is not as it was written.
        StoreError: The file cannot be read, or is of a newer version.
    """
    shown = place.shown(path)
    layout.refuse_no_file(path, shown)
    try:
        content = json.loads(layout.content_of(path))
        version = content["schema_version"]
        expected = content.pop(HASH, None)
    except OSError as error:
        raise StoreError(f"Cannot read {shown}: {reason(error)}.") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedError(f"{shown} is damaged: expected a sweep's manifest; run the sweep again.") from None
    layout.refuse_newer(version, shown)
    try:
        times = {key: datetime.fromisoformat(content[key]) for key in ("started_at", "finished_at")}
        _check(content, times)
        manifest = Manifest(**{**content, **times, "parts": tuple(content["parts"])})
        found = _hash(content)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{shown} is damaged: {error}; run the sweep again.") from error
    for name in manifest.parts:
        if not is_name(name):
            raise DamagedError(f"{shown} is damaged: it lists {name!r} as a part; run the sweep again.")
    if manifest.digest != path.stem:
        raise DamagedError(f"{shown} is damaged: it holds the manifest of sweep {manifest.digest}.")
    if expected not in (None, found):
        raise DamagedError(
            f"{shown} is damaged: its content does not match its SHA-256; run the sweep again."
        )
    return manifest


def _check(content: Mapping[str, Any], times: Mapping[str, datetime]) -> None:
    """Check the types that readers rely on, since manifests of earlier releases have no hash."""
    if not all(time.tzinfo for time in times.values()):
        raise ValueError("its times have no time zone")
    for key, kind in (("name", str), ("digest", str), ("spec", dict), ("counts", dict)):
        if not isinstance(content[key], kind):
            raise TypeError(f"its {key} has the wrong type: {content[key]!r}"[:100])
    json.dumps(content, ensure_ascii=False).encode()  # which has no half of a surrogate pair


def missing(place: Folder, sweep: Manifest, name: str) -> str:
    """Return the sentence about a part that a manifest lists and the store lacks."""
    shown = place.shown(place.data / name)
    return (
        f"{shown} of sweep {sweep.name} is missing: restore it, "
        "or run `privsweep repair` to compute it again."
    )


# The points of a part by their fields, for comparison with the points of a sweep.

Column = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class StoredPoints:
    """The points of a part, one for each row; a point may have several rows.

    Attributes:
        part: Name of the part, relative to the data folder.
        fields: The values of each field of the problem.
        methods: Name, version, and options as JSON of each method.
        method: For each row, the place of its method in `methods`.
        statuses: The statuses that occur.
        status: For each row, the place of its status in `statuses`.
        finished_at: For each row, the end of its evaluation in microseconds since 1970.
    """

    part: str
    fields: Mapping[str, Column]
    methods: tuple[tuple[str, int, str], ...]
    method: NDArray[np.int64]
    statuses: tuple[str, ...]
    status: NDArray[np.int64]
    finished_at: NDArray[np.int64]


def read_points(place: Folder, path: Path, kind: type[Problem]) -> StoredPoints:
    """Return the points of a part.

    The ids of rows are functions of the columns that are read here. This is checked for one row of each
    method, and if it is false, for every row: a row with a foreign id is left out.

    Args:
        place: The store.
        path: The part.
        kind: Its problem.

    Raises:
        StoreError: The part cannot be read, or is damaged.
    """
    of_ids = ["point_id", "problem_id", "method", "method_version", "knobs"]
    columns = [*of_ids, "status", "finished_at", *kind.parameters]
    table = read_part(place, path, columns).unify_dictionaries().combine_chunks()
    methods, method = _methods(table)
    some = table.take(np.unique(method, return_index=True)[1]) if len(methods) > 1 else table.slice(0, 1)
    if any(foreign_ids(kind, some)):
        foreign = pa.array(sorted(set(foreign_ids(kind, table))), pa.string())
        import pyarrow.compute as pc  # slow to import, and rarely needed

        table = table.filter(pc.invert(pc.is_in(table["point_id"], foreign))).combine_chunks()
        methods, method = _methods(table)
    status, words = _codes(table["status"])
    return StoredPoints(
        part=str(path.relative_to(place.data)),
        fields={name: _values(table[name]) for name in kind.parameters},
        methods=methods,
        method=method,
        statuses=tuple(words),
        status=status,
        finished_at=table["finished_at"].cast(pa.int64()).to_numpy(),
    )


def _methods(table: pa.Table) -> tuple[tuple[tuple[str, int, str], ...], NDArray[np.int64]]:
    """Return the methods of the rows, and for each row the place of its method among them."""
    name, names = _codes(table["method"])
    options, texts = _codes(table["knobs"])
    versions, version = np.unique(table["method_version"].to_numpy(), return_inverse=True)
    if len(names) == len(texts) == len(versions) == 1:  # most parts
        return ((names[0], int(versions[0]), texts[0]),), np.zeros(len(table), np.int64)
    joint = (name * len(texts) + options) * len(versions) + version
    found, place = np.unique(joint, return_inverse=True)
    of_found = [divmod(each, len(versions)) for each in found.tolist()]
    methods = [
        (names[rest // len(texts)], int(versions[last]), texts[rest % len(texts)]) for rest, last in of_found
    ]
    return tuple(methods), place.astype(np.int64)


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """Return the codes of a column of words, and the words."""
    words = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return words.indices.to_numpy().astype(np.int64), words.dictionary.to_pylist()


def _values(column: pa.ChunkedArray) -> Column:
    """Return the values of a field: numbers, or texts as objects."""
    if not pa.types.is_string(column.type):
        return column.to_numpy()  # type: ignore[no-any-return]
    codes, words = _codes(column.dictionary_encode().unify_dictionaries())
    return np.array([*words, ""], object)[codes]
