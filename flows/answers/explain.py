"""The reasons for an answer: question, theorem, assumptions, and the row, commit and date of its ends.

Everything comes from the declarations of problems and methods, and from the stored rows.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from flows.answers.ask import Asked
from flows.answers.catalogue import assumptions_of, meaning_of
from flows.answers.sourced import Sourced, proofs
from flows.printing import labelled, listed, say
from privcore import METHODS, Method, Point, Problem
from privcore.answer import attributed, tables_of
from storage import Found, Store, provenance
from storage.schema import IMPORTS, commit_text, import_text, object_in, problem_id
from storage.sql.views import rigorous, source_of, view_name
from storage.table.shipped import shipped_store

ENDS = ("lower", "upper")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The origin of one end of a bracket, or of both.

    Attributes:
        ends: `lower`, `upper` or both.
        problem: The problem that was answered: the question itself, or a problem that bounds it.
        method: Name of the method, attributed to the published table of the row, if any.
        version: Version of the method.
        knobs: The method's options that differ from their defaults, as JSON.
        detail: How the method reached its answer.
        point_id: Id of the row.
        sweep: Name of the sweep that stored it; None if the row was computed now.
        git_commit: Commit of the code, or `unknown`.
        git_dirty: Whether the code differed from that commit; None if nothing compared them.
        finished_at: Time of the computation, in UTC.
        by_convexity: Whether the end follows from this row together with another one.
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
        f"select method, method_version as version, {columns}, versions "
        f"from {view_name(answered.name)} "
        f"where problem_id = '{problem_id(answered)}' and method = '{name}' "
        f"and {rigorous()} order by {column} {'asc' if column == 'upper' else 'desc'}, "
        "method_version desc, point_id limit 1"
    )
    for row in rows.to_pylist():
        method = attributed(row.pop("method"), source_of(row.pop("versions")))
        yield Origin(ends=(end,), problem=answered, by_convexity=by_convexity, method=method, **row)


SAMPLING_FIELDS = ("steps", "sampling_probability", "participations", "epochs", "redraw")
NEIGHBOUR_FIELDS = ("adjacency", "neighbours")


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The question, with the origin of each proved end."""

    problem: Problem
    origins: tuple[Origin, ...]

    def as_content(self) -> dict[str, Any]:
        """Return the explanation for JSON."""
        ends: dict[str, Any] = dict.fromkeys(ENDS)
        for origin in self.origins:
            content = self._origin_content(origin)
            for end in origin.ends:  # by convexity, two rows give one end
                ends[end] = content if ends[end] is None else ends[end] | {"also": content}
        meanings = {
            name: {"value": value, "meaning": self.problem.parameters[name].meaning}
            for name, value in self.problem.as_fields().items()
        }
        return {
            "question": meaning_of(type(self.problem)),
            "sampling": {name: meanings[name] for name in SAMPLING_FIELDS if name in meanings},
            "neighbours": {name: meanings[name] for name in NEIGHBOUR_FIELDS if name in meanings},
            "parameters": meanings,
            "ends": ends,
        }

    def _origin_content(self, origin: Origin) -> dict[str, Any]:
        claims = origin.claims
        return {
            "method": origin.method,
            "version": origin.version,
            "direction": claims and claims.direction.value,
            "theorem": claims and claims.reference,
            "claim": claims and meaning_of(claims),
            "assumes": claims and assumptions_of(claims),
            "knobs": object_in(origin.knobs or "{}"),
            "detail": origin.detail,
            "problem": origin.problem.name,
            "fields": origin.problem.as_fields(),
            "because": origin.reasons(self.problem),
            "point_id": origin.point_id,
            "sweep": origin.sweep,
            IMPORTS: " and ".join(tables_of(origin.method)) or None,
            "git_commit": origin.git_commit,
            "git_dirty": origin.git_dirty,
            "finished_at": origin.finished_at.isoformat(),
        }

    def show(self, *, question: bool = True) -> None:
        """Print the explanation: an empty line, then lines that begin with a label.

        Args:
            question: Whether to print the question, too.
        """
        say()
        last = ""
        for label, text in [*(self._question_lines() if question else []), *self._lines()]:
            say(labelled("" if label == last else label, text))
            last = label

    def _question_lines(self) -> Iterator[tuple[str, str]]:
        """Yield label and text of every line about the question."""
        fields = self.problem.as_fields()

        def meaning(name: str) -> str:
            return f"{listed({name: fields[name]})}: {self.problem.parameters[name].meaning}"

        yield "question", meaning_of(type(self.problem))
        for name in fields:
            if name not in (*SAMPLING_FIELDS, *NEIGHBOUR_FIELDS):
                yield "where", meaning(name)
        for names, label in ((SAMPLING_FIELDS, "sampling"), (NEIGHBOUR_FIELDS, "neighbours")):
            for name in names:
                if name in fields:
                    yield label, meaning(name)

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield label and text of every line about the ends."""
        for origin in self.origins:
            yield from self._origin_lines(origin)
        if not self.origins:
            yield "both ends", "nothing is proved"

    def _origin_lines(self, origin: Origin) -> Iterator[tuple[str, str]]:
        claims = origin.claims
        which = "both ends" if len(origin.ends) == 2 else f"{origin.ends[0]} end"
        knobs = listed(object_in(origin.knobs or "{}"))
        yield which, f"{origin.method}, version {origin.version}" + (f", with {knobs}" if knobs else "")
        if claims is None:
            yield "  theorem", "not known: this release does not have the method"
        else:
            yield "  theorem", claims.reference
            yield "  claim", f"{claims.direction.value}: {meaning_of(claims)}"
            yield "  assumes", assumptions_of(claims)
        if origin.detail:
            yield "  how", origin.detail
        if origin.problem != self.problem:
            yield "  answers", f"{origin.problem.name} {listed(origin.problem.as_fields())}"
        for name, proof in origin.reasons(self.problem).items():
            yield "  because", f"{name}: {proof}"
        stored = f"sweep {origin.sweep}" if origin.sweep is not None else "computed now, not stored"
        yield "  row", f"{origin.point_id}, {stored}{import_text(tables_of(origin.method))}"
        yield "  commit", commit_text(origin.git_commit, origin.git_dirty)
        yield "  date", f"{origin.finished_at:%Y-%m-%d %H:%M:%S} UTC"


def explained(answer: Sourced, store: Store | None = None) -> Explanation:
    """Return the explanation of an answer; an end without a proof has no origin.

    Args:
        answer: An answer with the status `ok`.
        store: The store of the answer, unless the answer was computed.
    """
    if isinstance(answer.answer, Asked) and answer.found is None:
        return explained_run(answer.answer)
    if answer.table:
        store = shipped_store()
    assert store is not None
    if isinstance(answer.answer, Asked):
        assert answer.found is not None
        now = tuple(end for end in ENDS if end not in answer.stored_ends)
        origins = list(computed_origins(answer.answer, now))
        origins += stored_origins(answer.problem, answer.found, store, answer.stored_ends)
    else:
        origins = list(stored_origins(answer.problem, answer.answer, store))
    return Explanation(problem=answer.problem, origins=_merged(origins))


def explained_run(asked: Asked, ends: tuple[str, ...] = ENDS) -> Explanation:
    """Return the explanation of an answer that was computed now.

    Args:
        asked: The answer.
        ends: The ends to explain.
    """
    return Explanation(problem=asked.problem, origins=_merged(list(computed_origins(asked, ends))))


def _merged(origins: list[Origin]) -> tuple[Origin, ...]:
    """Return the origins, only one if both ends have the same."""
    if len(origins) == 2 and origins[0] == replace(origins[1], ends=origins[0].ends):
        return (replace(origins[0], ends=ENDS),)
    return tuple(origins)
