"""A row: parameters, answer and provenance; its columns are derived from the problem."""

import json
import os
import platform
import subprocess
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa

from privcore import PROBLEMS, Problem
from privcore.answer import Answer
from privcore.parameter import Choice, Integer, Parameter, Real, Value
from privcore.point import Point, encoded, hashed
from storage.errors import DamagedError, StoreError

# The marks of imported rows: a key in the column `versions`, a table of SQL, and words in answers. Earlier
# releases read rows with this key, and `compact` and `gc` keep it.

IMPORTS = "imported"
"""The key; name, in SQL, of the table of the ids of such rows with their lookup tables; and a key of JSON."""

LONGEST_MARK = 100
"""Most characters of a mark that are read: the version of a lookup table is shorter, unless it is forged."""

MARK = f"""[{{,]"{IMPORTS}":"([^"]{{1,{LONGEST_MARK}}})"""
"""Regular expression of the mark of an imported row, in its column `versions`; its group is the lookup table.

SQL and Python read marks with this expression alone, so they agree on every text. In JSON without spaces, as
`table import` writes it, it finds keys only: a quotation mark within a key or value follows a backslash.
"""

MARKED = f"""(contains(versions::varchar, '"{IMPORTS}":"') and regexp_matches(versions::varchar, '{MARK}'))"""
"""Condition that a row was imported from a lookup table; the search for a text alone is faster."""

IMPORTED = f"""regexp_extract(versions::varchar, '{MARK}', 1)"""
"""Lookup table from which a row was imported, or an empty text."""

IMPORTED_ROWS = f"{IMPORTS} as select point_id, {IMPORTED} as source from results where {MARKED}"
"""Definition of this table."""

NOT_RECOMPUTED = "imported and not recomputed"
"""Kind of a bound with an end from a lookup table that somebody else computed, in place of `proved`."""


def tables_text(tables: Collection[str]) -> str:
    """Return the clause that names lookup tables, or ""."""
    return f", from the lookup table {' and '.join(tables)}" if tables else ""


def origin_text(tables: Collection[str], before: str = "", after: str = "") -> str:
    """Return the clause that an end was imported, and from where, between two texts; "" without tables."""
    return f"{before}{NOT_RECOMPUTED}{tables_text(tables)}{after}" if tables else ""


def import_text(tables: Collection[str], form: str = ", {}") -> str:
    """Return the clause about the published tables behind a method or a row, or "".

    Example:
        >>> import_text(["2026.11.23-c8364101"]), import_text([], " ({})")
        (', imported from the table 2026.11.23-c8364101', '')
    """
    return form.format(f"imported from the table {' and '.join(tables)}") if tables else ""


def import_content(tables: Collection[str]) -> dict[str, Any]:
    """Return the entry of JSON about published tables, with counts if these are given; empty without any."""
    return {IMPORTS: tables if isinstance(tables, dict) else list(tables)} if tables else {}


# The origin of an answer: commit of the code, versions of packages, and machine.

BUILT = "built.json"
"""File of this package, in a wheel or sdist, with the commit that it was built from: `deploy/built.py`."""

_PACKAGES = ("privsweep", "numpy", "scipy", "numba", "dp-accounting", "jax", "optax", "scikit-learn")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The origin of an answer.

    Attributes:
        git_commit: Commit of the checkout, or that the installed package was built from; or `unknown`.
        git_dirty: Whether the code differed from that commit; None for an installed package, whose files
            nothing compares with the commit.
        versions: Versions of the packages that matter, as JSON.
        host: Machine that computed it.
    """

    git_commit: str
    git_dirty: bool | None
    versions: str
    host: str


@cache
def provenance() -> Provenance:
    """Return commit, package versions and host of this process, determined once."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    commit, dirty = _commit_of(Path(__file__).parent)
    return Provenance(
        git_commit=commit,
        git_dirty=dirty,
        versions=json.dumps(versions, sort_keys=True, separators=(",", ":")),
        host=platform.node() or "unknown",
    )


def commit_text(commit: str, dirty: bool | None) -> str:
    """Return a commit in words that claim nothing about files that were not compared with it.

    Example:
        >>> commit_text("c0ffee", False), commit_text("c0ffee", True), commit_text("c0ffee", None)
        ('c0ffee', 'c0ffee, with changes', 'built from c0ffee')
    """
    if dirty is None and not commit.endswith("unknown"):
        return f"built from {commit}"
    return f"{commit}, with changes" if dirty else commit


def _commit_of(package: Path) -> tuple[str, bool | None]:
    """Return the commit of the code, and whether the code differs from it, or None if that is unknown."""
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        # Installed outside of its own repository; a container image names its commit in the environment.
        file = package / BUILT
        built = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        commit = os.environ.get("PRIVSWEEP_COMMIT") or built.get("commit", "unknown")
        return commit, True if built.get("dirty") else None
    commit = _git(package, "rev-parse", "HEAD")
    changes = _git(package.parent, "status", "--porcelain", "--", "privcore", "storage", "tasks", "flows")
    return (commit or "unknown"), bool(changes)


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command, or None if it fails or git is missing."""
    # A hook's GIT_DIR would point elsewhere; the optional lock would disturb a commit that is in progress.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
        "GIT_OPTIONAL_LOCKS": "0"
    }
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


SCHEMA_VERSION = 1
"""Increased if a reader of the old version could misread the new version."""

VERSION_KEY = b"privsweep.schema_version"
PROBLEM_KEY = b"privsweep.problem"
REPLACES_KEY = b"privsweep.replaces"
"""Key, in a part that `compact` or `gc` made, of a hash of the names of the parts that it replaces."""

_WORD = pa.dictionary(
    pa.int32(), pa.string()
)  # few distinct values; hive readers use the same type for `problem=`
_BEFORE = (
    ("point_id", pa.string(), "Hash of problem, method, version and knobs"),
    ("problem_id", pa.string(), "Hash of the problem and its fields, the same for every method"),
    ("problem", _WORD, "Name of the problem"),
    ("method", _WORD, "Name of the method"),
    ("method_version", pa.int64(), "Version of the method; numbers change only with it"),
    ("knobs", _WORD, "The method's settings that differ from their defaults, as JSON"),
)
_AFTER = (
    ("lower", pa.float64(), "Lower end of the enclosure, rounded down"),
    ("upper", pa.float64(), "Upper end of the enclosure, rounded up"),
    ("value", pa.float64(), "Estimate without proof, or null"),
    ("confidence", pa.float64(), "Probability of the enclosure; 1 is a proof"),
    ("status", _WORD, "How the evaluation ended"),
    ("detail", pa.string(), "How the answer was reached, or why there is none"),
    ("seconds", pa.float64(), "Wall time of the evaluation in seconds"),
    ("cpu_seconds", pa.float64(), "Processor time of the evaluation in seconds"),
    ("attempt", pa.int64(), "Which attempt this was, from 1"),
    ("finished_at", pa.timestamp("us", tz="UTC"), "When the evaluation ended"),
    ("sweep", _WORD, "Name of the sweep that asked for it"),
    ("git_commit", _WORD, "Commit of the code, or unknown"),
    (
        "git_dirty",
        pa.bool_(),
        "Whether the code differed from that commit; null if not compared",
    ),
    ("versions", _WORD, "Versions of the packages that matter, as JSON"),
    ("host", _WORD, "Machine that computed it"),
)
BOOKKEEPING = frozenset(name for name, _, _ in (*_BEFORE, *_AFTER))
_NULLABLE = ("value", "git_dirty")
RESULTS = ("lower", "upper", "value", "seconds", "cpu_seconds")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A point with its answer, before it is stored.

    Attributes:
        point: The problem and the method.
        answer: The answer of the method.
        seconds: Wall time in seconds.
        cpu_seconds: Processor time in seconds.
        attempt: Number of the attempt, from 1.
        finished_at: End of the evaluation, in UTC.
        sweep: Name of the sweep that has the point.
    """

    point: Point
    answer: Answer
    seconds: float
    cpu_seconds: float
    attempt: int
    finished_at: datetime
    sweep: str


def problem_id(problem: Problem) -> str:
    """Return BLAKE2b-128 of the problem's name and fields, 32 hexadecimal digits.

    Fields at their defaults are left out, as in a point's id, so that a field can be added later.
    """
    content = {"problem": problem.name, "fields": problem.identity()}
    return hashed(encoded(content))


def schema_for(problem: type[Problem]) -> pa.Schema:
    """Return the columns of a problem's rows, with domain, unit and meaning in the metadata.

    Args:
        problem: A registered problem class.
    """
    columns = [
        pa.field(name, kind, nullable=name in _NULLABLE, metadata={"meaning": meaning})
        for name, kind, meaning in _BEFORE
    ]
    columns += [
        pa.field(
            name,
            _type_of(parameter),
            nullable=False,
            metadata={"domain": parameter.domain, "unit": parameter.unit, "meaning": parameter.meaning},
        )
        for name, parameter in problem.parameters.items()
    ]
    columns += [
        pa.field(name, kind, nullable=name in _NULLABLE, metadata={"meaning": meaning})
        for name, kind, meaning in _AFTER
    ]
    return pa.schema(columns, metadata={VERSION_KEY: str(SCHEMA_VERSION), PROBLEM_KEY: problem.name})


def _type_of(parameter: Parameter) -> pa.DataType:
    if isinstance(parameter, Real):
        return pa.float64()
    return pa.int64() if isinstance(parameter, Integer) else pa.string()


def to_table(rows: Sequence[Row], code: Provenance | None = None) -> pa.Table:
    """Return rows of one problem class as an Arrow table, with this process's provenance.

    Args:
        rows: At least one row; all of the same problem class.
        code: Provenance of the code if another machine sent it; the host is always this machine.

    Raises:
        ValueError: The rows are empty, or of several problem classes.
    """
    kinds = {type(row.point.problem) for row in rows}
    if len(kinds) != 1:
        raise ValueError(f"Expected rows of one problem class, got {sorted(k.name for k in kinds)}.")
    schema = schema_for(kinds.pop())
    of_row: dict[str, Callable[[Row], Any]] = {
        "point_id": lambda r: r.point.id,
        "problem_id": lambda r: problem_id(r.point.problem),
        "problem": lambda r: r.point.problem.name,
        "method": lambda r: r.point.method.name,
        "method_version": lambda r: r.point.method.version,
        "knobs": lambda r: json.dumps(r.point.method.identity(), sort_keys=True, separators=(",", ":")),
        "status": lambda r: r.answer.status.value,
    }
    ours = provenance()
    origin = asdict(replace(code, host=ours.host) if code else ours)
    columns = []
    for field in schema:
        name = field.name
        if name in origin:
            values = [origin[name]] * len(rows)
        elif name in of_row:
            values = [of_row[name](row) for row in rows]
        elif name in Answer.__dataclass_fields__:
            values = [getattr(row.answer, name) for row in rows]
        elif name in Row.__dataclass_fields__:
            values = [getattr(row, name) for row in rows]
        else:
            values = [getattr(row.point.problem, name) for row in rows]
        columns.append(pa.array(values, type=field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def object_in(text: str) -> dict[str, Any]:
    """Return the JSON object in the column `knobs` or `versions` of a row.

    Raises:
        StoreError: The text is not a JSON object, or is nested too deeply.
    """
    try:
        content = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise StoreError(f"Expected a JSON object, got {str(text)[:60]!r}.")
    return content


# The columns of a part, in the names, words and defaults of this release.


def conform(shown: str, of: str, table: pa.Table, wanted: Sequence[str] | None) -> pa.Table:
    """Return the rows of a part with the columns of this release.

    A problem unknown to this release keeps its columns. An unknown column is refused, since it could change
    the meaning of a row.

    Args:
        shown: Name of the part, for messages.
        of: Name of the problem.
        table: The rows, with the columns of the part.
        wanted: The columns to return, or None for all.

    Raises:
        DamagedError: A column is missing, of another type, or without a value.
        StoreError: A column is unknown to this release.
    """
    problem = PROBLEMS.get(of)
    if problem is None:
        return table
    schema = schema_for(problem)
    table = _without_former(table, problem)
    if wanted is not None:
        schema = pa.schema([schema.field(name) for name in wanted], metadata=schema.metadata)
    if table.schema == schema:
        return table
    for name in table.column_names:
        if name not in schema.names:
            raise StoreError(
                f"{shown} has the column {name[:60]}, which this release cannot read: update privsweep."
            )
    defaults = problem.defaults()
    columns = [_column(shown, table, field, defaults.get(field.name)) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def refuse_other_text(shown: str, table: pa.Table) -> None:
    """Raise `DamagedError` for a part with text that is not UTF-8."""
    if name := not_utf8(table):
        raise DamagedError(
            f"{shown} has text that is not UTF-8 in the column {name[:60]}; "
            "`privsweep repair` will quarantine it."
        )


def not_utf8(table: pa.Table) -> str:
    """Return the name of a column with text that is not UTF-8, or "".

    Parquet stores any bytes as text, but neither Python nor DuckDB can read bytes that are not UTF-8.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_primitive(column.type):  # numbers and times have no text
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                return str(name)
    return ""


def _without_former(table: pa.Table, problem: type[Problem]) -> pa.Table:
    """Return the table with the words of this release instead of those of earlier releases."""
    for place, field in enumerate(table.schema):
        parameter = problem.parameters.get(field.name)
        if isinstance(parameter, Choice) and parameter.former:
            former = dict(parameter.former)
            words = [former.get(word, word) for word in table.column(place).to_pylist()]
            table = table.set_column(place, field, pa.chunked_array([pa.array(words, field.type)]))
    return table


def _column(shown: str, table: pa.Table, field: pa.Field, default: Value | None) -> pa.ChunkedArray:
    """Return one column of this release; missing values of a field become its default.

    Parts older than the field lack the column, and tools that merge parts by name leave nulls.
    """
    if field.name in table.column_names:
        column = table[field.name]
        if column.type != field.type:
            raise DamagedError(
                f"{shown} has the column {field.name} as {str(column.type)[:60]}, expected {field.type}."
            )
    elif default is not None or field.nullable:
        column = pa.chunked_array([pa.nulls(len(table), field.type)])
    else:
        raise DamagedError(f"{shown} lacks the column {field.name}.")
    if default is not None:
        column = column.fill_null(pa.scalar(default, field.type))
    if column.null_count and not field.nullable:
        raise DamagedError(f"{shown} has rows without a value in the column {field.name}.")
    return column
