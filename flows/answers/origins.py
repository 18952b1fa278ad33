"""The origins of the ends of a bracket: stored rows, or replies of methods that were asked now."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from flows.answers.ask import Asked
from flows.answers.sourced import proofs
from privcore import METHODS, Method, Point, Problem
from storage import Found, Store, provenance
from storage.marks import IMPORTED
from storage.schema import problem_id
from storage.views import rigorous, view_name

ENDS = ("lower", "upper")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The origin of one end of a bracket, or of both.

    Attributes:
        ends: `lower`, `upper` or both.
        problem: The problem that was answered: the question itself, or a problem that bounds it.
        method: Name of the method.
        version: Version of the method.
        knobs: The method's options that differ from their defaults, as JSON.
        detail: How the method reached its answer.
        point_id: Id of the row.
        sweep: Name of the sweep that stored it; None if the row was computed now.
        git_commit: Commit of the code, or `unknown`.
        git_dirty: Whether the code differed from that commit; None if nothing compared them.
        finished_at: Time of the computation, in UTC.
        by_convexity: Whether the end follows from this row together with another one.
        imported: Lookup table from which the row was imported, or "".
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
    git_dirty: bool | None
    finished_at: datetime
    by_convexity: bool = False
    imported: str = ""

    @property
    def claims(self) -> "type[Method] | None":
        """The method's class; None if this release does not have it."""
        return METHODS.get(self.method)

    def only(self, end: str) -> "Origin":
        """Return the origin of this end alone."""
        return replace(self, ends=(end,))

    def reasons(self, question: Problem) -> dict[str, str]:
        """Return the proof, for each quantity that differs, that the answered problem bounds the question."""
        if type(self.problem) is not type(question):
            return {}
        found = proofs(question, self.problem.as_fields())
        return found | dict(question.exp_convex) if self.by_convexity else found


def computed_origins(asked: Asked, ends: tuple[str, ...]) -> Iterator[Origin]:
    """Yield the replies that gave the ends of a bracket."""
    here, now = provenance(), datetime.now(UTC)
    for end in ends:
        by = asked.lower_by if end == "lower" else asked.upper_by
        for reply in [reply for reply in asked.replies if reply.method.name == by][:1]:
            yield Origin(
                ends=(end,),
                problem=asked.problem,
                method=by,
                version=reply.method.version,
                knobs=json.dumps(reply.method.identity()),
                detail=reply.answer.detail,
                point_id=Point(problem=asked.problem, method=reply.method).id,
                sweep=None,
                git_commit=here.git_commit,
                git_dirty=here.git_dirty,
                finished_at=now,
            )


def stored_origins(
    problem: Problem, found: Found, store: Store, ends: tuple[str, ...] = ENDS
) -> Iterator[Origin]:
    """Yield the rows that gave the ends of a stored bracket; by convexity, two rows give one end."""
    for end in ends:
        corner, method = getattr(found, f"{end}_from"), getattr(found, f"{end}_method")
        also, also_method = getattr(found, f"{end}_also"), getattr(found, f"{end}_also_method")
        if corner is None or method is None:
            continue
        convex = also is not None
        yield from _row(type(problem).from_fields(corner), method, end, end, store, convex)
        if also is not None and also_method is not None:
            yield from _row(type(problem).from_fields(also), also_method, "upper", end, store, convex)


def _row(
    answered: Problem, method: str, column: str, end: str, store: Store, by_convexity: bool
) -> Iterator[Origin]:
    """Yield the row with the best end of a method for a stored problem."""
    columns = "knobs, detail, point_id, sweep, git_commit, git_dirty, finished_at"
    name = method.replace("'", "''")
    # The rule of the view `best`, applied to the view of one problem, which is much faster.
    rows = store.sql(
        f"select method, method_version as version, {columns}, {IMPORTED} as imported "
        f"from {view_name(answered.name)} "
        f"where problem_id = '{problem_id(answered)}' and method = '{name}' "
        f"and {rigorous()} order by {column} {'asc' if column == 'upper' else 'desc'}, "
        "method_version desc, point_id limit 1"
    )
    for row in rows.to_pylist():
        yield Origin(ends=(end,), problem=answered, by_convexity=by_convexity, **row)
