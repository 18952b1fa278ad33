"""Rows that no method of this release can have stored: impossible answers or times, or unknown methods."""

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from privcore import METHODS, PROBLEMS, Problem
from privcore.answer import Status
from privcore.errors import PrivsweepError
from storage.layout import DAY
from storage.schema import object_in

FUTURE, UNCHECKED = "future", "unchecked"

LAST = 253_402_300_800_000_000
"""Microseconds from 1970 until the year 10,000, beyond the range of `datetime`."""


def doubts(problem: str, rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield the doubts about the rows of a part: the kind, and the predicate of a sentence about the part.

    Args:
        problem: Name of the problem of the part.
        rows: All of its columns and rows.
    """
    if row := too_late(rows):
        yield FUTURE, f"has {row}; correct the clock, or delete the part and run its sweep again."
    kind = PROBLEMS.get(problem)
    if kind is not None and (lacking := unchecked(kind, rows)):
        remedy = "delete the part unless a later release wrote it."
        yield UNCHECKED, f"has {lacking}, which this release cannot check; {remedy}"


def too_late(rows: pa.Table) -> str:
    """Return the first row that was finished more than a day after the time of this machine, or "".

    The clock of another machine may be off by up to a day, or be in another time zone by mistake.

    Args:
        rows: Rows with the columns `point_id` and `finished_at`.

    Returns:
        A clause such as "row 0123... finished on 2099-01-01, but this machine's clock shows 2026-11-23".
    """
    now = time.time()
    finished = rows["finished_at"].cast(pa.int64()).to_numpy()
    late = np.flatnonzero(finished > (now + DAY) * 1e6)
    if not late.size:
        return ""
    shown = [_day(int(finished[late[0]])), _day(int(now * 1e6))]
    point = rows["point_id"][int(late[0])].as_py()
    return f"row {point} finished on {shown[0]}, but this machine's clock shows {shown[1]}"


def impossible(rows: pa.Table) -> str:
    """Return a row that no method can have stored, as a clause, or "".

    Args:
        rows: Rows with any columns.

    Returns:
        A clause such as "a row with the bracket [3.0, 1.0] at confidence 1.0".
    """
    if "method_version" in rows.column_names and pa.types.is_integer(
        rows.schema.field("method_version").type
    ):
        versions = rows["method_version"].to_numpy()
        if (below := np.flatnonzero(versions < 1)).size:
            return f"a row of version {int(versions[below[0]])} of its method, and the first version is 1"
    if late_or_early := _impossible_time(rows):
        return late_or_early
    if not {"lower", "upper", "confidence"} <= set(rows.column_names):
        return ""
    lower, upper, confidence = (rows[name].to_numpy() for name in ("lower", "upper", "confidence"))
    right = (lower <= upper) & (confidence > 0.0) & (confidence <= 1.0)  # which is false for NaN
    wrong = np.flatnonzero(~right)
    if not wrong.size:
        return ""
    low, high, sure = (float(values[wrong[0]]) for values in (lower, upper, confidence))
    return f"a row with the bracket [{low!r}, {high!r}] at confidence {sure!r}"


def _impossible_time(rows: pa.Table) -> str:
    """Return a row whose time no clock shows, as a clause, or ""."""
    if "finished_at" not in rows.column_names or not pa.types.is_timestamp(
        rows.schema.field("finished_at").type
    ):
        return ""
    finished = rows["finished_at"].cast(pa.int64()).to_numpy()
    if (finished < 0).any():
        return "a row that was finished before 1970"
    if (late := finished[finished >= LAST]).size:
        return f"a row that was finished on {_day(int(late[0]))}, after the year 9999"
    return ""


def unchecked(kind: type[Problem], rows: pa.Table) -> str:
    """Return a status, method, option or value of the rows that this release lacks, as a clause, or "".

    A later release may have written such rows. Their answers cannot be computed again.

    Args:
        kind: The problem class of the rows.
        rows: Rows with the columns of `storage.schema.schema_for`.

    Returns:
        A clause such as "rows of version 9 of allocation.certified".
    """
    return next(_lacking(kind, rows), "")


def _lacking(kind: type[Problem], rows: pa.Table) -> Iterator[str]:
    for status in rows["status"].unique().to_pylist():
        if status not in set(Status):
            yield f"rows with the unknown status {str(status)[:60]!r}"
    used = rows.select(["method", "method_version", "knobs"]).group_by(["method", "method_version", "knobs"])
    for row in used.aggregate([]).to_pylist():
        name, method = row["method"][:60], METHODS.get(row["method"])
        if method is None:
            yield f"rows of the unknown method {name!r}"
            continue
        if not issubclass(kind, method.problems):
            yield f"rows of {name}, which does not answer {kind.name}"
        if row["method_version"] > method.version:
            yield f"rows of version {row['method_version']} of {name}"
        try:
            method.from_knobs(object_in(row["knobs"]))
        except (PrivsweepError, ValueError, TypeError):
            yield f"rows of {name} with the options {row['knobs'][:60]!r}"
    for name, parameter in kind.parameters.items():
        for value in rows[name].unique().to_pylist():
            try:
                parameter.check(value)
            except (PrivsweepError, ValueError, TypeError):
                yield f"rows with {name}={str(value)[:60]}"


def _day(microseconds: int) -> str:
    """Return the day of a time since 1970, also beyond the year 9999, which `datetime` lacks."""
    return str(np.datetime64(microseconds, "us").astype("datetime64[D]"))
