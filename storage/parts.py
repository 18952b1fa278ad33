"""A part: one immutable Parquet file, named by its points and its bytes, published whole."""

import errno
import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from privcore import METHODS, PROBLEMS, Problem
from privcore.answer import Status
from privcore.errors import PrivsweepError
from privcore.point import encoded, hashed
from storage.errors import DamagedError, StoreError, reason
from storage.place import layout
from storage.place.folder import Folder
from storage.place.layout import DAY
from storage.schema import PROBLEM_KEY, RESULTS, conform, object_in, refuse_other_text

# Rows that no method of this release can have stored: impossible answers or times, or unknown methods.

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


ROW_GROUP = 122_880
MOST_BYTES = 2**31
"""Most bytes of a part, which is whole in memory while it is written or read."""
NUMBERS = ("lower", "upper", "value", "confidence")
"""Columns in which NaN is refused, since it would pass comparisons and reach a bracket."""

_REMEDY = "`privsweep repair` will compute its points again"
_FOLDER = re.compile(r"problem=([a-z][a-z0-9-]*)")
_NAME = re.compile(r"([0-9a-f]{32})-([0-9a-f]{64})\.parquet")


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A part that is not written yet: its name relative to the data folder, and its bytes."""

    name: str
    content: bytes


def publish(place: Folder, table: pa.Table) -> Path:
    """Write a table as a part of the store; writing it again changes nothing.

    Args:
        place: The store; it is created if it does not exist.
        table: Rows of one problem class, from `storage.schema.to_table`.

    Returns:
        The part's path, `data/problem=<name>/<hash of point ids>-<sha256 of bytes>.parquet` below the root.

    Raises:
        StoreError: The store is of a newer version, or the disk refused; no partial file remains.
        ValueError: The table is not from `to_table`, is empty, or has NaN in its answers.
    """
    return publish_packed(place, pack(table))


def pack(table: pa.Table) -> Packed:
    """Return a table as a part that is ready to be published.

    Args:
        table: Rows of one problem class, from `storage.schema.to_table`.

    Raises:
        ValueError: The table is not from `to_table`, is empty, has NaN in its answers, or is too large.
    """
    problem = (table.schema.metadata or {}).get(PROBLEM_KEY, b"").decode()
    if not problem or table.num_rows == 0:
        raise ValueError(f"Expected a table from to_table with at least one row, got {table.num_rows} rows.")
    if name := _with_nan(table):
        raise ValueError(f"Expected no NaN in the column {name}.")
    content = _to_bytes(table)
    if len(content) > MOST_BYTES:
        raise ValueError(f"Expected a part of at most {MOST_BYTES} bytes, got {len(content)}.")
    file = f"{ids_hash(table['point_id'].to_pylist())}-{hashlib.sha256(content).hexdigest()}.parquet"
    return Packed(name=f"problem={problem}/{file}", content=content)


def publish_packed(place: Folder, packed: Packed) -> Path:
    """Write a packed part and return its path; writing it again changes nothing.

    Args:
        place: The store; it is created if it does not exist.
        packed: The part, from `pack` in this or another process.

    Raises:
        StoreError: The store is of a newer version, or the disk refused; no partial file remains.
    """
    place.create()
    place.check_mark()
    path = place.data / packed.name
    if not (path.exists() and path.stat().st_size == len(packed.content)):
        place.write(path, packed.content)
    return path


def _with_nan(table: pa.Table) -> str:
    """Return the name of a column that has NaN, or ""."""
    import pyarrow.compute as pc  # slow to import, and not needed by lookups

    return next(
        (
            field.name
            for field in table.schema
            if pa.types.is_floating(field.type) and pc.any(pc.is_nan(table[field.name])).as_py()
        ),
        "",
    )


def _to_bytes(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=ROW_GROUP,
        compression="zstd",
        compression_level=3,
        use_dictionary=[name for name in table.column_names if name not in RESULTS],
        use_byte_stream_split=list(RESULTS),
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())


def ids_hash(ids: Sequence[str]) -> str:
    """Return BLAKE2b-128 of the sorted point ids, 32 hexadecimal digits, which identifies a part's points."""
    return hashlib.blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()


def parts(place: Folder) -> list[Path]:
    """Return all parts of a store, sorted by path.

    Raises:
        StoreError: A file or folder among them is not a part.
    """
    found, foreign = survey(place)
    if foreign:
        raise StoreError(f"{foreign[0]} is not part of the store; `privsweep repair` will quarantine it.")
    return found


def survey(place: Folder) -> tuple[list[Path], list[Path]]:
    """Return the parts and the foreign entries of the data folder, both sorted.

    Names that begin with a dot are ignored.
    """
    while True:
        replaced = place.entries(layout.REPLACED)
        listed = _listed(place)
        # A listing during a replacement may lack both the new part and an old one.
        if place.entries(layout.REPLACED) == replaced:
            return listed


def _listed(place: Folder) -> tuple[list[Path], list[Path]]:
    """Return parts and foreign entries of one listing of the data folder."""
    found: list[Path] = []
    foreign: list[Path] = []
    for folder in place.entries(layout.DATA):
        if not _FOLDER.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
            foreign.append(folder)
            continue
        for file in place.entries(f"{layout.DATA}/{folder.name}"):
            (found if _NAME.fullmatch(file.name) and not layout.is_no_file(file) else foreign).append(file)
    return found, foreign


def is_name(name: object) -> bool:
    """Return whether `name` can be a part's name relative to the data folder; a path outside it cannot."""
    folder, _, file = name.partition("/") if isinstance(name, str) else ("", "", "")
    return bool(_FOLDER.fullmatch(folder) and _NAME.fullmatch(file))


def problem_of(part: Path) -> str:
    """Return the name of the problem whose rows a part holds."""
    return part.parent.name.removeprefix("problem=")


def read_part(place: Folder, path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a part, after comparing its bytes with the SHA-256 in its name.

    Args:
        place: The store.
        path: A part.
        columns: The columns to read, or None for all.

    Raises:
        DamagedError: Its bytes, columns or rows contradict its name or folder; the sentence names the part.
        StoreError: The part is missing, of a newer version, or has a column unknown to this release.
    """
    import pyarrow.parquet as pq  # slow to import, and not needed by lookups

    match = _NAME.fullmatch(path.name)
    shown, problem = place.shown(path), problem_of(path)
    try:
        content = layout.content_of(path, MOST_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise DamagedError(f"{shown} is damaged: {reason(error)}; {_REMEDY}.") from error
        raise StoreError(f"Cannot read {shown}: {reason(error)}.") from error
    if match is None or hashlib.sha256(content).hexdigest() != match[2]:
        raise DamagedError(f"{shown} is damaged: its bytes do not match the SHA-256 in its name; {_REMEDY}.")
    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        schema = file.schema_arrow
        _check_schema(shown, problem, schema)
        table = file.read(
            columns=list({*columns, "problem"}) if columns is not None else None,
            use_threads=len(content) > 1_000_000,  # for small parts, threads take longer
        )
        refuse_other_text(shown, table)
        _check_problem(shown, problem, table)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DamagedError(
            f"{shown} is not a readable Parquet file: {str(error).splitlines()[0][:200]}."
        ) from error
    if columns is not None:
        table = table.select([name for name in table.column_names if name in columns])
    table = conform(shown, problem, table, columns)
    if name := _with_nan(table):
        raise DamagedError(f"{shown} has NaN in the column {name}; `privsweep repair` will quarantine it.")
    if row := impossible(table):
        raise DamagedError(f"{shown} has {row}; `privsweep repair` will quarantine it.")
    return table


def _check_schema(shown: str, expected: str, schema: pa.Schema) -> None:
    """Refuse a part of a newer version, of another problem than its folder, or with a column twice."""
    metadata = schema.metadata or {}
    layout.refuse_newer(layout.version_in(metadata), shown)
    problem = metadata.get(PROBLEM_KEY, b"").decode(errors="replace")
    if problem != expected:
        raise DamagedError(
            f"{shown} holds rows of {problem[:60] or 'an unnamed problem'} in the folder of {expected}."
        )
    if twice := [name for name, times in Counter(schema.names).items() if times > 1]:
        raise DamagedError(f"{shown} has the column {twice[0][:60]} more than once.")


def _check_problem(shown: str, expected: str, table: pa.Table) -> None:
    """Refuse rows whose column `problem` has another name than the folder, since ids do not depend on it."""
    if "problem" not in table.column_names:
        return  # only in a part without results
    if other := [name for name in table["problem"].unique().to_pylist() if name != expected]:
        raise DamagedError(
            f"{shown} holds rows of {str(other[0])[:60]!r} in the folder of {expected}; "
            "`privsweep repair` will quarantine it."
        )


# Ids of stored rows, computed again from their fields.

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
