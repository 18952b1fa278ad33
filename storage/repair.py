"""Salvage from a damaged store: files set aside, and the points that their bytes still prove."""

import hashlib
import json
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


def set_aside(place: Folder, paths: Iterable[Path]) -> Path:
    """Move files into a new folder below `quarantine`, where no reader looks; names and folders are kept.

    Args:
        place: The store.
        paths: Files or folders below it; one that is gone already is no error.

    Returns:
        The new folder; it does not exist where nothing was moved.

    Raises:
        StoreError: The disk refused; files that were moved stay where they are.
    """
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
    """Return the records of replacements that lead to parts which are not there.

    Without them, a manifest lists its own parts again, so that those which are missing are missed.

    Args:
        place: The store.
        besides: Parts that are about to be moved away.
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
    """Return the points of a part whose bytes cannot be trusted, as far as they prove themselves.

    A row proves its point if the id of what its fields say is the id that it carries: 128 bits of a hash. All
    points are known if their ids also make up the hash of points in the part's name, or its bytes the one of
    bytes. Answers are not looked at.

    Args:
        path: A part, or anything else.

    Returns:
        The points by id, and whether they are all.
    """
    if not path.is_file():
        return {}, False
    try:
        # Page checksums keep changed bytes from being decoded.
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
            method = find(row["method"]).from_knobs(json.loads(row["knobs"]))
            point = Point(problem=problem.from_fields(fields), method=method)
        except (PrivsweepError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue
        if point.id == row["point_id"]:
            points[point.id] = point
    named = path.name[:32], path.name[33:97]
    whole = ids_hash(ids) == named[0] or hashlib.sha256(path.read_bytes()).hexdigest() == named[1]
    return points, points.keys() == set(ids) and whole
