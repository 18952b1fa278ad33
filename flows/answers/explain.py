"""What stands behind an answer: the question, the theorem and its assumptions, and who computed it when.

Everything is read from what problems and methods declare, and from the stored rows.
"""

import inspect
import json
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from flows.answers.ask import Asked
from flows.answers.origin import ENDS, Origin, origins_of, origins_of_run
from flows.answers.sourced import Sourced
from flows.printing import listed
from privcore import Direction, Method, Problem

SAMPLING = ("steps", "sampling_probability", "participations", "epochs")
NEIGHBOURS = ("adjacency", "neighbours")
NOTHING_MORE = "nothing beyond the question above"
"""A proof holds for its question as it stands: what a theorem needs more, a method refuses to do without."""

_SECTIONS = ("Attributes:", "Args:", "Returns:", "Reference:", "Example:")
_WIDTH, _INDENT = 110, 13


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The question, with the origin of every end that something is proved about."""

    problem: Problem
    origins: tuple[Origin, ...]

    def as_content(self) -> dict[str, Any]:
        """Return what JSON says."""
        ends: dict[str, Any] = dict.fromkeys(ENDS)
        for origin in self.origins:
            ends |= dict.fromkeys(origin.ends, self._origin_content(origin))
        meanings = {
            name: {"value": value, "meaning": self.problem.parameters[name].meaning}
            for name, value in self.problem.as_fields().items()
        }
        return {
            "question": question_of(type(self.problem)),
            "sampling": {name: meanings[name] for name in SAMPLING if name in meanings},
            "neighbours": {name: meanings[name] for name in NEIGHBOURS if name in meanings},
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
            "claim": claims and claim_of(claims),
            "assumes": claims and assumptions_of(claims),
            "knobs": json.loads(origin.knobs or "{}"),
            "detail": origin.detail,
            "problem": origin.problem.name,
            "fields": origin.problem.as_fields(),
            "because": origin.reasons(self.problem),
            "point_id": origin.point_id,
            "sweep": origin.sweep,
            "git_commit": origin.git_commit,
            "git_dirty": origin.git_dirty,
            "finished_at": origin.finished_at.isoformat(),
        }

    def show(self, *, question: bool = True) -> None:
        """Print it for people: an empty line, then a block of lines that begin with a label.

        Args:
            question: Whether to tell what was asked, too.
        """
        print()
        last = ""
        for label, text in [*(self._question_lines() if question else []), *self._lines()]:
            print(labelled("" if label == last else label, text))
            last = label

    def _question_lines(self) -> Iterator[tuple[str, str]]:
        """Yield label and text of every line about the question."""
        fields = self.problem.as_fields()

        def meaning(name: str) -> str:
            return f"{listed({name: fields[name]})}: {self.problem.parameters[name].meaning}"

        yield "question", question_of(type(self.problem))
        for name in fields:
            if name not in (*SAMPLING, *NEIGHBOURS):
                yield "where", meaning(name)
        for names, label in ((SAMPLING, "sampling"), (NEIGHBOURS, "neighbours")):
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
        knobs = listed(json.loads(origin.knobs or "{}"))
        yield which, f"{origin.method}, version {origin.version}" + (f", with {knobs}" if knobs else "")
        if claims is None:
            yield "  theorem", "not known: this release does not have the method"
        else:
            yield "  theorem", claims.reference
            yield "  claim", f"{claims.direction.value}: {claim_of(claims)}"
            yield "  assumes", assumptions_of(claims)
        if origin.detail:
            yield "  how", origin.detail
        if origin.problem != self.problem:
            yield "  answers", f"{origin.problem.name} {listed(origin.problem.as_fields())}"
        for name, proof in origin.reasons(self.problem).items():
            yield "  because", f"{name}: {proof}"
        stored = f"sweep {origin.sweep}" if origin.sweep is not None else "computed now, not stored"
        yield "  row", f"{origin.point_id}, {stored}"
        yield "  commit", origin.git_commit + (", with changes" if origin.git_dirty else "")
        yield "  date", f"{origin.finished_at:%Y-%m-%d %H:%M:%S} UTC"


def explained(answer: Sourced, store: Path) -> Explanation:
    """Return what stands behind an answer.

    Args:
        answer: An answer with the status `ok`.
        store: Where it comes from, unless it was computed.
    """
    return Explanation(problem=answer.problem, origins=origins_of(answer, store))


def explained_run(asked: Asked, ends: tuple[str, ...] = ENDS) -> Explanation:
    """Return what stands behind an answer that was computed now.

    Args:
        asked: The answer.
        ends: Which of its ends matter.
    """
    return Explanation(problem=asked.problem, origins=origins_of_run(asked, ends))


def question_of(kind: type[Problem]) -> str:
    """Return what a problem asks, in one sentence."""
    return _paragraphs(kind)[0]


def claim_of(kind: type[Method]) -> str:
    """Return what a method does, in one sentence."""
    return _paragraphs(kind)[0]


def assumptions_of(kind: type[Method]) -> str:
    """Return what a method tells about its assumptions: the rest of its documentation, if there is any."""
    told = "\n\n".join(_paragraphs(kind)[1:])
    if told or kind.direction is Direction.ESTIMATE:
        return told or "what its reference does; no theorem covers the number"
    return NOTHING_MORE


def _paragraphs(kind: type) -> list[str]:
    """Return the paragraphs of a docstring up to its first section."""
    paragraphs = (inspect.getdoc(kind) or "").split("\n\n")
    return list(takewhile(lambda paragraph: not paragraph.startswith(_SECTIONS), paragraphs))


def labelled(label: str, text: str) -> str:
    """Return a label and a text beside it, broken into lines; formulas keep those that they have.

    Args:
        label: What the text is.
        text: Paragraphs, with an empty line between them.
    """
    lines = []
    width = min(_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDTH
    for paragraph in text.split("\n\n"):
        broken = textwrap.wrap(paragraph, max(width - _INDENT, _INDENT), break_long_words=False)
        lines += paragraph.splitlines() if "$$" in paragraph else broken
    first, *rest = lines or [""]
    return "\n".join([f"{label:<{_INDENT}}{first}", *(" " * _INDENT + line for line in rest)]).rstrip()
