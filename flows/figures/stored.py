"""The stored answers for a figure, and the missing points."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import Point, Problem, Status
from privcore.answer import FAILURES
from privcore.parameter import Value
from storage import Store
from storage.schema import IMPORTED

Row = Mapping[str, Any]

_ERROR = re.compile(r"standard error ([0-9.]+)")


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The points of a figure, with their stored answers.

    Attributes:
        points: All points, each once.
        rows: Stored answers by point id.
    """

    points: tuple[Point, ...]
    rows: Mapping[str, Row]

    @classmethod
    def of(cls, sweeps: tuple[str, ...], wants: Callable[[Problem], bool], store: Store) -> "Stored":
        """Return the wanted points of some sweeps with their stored answers; the store need not exist."""
        points = {p.id: p for name in sweeps for p in expand(load(name).grids) if wants(p.problem)}
        return cls(points=tuple(points.values()), rows=_stored_rows(list(points.values()), store))

    @property
    def missing(self) -> Counter[str]:
        """Number of points that are not stored, by method."""
        return Counter(p.method.name for p in self.points if p.id not in self.rows)

    @property
    def failed(self) -> Counter[str]:
        """Number of points that failed, by method."""
        return Counter(
            p.method.name for p in self.points if p.id in self.rows and self.rows[p.id]["status"] in FAILURES
        )

    @property
    def tables(self) -> Counter[str]:
        """Number of points from each lookup table that nobody recomputed here."""
        return Counter(row["source"] for row in self.rows.values() if row["source"])

    def answers(
        self, problem: str, fields: Mapping[str, Value], method: str = ""
    ) -> Iterator[tuple[Mapping[str, Value], Row]]:
        """Yield the answered problems of a kind, each once, in the order of the sweeps.

        Args:
            problem: Name of the problem.
            fields: Required values of some of its fields.
            method: Name of the method; by default the first method of the sweeps.
        """
        seen: set[Problem] = set()
        for point in self.points:
            if (
                point.problem.name != problem
                or point.problem in seen
                or method not in ("", point.method.name)
            ):
                continue
            given = point.problem.as_fields()
            row = self.rows.get(point.id)
            if any(given[name] != value for name, value in fields.items()) or row is None:
                continue
            if row["status"] == Status.OK:
                seen.add(point.problem)
                yield given, row


def number(row: Row) -> float:
    """Return one number for an answer: its value, or the middle of its ends."""
    if row["value"] is not None:
        return float(row["value"])
    lower, upper = float(row["lower"]), float(row["upper"])
    return lower if lower == upper else 0.5 * (lower + upper)


def standard_error(row: Row) -> float:
    """Return the standard error that the detail of an estimate states, or 0.

    Example:
        >>> standard_error({"detail": "10 trials, standard error 0.0019, learning rate 0.01"})
        0.0019
    """
    found = _ERROR.search(row["detail"] or "")
    return float(found[1]) if found else 0.0


def _stored_rows(points: Sequence[Point], store: Store) -> dict[str, Row]:
    """Return the stored answers of points, by point id."""
    if not store.exists:
        return {}
    ids = ", ".join(f"'{point.id}'" for point in points)
    columns = f"point_id, lower, upper, value, status, detail, {IMPORTED} as source"
    query = f"select {columns} from results where point_id in ({ids})"
    return {row["point_id"]: row for row in store.sql(query).to_pylist()}
