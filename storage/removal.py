"""Removal of imported rows: an import is taken back."""

from dataclasses import replace

import pyarrow as pa

from storage import layout
from storage.compaction import publish_checked
from storage.errors import StoreError
from storage.folder import Folder
from storage.imported import source_of
from storage.manifest import INCOMPLETE, manifests, write_manifest
from storage.marks import LONGEST_MARK
from storage.parts import parts, read_part
from storage.replacements import (
    Replacement,
    delete_replaced,
    reached,
    read_replacement,
    steadily,
    successors,
    write_replacement,
)


def remove(place: Folder, source: str) -> int:
    """Delete the rows that were imported from a lookup table, and return the number of points.

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
        raise StoreError(f"{place.name} has no rows imported from the lookup table {source[:100]!r}.")
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
