"""Where the ends of an answer come from: the method, the row, the commit and the time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from flows.answers.ask import Asked
from flows.answers.sourced import Sourced, difference
from privcore import METHODS, Method, Point, Problem
from storage import Found, open_store, provenance
from storage.schema import problem_id
from storage.views import view_name

ENDS = ("lower", "upper")

_COLUMNS = ("knobs", "detail", "point_id", "sweep", "git_commit", "git_dirty", "finished_at")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where one end of a bracket comes from.

    Attributes:
        ends: `lower`, `upper` or both.
        problem: The problem that was answered: the question itself, or one that bounds it.
        method: Name of the method.
        version: Version of the method.
        knobs: The method's settings that differ from their defaults, as JSON.
        detail: How the method reached its answer.
        point_id: Id of the row.
        sweep: Name of the sweep that stored it; None where it was computed now.
        git_commit: Commit of the code, or `unknown`.
        git_dirty: Whether the code differed from that commit.
        finished_at: When it was computed, in UTC.
    """

    ends: tuple[str, ...]
    problem: Problem
    method: str
    version: int
    knobs: str
    detail: str
    point_id: str
    sweep: str | None
    git_commit: str
    git_dirty: bool
    finished_at: datetime

    @property
    def claims(self) -> "type[Method] | None":
        """The method's class; None where this release does not have it."""
        return METHODS.get(self.method)

    def only(self, end: str) -> "Origin":
        """Return the origin of this end alone."""
        return replace(self, ends=(end,))

    def reasons(self, question: Problem) -> dict[str, str]:
        """Return why what was answered bounds the question: a proof for each field that differs."""
        if type(self.problem) is not type(question):
            return {}
        known = type(question).monotone
        return {
            name: known[name].proof
            for name in difference(question, self.problem.as_fields())
            if name in known
        }


def origins_of(answer: Sourced, store: Path) -> tuple[Origin, ...]:
    """Return where the ends of an answer come from; nothing about an end about which nothing is proved.

    Args:
        answer: An answer with the status `ok`.
        store: Where it comes from, unless it was computed.
    """
    if isinstance(answer.bracket, Asked):
        return origins_of_run(answer.bracket)
    return _merged(list(_stored_origins(answer.problem, answer.bracket, store)))


def origins_of_run(asked: Asked, ends: tuple[str, ...] = ENDS) -> tuple[Origin, ...]:
    """Return where the ends of an answer come from that was computed now.

    Args:
        asked: The answer.
        ends: Which of its ends matter.
    """
    here, now = provenance(), datetime.now(UTC)
    origins = []
    for end in ends:
        by = asked.lower_by if end == "lower" else asked.upper_by
        for reply in [reply for reply in asked.replies if reply.method.name == by][:1]:
            point = Point(problem=asked.problem, method=reply.method)
            origin = Origin(
                ends=(end,),
                problem=asked.problem,
                method=by,
                version=reply.method.version,
                knobs=json.dumps(reply.method.identity()),
                detail=reply.answer.detail,
                point_id=point.id,
                sweep=None,
                git_commit=here.git_commit,
                git_dirty=here.git_dirty,
                finished_at=now,
            )
            origins.append(origin)
    return _merged(origins)


def _stored_origins(problem: Problem, found: Found, store: Path) -> Iterator[Origin]:
    """Yield the rows that gave the ends of a stored bracket."""
    columns = ", ".join(("method", "method_version", *_COLUMNS))
    corners = (found.lower_from, found.lower_method), (found.upper_from, found.upper_method)
    with open_store(store) as opened:
        for end, (corner, method) in zip(ENDS, corners, strict=True):
            if corner is None or method is None:
                continue
            answered = type(problem).from_fields(corner)
            name = method.replace("'", "''")
            # The rule of the view `best`, asked of one problem's view alone, which is much faster.
            rows = opened.sql(
                f"select {columns} from {view_name(problem.name)} "
                f"where problem_id = '{problem_id(answered)}' and method = '{name}' and status = 'ok' "
                f"and confidence = 1 and {end} = '{getattr(found, end)!r}'::double "
                "order by method_version desc, point_id limit 1"
            )
            for row in rows.to_pylist():
                version = row.pop("method_version")
                yield Origin(ends=(end,), problem=answered, version=version, **row)


def _merged(origins: list[Origin]) -> tuple[Origin, ...]:
    """Return the origins, as one where both ends have the same."""
    if len(origins) == 2 and origins[0] == replace(origins[1], ends=origins[0].ends):
        return (replace(origins[0], ends=ENDS),)
    return tuple(origins)
