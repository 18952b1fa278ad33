"""Ids of stored rows, computed again from their fields."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from privcore import PROBLEMS
from privcore.point import encoded, hashed
from privcore.problem import Problem
from storage.errors import StoreError
from storage.parts import ids_hash, problem_of
from storage.schema import object_in

_POINT = ("point_id", "problem_id", "method", "method_version", "knobs")


def misnaming(path: Path, rows: pa.Table) -> str:
    """Return the contradiction between the rows of a part and its name or their ids, or "".

    The ids of a problem that this release lacks cannot be computed, and are compared with the name only.

    Args:
        path: The part.
        rows: All of its columns and rows.
    """
    if ids_hash(rows["point_id"].to_pylist()) != path.name[:32]:
        return "has points that do not match the hash in its name"
    kind = PROBLEMS.get(problem_of(path))
    if kind is not None and (point := next(foreign_ids(kind, rows), "")):
        return f"has other fields in row {point} than the row's id"
    return ""


def foreign_ids(kind: type[Problem], rows: pa.Table) -> Iterator[str]:
    """Yield the ids of the points whose row has other fields, another method or another problem id.

    A row is compared without its values being checked, since an earlier release may have allowed values that
    this release refuses. Whether an answer is true cannot be seen from an id.

    Args:
        kind: The problem class of the rows.
        rows: Rows with the columns of `storage.schema.schema_for`.
    """
    fields = list(kind.parameters)
    defaults = kind.defaults()
    columns = [_values(rows[name]) for name in (*_POINT, *fields)]
    for point, problem, method, version, knobs, *values in zip(*columns, strict=True):
        given = {
            name: value
            for name, value in zip(fields, values, strict=True)
            if name not in defaults or defaults[name] != value
        }
        content = {"problem": kind.name, "fields": given}
        of_method = {"method": method, "version": version}
        try:
            if settings := object_in(knobs):
                of_method["knobs"] = settings
            right = hashed(encoded(content)) == problem and hashed(encoded({**content, **of_method})) == point
        except (ValueError, StoreError):  # options that are not JSON, or a number that JSON lacks
            right = False
        if not right:
            yield point


def _values(column: pa.ChunkedArray) -> list[object]:
    """Return the values of a column; a dictionary is decoded first, which is faster than row by row."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values: list[object] = column.to_pylist()
    return values
