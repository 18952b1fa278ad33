"""Import of a lookup table into a store: every row is checked, and marked with its source."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from privcore import Answer, Direction, Point, Status, find, find_problem
from privcore.errors import PrivsweepError
from privcore.point import canonical, hashed
from privcore.problem import Problem
from storage.compaction import named
from storage.contradictions import remedy
from storage.errors import StoreError
from storage.folder import Folder
from storage.imported import marked, source_of
from storage.lookup_table import ANSWER, LookupTable, rows_of
from storage.parts import ROW_GROUP, parts, problem_of, publish, read_part
from storage.plausible import too_late
from storage.replacements import replacements
from storage.schema import object_in, problem_id

_LACKS = {Direction.UPPER: "lower end", Direction.LOWER: "upper end", Direction.ESTIMATE: "ends"}
_ENDS = ("lower", "upper")
_POINT = ("problem_id", "method", "method_version", "knobs")


def import_lookup_table(table: LookupTable, place: Folder, *, checked: bool = True) -> list[Path]:
    """Publish the rows of a lookup table as parts of a store; importing it again changes nothing.

    The rows are marked with the version of the table. Points that the store computed itself are left out.

    Args:
        table: The table.
        place: The store; it is created if it does not exist.
        checked: Whether to check and mark the rows. The shipped table is neither, as a part of the release.

    Returns:
        The parts.

    Raises:
        StoreError: A problem or method is of another release, a row is not an answer, does not match its id,
            has a time to come, or contradicts a row of the store, or the disk refused; parts published before
            the error stay.
    """
    if checked and (late := too_late(table.rows)):
        raise StoreError(
            f"Cannot import version {table.version}: its {late}; correct the clock or the table."
        )
    new = list(_parts(table, checked))
    place.refresh()  # a part that the bucket has lost is published again
    if checked:
        new = [rows for rows in (_without_own(rows, place, table.version) for rows in new) if len(rows)]
    replaced = [name for each in replacements(place) for name in each.old]
    # Equal bytes have equal names, and a part whose name was replaced before would be deleted.
    return [publish(place, named(rows, replaced) if replaced else rows) for rows in new]


def _without_own(rows: pa.Table, place: Folder, version: str) -> pa.Table:
    """Return the rows of points that the store did not compute itself.

    Raises:
        StoreError: A bracket of the store, computed or imported, and a new one contradict one another.
    """
    new = {row["point_id"]: row for row in rows.select(["point_id", *_ENDS, "confidence"]).to_pylist()}
    own = set()
    for stored in _answers(place, rows["problem"][0].as_py()):
        row, source = new.get(stored["point_id"]), source_of(stored["versions"])
        if row is None:
            continue
        apart = row["lower"] > stored["upper"] or stored["lower"] > row["upper"]
        if apart and row["confidence"] == 1.0:
            one, other = (f"[{each['lower']!r}, {each['upper']!r}]" for each in (row, stored))
            kept = f"computed {other}"
            if source:
                kept = f"has {other} from the lookup table {source}; {remedy([source])}"
            its_row = f"its row {row['point_id']} is {one}, but {place.name} {kept}"
            raise StoreError(f"Cannot import version {version}: {its_row}.")
        if not source:
            own.add(row["point_id"])
    return rows.filter(pa.array([point not in own for point in rows["point_id"].to_pylist()]))


def _answers(place: Folder, problem: str) -> Iterator[dict[str, Any]]:
    """Yield the stored answers of a problem class."""
    for path in parts(place):
        if problem_of(path) == problem:
            stored = read_part(place, path, ["point_id", "status", *_ENDS, "versions"]).to_pylist()
            yield from (row for row in stored if row["status"] == Status.OK)


def _parts(table: LookupTable, checked: bool) -> Iterator[pa.Table]:
    """Yield the rows of each problem class, with the columns and types of the class."""
    for name in sorted(set(table.rows["problem"].to_pylist())):
        try:
            kind = find_problem(name)
            rows = rows_of(table, kind)
            if checked:
                _check(kind, rows)
                rows = marked(rows, table.version)
        except (PrivsweepError, pa.ArrowException, LookupError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise StoreError(f"Cannot import {name} of version {table.version}: {reason}.") from error
        for start in range(0, len(rows), ROW_GROUP):
            yield rows.slice(start, ROW_GROUP)


def _check(kind: type[Problem], rows: pa.Table) -> None:
    """Raise an error for a row that is not an answer, or whose ids do not match its problem and method."""
    for row in rows.select([*kind.parameters, *_POINT, *ANSWER]).to_pylist():
        problem = kind.from_fields({name: row[name] for name in kind.parameters})
        point = canonical(problem, row["method"], row["method_version"], object_in(row["knobs"]))
        if (row["problem_id"], row["point_id"]) != (problem_id(problem), hashed(point)):
            raise StoreError(f"the id of row {row['point_id']} does not match its fields, {point}")
        Answer(**{name: row[name] for name in ("lower", "upper", "value", "confidence")})
        method = find(row["method"]).from_knobs(object_in(row["knobs"]))
        if not 1 <= row["method_version"] <= method.version:
            raise StoreError(f"row {row['point_id']} has {method.name} of version {row['method_version']}")
        # The claim of an older version is unknown, and its ends are not relied on.
        current, (lower, upper) = row["method_version"] == method.version, (row["lower"], row["upper"])
        if current and not method.direction.allows(lower, upper, kind.largest):
            lacks = f"{method.name} gives no {_LACKS[method.direction]}"
            raise StoreError(f"row {row['point_id']} has the ends [{lower!r}, {upper!r}], but {lacks}")
        Point(problem=problem, method=method)
