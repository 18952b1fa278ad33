"""Garbage collection: superseded rows, files of killed writers and old snapshots are found, then deleted."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from storage.compaction import finish, publish_checked
from storage.errors import StoreError, reason
from storage.manifest import (
    Replacement,
    delete_replaced,
    lingering,
    newest,
    reached,
    read_manifest,
    read_replacement,
    replacements,
    steadily,
    successors,
    write_replacement,
)
from storage.parts import parts, problem_of, read_part
from storage.place import layout
from storage.place.folder import Folder
from storage.schema import IMPORTED
from storage.sql import snapshot
from storage.sql.snapshot import snapshot_folder
from storage.sql.views import CHOICE, contradict

_COMPARED = ("point_id", "status", "versions", "lower", "upper", "value", "confidence", "finished_at")


@dataclass(frozen=True, kw_only=True)
class Idle:
    """The superseded rows of a part.

    Attributes:
        part: The part.
        rows: Numbers of the superseded rows, from 0.
        kept_in: Names of the parts with the rows that count instead.
    """

    part: Path
    rows: tuple[int, ...]
    kept_in: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Garbage:
    """Rows, parts and files that can be deleted without changing the results of any reader.

    Attributes:
        idle: Superseded rows, by part.
        replaced: Replaced parts that a killed `compact` or `gc` did not delete.
        files: Leftovers, old snapshots, records that no manifest needs, and, if requested, quarantined files.
    """

    idle: tuple[Idle, ...] = ()
    replaced: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def rows(self) -> int:
        """Number of superseded rows."""
        return sum(len(one.rows) for one in self.idle)


def find_garbage(
    place: Folder, *, older_than: float = layout.DAY, quarantine: float | None = None
) -> Garbage:
    """Return the garbage that `collect` would delete.

    Args:
        place: The store.
        older_than: Least age in seconds; a younger file may belong to a running writer. Copies of one row
            differ only in their parts, so a copy is deleted only if all copies are older.
        quarantine: Age in seconds above which quarantined files are deleted too, or None to keep them.

    Raises:
        StoreError: A part is damaged; repair first.
    """
    place.check()
    return steadily(place, lambda: _find(place, older_than, quarantine))


def _find(place: Folder, older_than: float, quarantine: float | None) -> Garbage:
    old = {place.data / name for replacement, _ in lingering(place) for name in replacement.old}
    found = parts(place)
    of_problem: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(set(found) - old):  # `collect` deletes the others first, so their rows do not count
        of_problem[problem_of(path)].append(path)
    idle = [one for those in of_problem.values() for one in _idle(place, those, time.time() - older_than)]
    files = place.leftovers(older_than) + _stale_snapshots(place)
    files += _needless_records(place, older_than)
    files += [p for p in place.entries(layout.RUNNING) if _age(p) > older_than]  # heartbeats of killed runs
    if quarantine is not None:
        files += [p for p in place.entries(layout.QUARANTINE) if _age(p) > quarantine]
    return Garbage(idle=tuple(idle), replaced=tuple(sorted(old.intersection(found))), files=tuple(files))


def _stale_snapshots(place: Folder) -> list[Path]:
    """Return the snapshots that no query of this user reads; a process that has one open can still use it.

    A log of changes next to a snapshot is foreign, since snapshots are built whole.
    """
    folders = {snapshot_folder(place), place.root / layout.CACHE}
    current = snapshot.sound(snapshot.contents(place))
    return [
        path
        for folder in sorted(each for each in folders if each is not None and not each.is_symlink())
        for path in sorted((*folder.glob("snapshot-*.duckdb"), *folder.glob("snapshot-*.duckdb.wal")))
        if path != current
    ]


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _idle(place: Folder, found: list[Path], limit: float) -> Iterator[Idle]:
    """Yield the superseded rows of one problem, part by part.

    An answer that contradicts the answer that counts is kept, as evidence of a wrong method. If an answer
    of a lookup table counts, the best answer of every other lookup table is kept: it counts after `remove`.
    """
    tables = []
    for path in found:
        table = read_part(place, path, _COMPARED)
        name = pa.repeat(str(path.relative_to(place.data)), len(table)).dictionary_encode()
        young = pa.repeat(path.stat().st_mtime > limit, len(table))
        number = pa.array(range(len(table)), pa.int64())
        for column, values in (("origin", name), ("young", young), ("number", number)):
            table = table.append_column(column, values)
        tables.append(table)
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        connection.register("rows", pa.concat_tables(tables))
        rows = connection.execute(
            f"""
            with several as (select point_id from rows group by point_id having count(*) > 1),
            placed as (
                select *, rank() over (partition by point_id order by {CHOICE}) as place, {IMPORTED} as source
                from (select *, '' as part from rows semi join several using (point_id))
            ),
            compared as (
                select *,
                       first_value(origin) over best as kept_in,
                       row_number() over best > 1 as copy,
                       source <> '' and first_value(source) over best <> '' and row_number() over (
                           partition by point_id, source order by place, origin, number
                       ) = 1 as of_other_import,
                       status = 'ok' and {contradict("{}", "first_value({}) over best")} as contradicts,
                       bool_or(young and place = 1) over (partition by point_id) as at_work
                from placed window best as (partition by point_id order by place, origin, number)
            )
            select origin, list(number order by number), list(distinct kept_in) from compared
            where (place > 1 or (copy and not at_work)) and not contradicts and not of_other_import
            group by origin order by origin
            """
        ).fetchall()
    for name, numbers, kept_in in rows:
        yield Idle(part=place.data / name, rows=tuple(numbers), kept_in=frozenset(kept_in))


def _needless_records(place: Folder, older_than: float) -> list[Path]:
    """Return the records of replacements that no manifest needs and whose old parts are gone."""
    made = {path: read_replacement(place, path) for path in place.entries(layout.REPLACED)}
    listed = [name for path in place.entries(layout.SWEEPS) for name in read_manifest(place, path).parts]
    needed = reached(listed, successors(made.values()))
    return [
        path
        for path, one in made.items()
        if _age(path) > older_than
        and not needed.intersection(one.old)
        and not any((place.data / name).exists() for name in one.old)
    ]


def collect(place: Folder, garbage: Garbage) -> None:
    """Delete the garbage from `find_garbage`; files that were deleted meanwhile are ignored.

    A part with superseded rows is replaced by a part without them, as in a compaction.

    Raises:
        StoreError: The disk refused; the sentence names the file.
    """
    steadily(place, lambda: finish(place))
    for one in [one for one in garbage.idle if _is_held(place, one)]:
        _drop(place, one)
    stale = steadily(place, lambda: _stale_snapshots(place)) if garbage.idle else []
    for path in (*garbage.files, *stale):
        try:
            place.remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"Cannot delete {place.shown(path)}: {reason(error)}.") from error


def _is_held(place: Folder, idle: Idle) -> bool:
    """Return whether the rows that count instead are still in other parts after changes meanwhile."""
    data = place.data
    name = str(idle.part.relative_to(data))
    now = newest(idle.kept_in - {name}, replacements(place))
    return name not in now and all((data / other).exists() for other in now)


def _drop(place: Folder, idle: Idle) -> None:
    """Replace a part by a part without its superseded rows, or delete it if no rows remain.

    A part that is already gone is ignored.
    """
    try:
        table = read_part(place, idle.part)
    except StoreError:
        if idle.part.exists():
            raise
        return
    data = place.data
    name = str(idle.part.relative_to(data))
    dropped = set(idle.rows)
    kept = [number for number in range(len(table)) if number not in dropped]
    new = set(idle.kept_in) - {name}
    if kept:
        published = publish_checked(place, table.take(kept), [name])
        if published is None:
            return
        new.add(str(published[0].relative_to(data)))
    replacement = Replacement(old=(name,), new=tuple(sorted(new)))
    write_replacement(place, replacement)
    delete_replaced(place, replacement)
