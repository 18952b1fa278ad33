"""Compaction: many small parts of a problem become few large sorted parts; no row is lost or changed."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from privcore import PROBLEMS
from storage.errors import StoreError
from storage.manifest import (
    INCOMPLETE,
    Replacement,
    delete_replaced,
    lingering,
    manifests,
    reached,
    read_replacement,
    replacements,
    steadily,
    successors,
    write_manifest,
    write_replacement,
)
from storage.parts import MOST_BYTES, ROW_GROUP, parts, problem_of, publish, read_part
from storage.place import layout
from storage.place.folder import Folder
from storage.schema import IMPORTED, LONGEST_MARK, REPLACES_KEY, import_text
from storage.sql.views import CHOICE, fields_of, quoted, source_of

SMALL = ROW_GROUP
"""Number of rows below which a part is merged with others."""
LARGEST = 4 * ROW_GROUP
"""Most rows of a merged part, which is held in memory twice, about half a gigabyte."""


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Parts of a problem that were merged: their number, rows, and bytes before and after."""

    problem: str
    parts: int
    rows: int
    bytes_before: int
    bytes_after: int


def compact(
    place: Folder,
    *,
    small: int = SMALL,
    largest: int = LARGEST,
    watch: Callable[[Merged], None] = lambda _merged: None,
) -> list[Merged]:
    """Merge the small parts of each problem, sorted by its fields; every row keeps its bits.

    The merged part is written and read back, then the record of the replaced parts is written, then the old
    parts are deleted. If the process is killed at any instant, every row is still stored, and a second run
    continues. Several rows of one point are all kept, except that one is kept of rows which the order of the
    views distinguishes by their parts alone, and which no removal of an import would separate.

    Args:
        place: The store.
        small: Number of rows below which a part is merged.
        largest: Most rows of a merged part.
        watch: Function that is called with every merged part.

    Raises:
        StoreError: A part is damaged, or the disk refused; the sentence names the file.
    """
    place.check()
    steadily(place, lambda: finish(place))
    made: list[Merged] = []
    for portion in steadily(place, lambda: list(_portions(place, small, largest))):
        merged = _merge(place, portion)
        if merged:
            made.append(merged)
            watch(merged)
    return made


def finish(place: Folder) -> None:
    """Delete the old parts that a killed `compact` or `gc` had replaced but not deleted."""
    for replacement, held in lingering(place):
        for name in held:
            read_part(place, place.data / name, ["point_id"])  # raises unless the part exists and is sound
        delete_replaced(place, replacement)


def _portions(place: Folder, small: int, largest: int) -> Iterator[list[Path]]:
    """Yield groups of at least two parts to merge, each of one problem of this release."""
    known = {problem.name for problem in PROBLEMS}
    portion: list[Path] = []
    rows = bytes_ = 0
    for path in parts(place):
        count = _rows_of(place, path) if problem_of(path) in known else small
        if count >= small:
            continue
        size = path.stat().st_size
        too_large = rows + count > largest or bytes_ + size > MOST_BYTES // 2
        if portion and (too_large or problem_of(path) != problem_of(portion[0])):
            if len(portion) > 1:
                yield portion
            portion, rows, bytes_ = [], 0, 0
        portion.append(path)
        rows, bytes_ = rows + count, bytes_ + size
    if len(portion) > 1:
        yield portion


def _rows_of(place: Folder, path: Path) -> int:
    """Return the number of rows of a part, from its last bytes."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return len(read_part(place, path, ["point_id"]))  # raises an error that names the damage


def _merge(place: Folder, portion: Sequence[Path]) -> Merged | None:
    """Merge several parts into one; return None if another process replaced them first."""
    names = [str(path.relative_to(place.data)) for path in portion]
    try:
        tables = [read_part(place, path) for path in portion]
        before = sum(path.stat().st_size for path in portion)
    except (StoreError, FileNotFoundError):
        if all(path.exists() for path in portion):
            raise
        return None
    table = merged(tables, names)
    published = publish_checked(place, table, names)
    if published is None:
        return None
    made, size = published
    replacement = Replacement(old=tuple(sorted(names)), new=(str(made.relative_to(place.data)),))
    write_replacement(place, replacement)
    if not made.exists() and _counts(place, made) and len(_sources(table)) > 1:
        publish(place, named(table, names))  # withdrawn by a process that merged the same parts
    delete_replaced(place, replacement)
    return Merged(
        problem=problem_of(made),
        parts=len(portion),
        rows=len(table),
        bytes_before=before,
        bytes_after=size,
    )


def publish_checked(place: Folder, table: pa.Table, old: Sequence[str]) -> tuple[Path, int] | None:
    """Publish a table and read it back, before the parts that it replaces are deleted.

    Its bytes, and therefore its name, depend on the names of the old parts. So no part gets a name that was
    replaced before, and replacement records never lead in a circle. If an old part is gone meanwhile, its
    rows of lookup tables may have been removed on purpose, and a new part with such rows is withdrawn.

    Args:
        place: The store.
        table: The rows of the new part.
        old: Names of the old parts.

    Returns:
        The new part and its size in bytes, or None if another process has merged it already, or removed an
        old part; then nothing must be deleted, and the next compaction continues.

    Raises:
        StoreError: The disk refused, or returned different bytes.
    """
    removable = _sources(table) != {""}
    if removable and not _exist(place, old):
        return None
    path = publish(place, named(table, old))
    try:
        back, size = read_part(place, path), path.stat().st_size
    except (StoreError, FileNotFoundError):
        if path.exists():
            raise
        return None
    if not all(_plain(back[name]).equals(_plain(table[name])) for name in table.column_names):
        raise StoreError(f"{place.shown(path)} does not read back as it was written; nothing was deleted.")
    if removable and not _exist(place, old):
        _withdraw(place, path, named(table, old))
        return None
    return path, size


def named(table: pa.Table, old: Sequence[str]) -> pa.Table:
    """Return a table with a hash of the names of the parts that it replaces."""
    replaces = hashlib.blake2b("\n".join(sorted(old)).encode(), digest_size=16).hexdigest()
    return table.replace_schema_metadata({**table.schema.metadata, REPLACES_KEY: replaces})


def _sources(table: pa.Table) -> set[str]:
    """Return the lookup tables of rows, and "" if there are own rows."""
    return set(map(source_of, table["versions"].cast(pa.string()).unique().to_pylist()))


def _exist(place: Folder, names: Sequence[str]) -> bool:
    """Return whether all of these parts still exist, in a bucket as the server lists it."""
    place.refresh()
    return all((place.data / name).exists() for name in names)


def _withdraw(place: Folder, path: Path, table: pa.Table) -> None:
    """Delete a new part, unless another process counts on it.

    A process that merges the same parts publishes the same part. It writes its record, then looks for the
    part; here the part is deleted, then its record is looked for. So one of the two restores a part with rows
    that no removal of one lookup table would delete.
    """
    if _counts(place, path):
        return
    place.unlink(path)
    if _counts(place, path):
        publish(place, table)


def _counts(place: Folder, path: Path) -> bool:
    """Return whether a part holds the rows of replaced parts, and was not replaced itself."""
    name, made = str(path.relative_to(place.data)), replacements(place)
    return any(name in one.new for one in made) and not any(name in one.old for one in made)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column as strings, so that columns with different dictionaries compare."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def merged(tables: Sequence[pa.Table], names: Sequence[str]) -> pa.Table:
    """Return the rows of several parts in one table, sorted by fields, method and point.

    The same rows give the same table in any order of the parts.

    Args:
        tables: From `read_part`, all of one problem.
        names: The name of each part.
    """
    rows = pa.concat_tables(tables).unify_dictionaries()
    fields = fields_of(rows.schema)
    of_part = [pa.repeat(name, len(table)) for name, table in zip(names, tables, strict=True)]
    keys = rows.select([*fields, "method", "point_id", "status", "versions", "finished_at"])
    keys = keys.append_column("origin", pa.chunked_array(of_part))
    keys = keys.append_column("number", pa.array(range(len(rows)), pa.int64()))
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        connection.register("keys", keys)
        order = connection.sql(
            f"""
            select number from (
                select *, rank() over (partition by point_id order by {CHOICE}) as place, {IMPORTED} as source
                from (select *, '' as part from keys)
            )
            qualify row_number() over (partition by point_id, place, source order by origin, number) = 1
            order by {quoted(fields)}, method, point_id, place, source
            """
        ).to_arrow_table()
    table = rows.take(order["number"]).combine_chunks()
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):  # dictionary in the order of the rows
            words = table.column(place).cast(field.type.value_type).combine_chunks().dictionary_encode()
            table = table.set_column(place, field, words.cast(field.type))
    return table


# Removal of the rows of a lookup table: an import is taken back.


def remove(place: Folder, source: str) -> int:
    """Delete the rows that came from a lookup table, and return the number of points.

    A part with other rows is replaced, as by `gc`. Manifests that list a part with such rows are written
    again first, as incomplete and without counts. They no longer list a part without other rows, so that no
    reader misses it. The parts are listed again until such rows are gone, since a compaction at the same time
    may have copied the rows into a new part.

    Args:
        place: The store.
        source: Version of the lookup table.

    Raises:
        StoreError: The version is empty, the store has no rows of this table, or the disk refused.
    """
    if not source:  # which is the source of every row that was computed here
        raise StoreError("Expected the version of a lookup table, got an empty text.")
    place.check()
    removed: set[str] = set()
    while steadily(place, lambda: _remove(place, source, removed)):
        place.refresh()
    if not removed:
        raise StoreError(f"{place.name} has no rows{import_text([repr(source[:100])], ' {}')}.")
    return len(removed)


def _remove(place: Folder, source: str, removed: set[str]) -> bool:
    """Remove the rows from the listed parts, add their points to a set, and return whether there were any."""
    found = False
    for path in parts(place):
        table = read_part(place, path)
        texts = table["versions"].cast(pa.string()).to_pylist()
        ours = [source_of(text) == source[:LONGEST_MARK] for text in texts]
        if not any(ours):
            continue
        found = True
        name = str(path.relative_to(place.data))
        kept = table.filter(pa.array([not each for each in ours]))
        _interrupt(place, name, gone=not len(kept))
        if len(kept):
            published = publish_checked(place, kept, [name])
            if published is None:  # another process merged it meanwhile
                raise FileNotFoundError(path)
            replacement = Replacement(old=(name,), new=(str(published[0].relative_to(place.data)),))
            write_replacement(place, replacement)
            delete_replaced(place, replacement)
        else:
            _forget_records(place, name)
            place.unlink(path)
        removed.update(table["point_id"].filter(pa.array(ours)).to_pylist())
    return found


def _interrupt(place: Folder, name: str, *, gone: bool) -> None:
    """Write the manifests that list a part as incomplete, without counts, and without a part that is gone."""
    for sweep in manifests(place):
        if name in sweep.parts:
            rest = tuple(part for part in sweep.parts if part != name or not gone)
            write_manifest(place, replace(sweep, parts=rest, status=INCOMPLETE, counts={}))


def _forget_records(place: Folder, name: str) -> None:
    """Delete the records of replacements that lead to a part."""
    made = {path: read_replacement(place, path) for path in place.entries(layout.REPLACED)}
    after = successors(made.values())
    for path, one in made.items():
        if name in reached(one.new, after):
            place.unlink(path)
