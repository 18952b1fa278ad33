"""The reasons for an answer: question, theorem and assumptions, and the row, commit and date of its ends.

Everything comes from the declarations of problems and methods, and from the stored rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from flows.answers.ask import Asked
from flows.answers.catalogue import assumptions_of, meaning_of
from flows.answers.origins import ENDS, Origin, computed_origins, stored_origins
from flows.answers.sourced import Sourced
from flows.printing import labelled, listed, say
from privcore import Problem
from storage import Store
from storage.origin import commit_text
from storage.schema import object_in
from storage.shipped import shipped_store

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
            "imported": origin.imported or None,
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
        stored += f", imported from the table {origin.imported}" if origin.imported else ""
        yield "  row", f"{origin.point_id}, {stored}"
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
