"""The comparison of samplers as a picture, a table with the assumptions of each row, or JSON."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from flows.answers.catalogue import meaning_of
from flows.answers.explain import SAMPLING_FIELDS, Explanation
from flows.answers.question import adjacency_of
from flows.answers.show import kind_of, methods_text
from flows.answers.sourced import Sourced
from flows.answers.training.compare import SchemeRow
from flows.answers.training.palette import LIGHT, NAMES
from flows.printing import (
    DIGITS_OF_BOUNDS,
    as_json,
    labelled,
    listed,
    note,
    rounded_down,
    rounded_up,
    say,
    show,
)
from flows.tables import broken
from flows.terminal.window import Piece, painted, shows, width_of
from storage.schema import import_content

NARROWEST = 60
"""Columns of the narrowest terminal with bars."""
ONE_NUMBER = 0.002
"""Relative width of a bracket that is printed as one number, its upper end."""
FURTHEST = 1e4
"""Largest quotient of the ends of the axis; a lower end below it is drawn at the edge."""
_INDENT = "  "
_MARKS = ("▎", "├", "─", "┤", "–")
_PLAIN_MARKS = ("|", "|", "-", "|", "-")


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis.

    Attributes:
        low: Its lower end, positive.
        high: Its upper end.
        columns: Its length in characters.
    """

    low: float
    high: float
    columns: int

    def column(self, x: float) -> int:
        """Return the column of a number; those outside the axis are at its ends.

        Example:
            >>> [LogAxis(0.1, 10, 21).column(x) for x in (0.0, 0.1, 1, 10, math.inf)]
            [0, 0, 10, 20, 20]
        """
        if not self.low < x < self.high:
            return 0 if x <= self.low else self.columns - 1
        return round(math.log(x / self.low) / math.log(self.high / self.low) * (self.columns - 1))

    def ticks(self) -> str:
        """Return the numbers 1, 2 and 5 times powers of ten, each above its column, as far as there is room.

        Example:
            >>> LogAxis(0.5, 20, 40).ticks()
            '0.5     1      2         5      10     20'
        """
        line = ""
        for x in _round_numbers(self.low, self.high):
            text, place = f"{x:g}", self.column(x)
            if not line or place >= len(line) + 2:
                line = line.ljust(place) + text
        return line


def axis_of(found: Sequence[SchemeRow], columns: int) -> LogAxis | None:
    """Return the axis that shows all brackets, between round numbers; None without a positive finite end.

    Args:
        found: The rows.
        columns: Its length in characters.
    """
    ends = [end for row in found if row.bracket for end in (row.bracket.lower, row.bracket.upper)]
    drawn = [end for end in ends if 0 < end < math.inf]
    if not drawn:
        return None
    high = max(drawn)
    low = max(min(drawn), high / FURTHEST)
    return LogAxis(_round_below(low), 1 / _round_below(1 / high), columns)


def _round_below(x: float) -> float:
    """Return the largest number 1, 2 or 5 times a power of ten that is at most x, or a little above it."""
    exponent = math.floor(math.log10(x))
    return max(
        each for each in (float(f"{digit}e{exponent}") for digit in (1, 2, 5)) if each <= x * (1 + 1e-12)
    )


def _round_numbers(low: float, high: float) -> Iterator[float]:
    for exponent in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1):
        for digit in (1, 2, 5):
            if low * (1 - 1e-9) <= (x := float(f"{digit}e{exponent}")) <= high * (1 + 1e-9):
                yield x


def picture(
    found: Sequence[SchemeRow], notes: Sequence[str], width: int, stream: TextIO
) -> list[list[Piece]]:
    """Return the lines of the picture.

    Args:
        found: The rows.
        notes: Sentences about the numbers of steps.
        width: Columns of the terminal, at least `NARROWEST`.
        stream: The terminal.
    """
    marks = _MARKS if shows(stream, "".join(_MARKS)) else _PLAIN_MARKS
    names = max(len(NAMES[row.sampling]) for row in found) + 2
    texts = {row.sampling: _text(row, marks[-1]) for row in found}
    room = width - len(_INDENT) - names - max(map(len, texts.values())) - 3
    axis = axis_of(found, max(room, 10))
    asked = next(row.problem for row in found if row.problem).as_fields()
    title = f"epsilon at {listed({name: asked[name] for name in ('sigma', 'delta')})}, by the loader"
    proved = all(row.bracket.confidence == 1.0 for row in found if row.bracket)
    title += ", both ends proved" if proved else ""
    lines: list[list[Piece]] = [[(part, "bold")] for part in broken(title, width)]
    if axis is not None:
        lines.append([(" " * (len(_INDENT) + names) + axis.ticks(), "dim")])
    for row in found:
        line = [(_INDENT, ""), (f"{NAMES[row.sampling]:<{names}}", "bold")]
        if row.bracket is None or axis is None:
            lines.append([*line, (texts[row.sampling], "dim")])
            continue
        start, bar = _bar(axis, row.bracket.lower, row.bracket.upper, marks)
        lines.append([*line, (" " * start, ""), (bar, LIGHT[row.sampling]), (f" {texts[row.sampling]}", "")])
    reasons = [f"{NAMES[row.sampling]}: {row.notes[-1]}" for row in found if not row.bracket and row.notes]
    below = [
        *reasons,
        *notes,
        *_relations(found),
        f"{_sources(found)} Theorems, assumptions and methods: --explain",
    ]
    lines += [[(part, "dim")] for text in below for part in broken(text, width)]
    return lines


def _bar(axis: LogAxis, lower: float, upper: float, marks: Sequence[str]) -> tuple[int, str]:
    """Return the column of a bar, and the bar."""
    thin, left, middle, right, _ = marks
    start, end = axis.column(lower), axis.column(upper)
    if start == end:
        return start, thin
    return start, left + middle * (end - start - 1) + right


def _text(row: SchemeRow, dash: str) -> str:
    """Return the ends of a bracket, rounded outwards, or the reason why there is none."""
    if row.bracket is None:
        return {"not_applicable": "does not apply", "missing": "not stored"}.get(row.status, row.status)
    return brief(row.bracket.lower, row.bracket.upper, dash)


def brief(lower: float, upper: float, dash: str = "–") -> str:
    """Return a bracket rounded outwards to a few digits, as its upper end alone if it is narrow.

    Example:
        >>> brief(10.3273, 10.3283), brief(5.62888, 5.6912)
        ('10.33', '5.628 – 5.692')
    """
    above = rounded_up(upper, DIGITS_OF_BOUNDS)
    if upper <= lower * (1 + ONE_NUMBER):
        return above
    return f"{rounded_down(lower, DIGITS_OF_BOUNDS)} {dash} {above}"


def _relations(found: Sequence[SchemeRow]) -> Iterator[str]:
    """Yield a sentence about the neighbouring relations, the most frequent one first."""
    of: dict[str, list[str]] = {}
    for row in found:
        if row.problem is not None:
            of.setdefault(adjacency_of(row.problem), []).append(NAMES[row.sampling])
    first, *others = sorted(of, key=lambda relation: -len(of[relation]))
    yield "; ".join([f"relation {first}", *(f"{each} for {', '.join(of[each])}" for each in others)]) + "."


def _sources(found: Sequence[SchemeRow]) -> str:
    """Return one sentence about the sources of all rows."""
    of: dict[str, list[str]] = {}
    for row in found:
        if row.bracket is not None and row.answer is not None:
            place = row.answer.source.split("-")[0]
            where = {"computed": "computed now", "shipped": "from the shipped table"}.get(
                place, "from the store"
            )
            of.setdefault(where, []).append(NAMES[row.sampling])
    if not of:
        return ""
    first, *others = sorted(of, key=lambda where: -len(of[where]))
    told = "; ".join([first, *(f"{where}: {', '.join(of[where])}" for where in others)])
    return f"{told[0].upper()}{told[1:]}."


SHOWN = (*SAMPLING_FIELDS, "examples", "batch_size", "phases")
"""Fields of a sampler that are printed next to its row."""


def print_rows(
    found: Sequence[SchemeRow],
    json: bool,
    explained: Callable[[Sourced], Explanation] | None,
    notes: Sequence[str] = (),
) -> None:
    """Print a picture on a terminal, elsewhere a table and the assumptions of each row, which --explain adds.

    Args:
        found: The rows.
        json: Whether to print JSON.
        explained: Function that explains an answer; None without explanations.
        notes: Sentences about the numbers of steps: below the picture, else on standard error.
    """
    width = width_of(sys.stdout)
    drawn = width is not None and width >= NARROWEST and not json
    if not drawn:
        note(*notes)
    if json:
        say(as_json({"rows": contents(found, explained)}))
        return
    if drawn and width is not None:
        for line in picture(found, notes, width, sys.stdout):
            say(painted(line))
        if not explained:
            return
        say()
    _print_details(found, explained)


def _print_details(found: Sequence[SchemeRow], explained: Callable[[Sourced], Explanation] | None) -> None:
    """Print a table with all digits that are printed anywhere, and paragraphs about each row."""
    reasons = {row.sampling: _explanation(row, explained) for row in found} if explained else {}
    fields = found[0].problem.as_fields() if found[0].problem else {}
    title = f"epsilon at {listed({name: fields[name] for name in ('sigma', 'delta', 'adjacency')})}"
    names = ["sampling", "epsilon lower", "epsilon upper", "kind", "method"]
    show(names, [_cells(row) for row in found], title=title)
    say()
    indent = max(len(row.sampling) for row in found) + 2
    for row in found:
        notes = list(row.notes)
        if row.problem is not None:
            fields = row.problem.as_fields()
            shown = listed({name: fields[name] for name in SHOWN if name in fields})
            notes.insert(0, f"{shown}: {meaning_of(type(row.problem))}")
        if row.bracket is not None and row.answer is not None:
            notes.insert(1, f"source: {row.answer.told}")
        say(labelled(row.sampling, "\n\n".join(notes), indent=indent))
    for sampling, reason in reasons.items():
        if reason is not None:
            say(f"\n{sampling}", end="")
            reason.show()


def contents(
    found: Sequence[SchemeRow], explained: Callable[[Sourced], Explanation] | None
) -> list[dict[str, Any]]:
    """Return the rows for JSON; the arguments are those of `print_rows`."""
    told = [_content(row) for row in found]
    if explained:
        for row, content in zip(found, told, strict=True):
            reason = _explanation(row, explained)
            content["explanation"] = reason and reason.as_content()
    return told


def _cells(row: SchemeRow) -> list[str]:
    bracket, problem = row.bracket, row.problem
    if bracket is None or problem is None:
        reason = {"not_applicable": "does not apply", "missing": "not stored"}.get(row.status, row.status)
        return [row.sampling, "", "", reason, ""]
    return [
        row.sampling,
        rounded_down(bracket.lower),
        rounded_up(bracket.upper),
        kind_of(problem, bracket),
        methods_text(bracket),
    ]


def _content(row: SchemeRow) -> dict[str, Any]:
    """Return a row for JSON; keys without an answer are null."""
    bracket, problem = row.bracket, row.problem
    source = row.answer.source if bracket and row.answer else None
    fields = problem and problem.as_fields()
    return {
        "sampling": row.sampling,
        "problem": problem and problem.name,
        "fields": fields,
        "assumes": problem and meaning_of(type(problem)),
        "lower": bracket and bracket.lower,
        "upper": bracket and bracket.upper,
        "confidence": bracket and bracket.confidence,
        "status": row.status,
        "adjacency": fields and fields["adjacency"],
        "kind": kind_of(problem, bracket) if bracket and problem else None,
        "lower_method": (bracket.lower_by or None) if bracket else None,
        "upper_method": (bracket.upper_by or None) if bracket else None,
        "method": bracket and methods_text(bracket),
        "source": source,
        "lower_source": source,
        "upper_source": source,
        **import_content(bracket.tables if bracket else ()),
        "notes": list(row.notes),
    }


def _explanation(row: SchemeRow, explained: Callable[[Sourced], Explanation]) -> Explanation | None:
    """Return the explanation of a row, or None if it has no answer."""
    return None if row.bracket is None or row.answer is None else explained(row.answer)
