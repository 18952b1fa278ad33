"""Salvage from a damaged store: quarantine of files, and recovery of the points that their bytes prove."""

import hashlib
import secrets
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from privcore import Point, find, find_problem
from privcore.errors import PrivsweepError
from storage import disk, layout
from storage.errors import StoreError, reason
from storage.folder import Folder
from storage.parts import ids_hash
from storage.replacements import Replacement, reached, read_replacement, settled, successors
from storage.schema import object_in


def set_aside(place: Folder, paths: Iterable[Path]) -> Path:
    """Move files into a new folder below `quarantine`, which readers ignore; names and folders are kept.

    Args:
        place: The store.
        paths: Files or folders below it; missing ones are ignored.

    Returns:
        The new folder; it does not exist if nothing was moved.

    Raises:
        StoreError: The quarantine is a link, or the disk refused; files that were moved before stay there.
    """
    place.entries(layout.QUARANTINE)  # refuses a link, which may lead anywhere
    folder = place.root / layout.QUARANTINE / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
    touched: set[Path] = set()
    try:
        for path in paths:
            target = folder / path.relative_to(place.root)
            if path.exists() or path.is_symlink():
                disk.make_folder(target.parent)
                place.rename(path, target)
                touched |= {path.parent, target.parent}
        for each in sorted(touched):
            disk.sync_folder(each)
    except OSError as error:
        raise StoreError(f"Cannot move {place.shown(error.filename)}: {reason(error)}.") from error
    return folder


def untrue_records(place: Folder, besides: Collection[Path] = ()) -> list[Path]:
    """Return the records of replacements that lead to missing parts.

    Without these records, a manifest lists its own parts again, so that missing parts are reported.

    Args:
        place: The store.
        besides: Parts that are about to be quarantined, and count as missing.
    """
    return settled(place, lambda: _untrue_records(place, besides))


def _untrue_records(place: Folder, besides: Collection[Path]) -> list[Path]:
    made: dict[Path, Replacement] = {}
    for path in place.entries(layout.REPLACED):
        try:
            made[path] = read_replacement(place, path)
        except StoreError:  # `verify` reports it
            continue
    after = successors(made.values())
    held = {
        path: [place.data / n for n in reached(one.new, after) - after.keys()] for path, one in made.items()
    }
    return [
        path
        for path, parts in held.items()
        if not parts or not all(part.exists() and part not in besides for part in parts)
    ]


def told_points(path: Path) -> tuple[dict[str, Point], bool]:
    """Return the points of a damaged part that can be proved from its bytes.

    A row proves its point if the id computed from its fields equals the stored id, a hash of 128 bits. All
    points are known if also their ids match the hash of points in the part's name, or the part's bytes match
    the hash of bytes in it. Answers are not checked.

    Args:
        path: A part, or any other file or folder.

    Returns:
        The points by id, and whether they are all points of the part.
    """
    if not path.is_file():
        return {}, False
    try:
        # Page checksums prevent changed bytes from being decoded.
        file = pq.ParquetFile(path, page_checksum_verification=True)
        (name,) = set(file.read(columns=["problem"])["problem"].to_pylist())
        problem = find_problem(name)
        present = [field for field in problem.parameters if field in file.schema_arrow.names]
        rows = file.read(columns=["point_id", "method", "knobs", *present]).to_pylist()
        ids = [str(row["point_id"]) for row in rows]
    except (pa.ArrowException, OSError, ArithmeticError, ValueError, LookupError, TypeError, MemoryError):
        return {}, False
    points = {}
    for row in rows:
        fields = {field: row[field] for field in present if row[field] is not None}
        try:
            method = find(row["method"]).from_knobs(object_in(row["knobs"]))
            point = Point(problem=problem.from_fields(fields), method=method)
        except (PrivsweepError, ValueError, LookupError, TypeError, AttributeError):
            continue
        if point.id == row["point_id"]:
            points[point.id] = point
    named = path.name[:32], path.name[33:97]
    whole = ids_hash(ids) == named[0] or hashlib.sha256(path.read_bytes()).hexdigest() == named[1]
    return points, points.keys() == set(ids) and whole
