"""Records of replaced parts, which `compact` and `gc` write before they delete the old parts."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from storage import disk, layout
from storage.errors import DamagedError, StoreError, reason
from storage.folder import Folder
from storage.parts import is_name
from storage.schema import SCHEMA_VERSION

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
    path = place.root / layout.REPLACED / f"{_hash(content)}.json"
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
    if _hash(content) != path.stem:
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


def _hash(content: bytes) -> str:
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
