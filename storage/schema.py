"""A row: parameters, answer and provenance; its columns are derived from the problem."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from privcore.answer import Answer
from privcore.parameter import Integer, Parameter, Real
from privcore.point import Point, encoded, hashed
from privcore.problem import Problem
from storage.errors import StoreError
from storage.origin import Provenance, provenance

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
