"""One training run under the schemes that choose the examples of a step: side by side, drawn, and as a table.

The colours are derived from those of Okabe and Ito, which are distinguishable with any colour vision, and
have a contrast of at least 4.5 to a white and to a dark ground. Kept bins resemble random allocation on
purpose: the same loader, drawn once instead of in each epoch. A truncated batch is one of Poisson sampling.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TextIO

from flows.answers.ask import CONFLICT, contradiction
from flows.answers.catalogue import meaning_of
from flows.answers.explain import SAMPLING_FIELDS, Explanation
from flows.answers.parse import ZEROED, problem_of, training_question
from flows.answers.show import kind_of, methods_text
from flows.answers.sourced import Sourced
from flows.answers.training_run import adjacency_of
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
from flows.spec.words import number
from flows.tables import broken
from flows.terminal.window import Piece, painted, shows, width_of
from privcore import Bracket, DomainError, Problem, find_problem
from privcore.training import TrainingRun

NAMES = {
    "allocation": "random allocation",
    "poisson": "Poisson",
    "shuffling": "shuffled",
    "balls-in-bins": "kept bins",
    "fixed-size": "fixed size",
    "with-replacement": "with replacement",
    "truncated-poisson": "truncated Poisson",
    "none": "no amplification",
}
"""Names of samplers for pictures and tables, by the words of `--sampling`."""

LIGHT = {
    "allocation": "#0072b2",
    "poisson": "#00825f",
    "shuffling": "#c44f00",
    "balls-in-bins": "#287aa9",
    "fixed-size": "#9a6a00",
    "with-replacement": "#a8588a",
    "truncated-poisson": "#00825f",
    "none": "#6b7280",
}
"""Colours on a light ground."""

DARK = {
    "allocation": "#5ab4f0",
    "poisson": "#3fcf9f",
    "shuffling": "#ff8a4c",
    "balls-in-bins": "#8fd0f5",
    "fixed-size": "#e8b64c",
    "with-replacement": "#e39ac6",
    "truncated-poisson": "#3fcf9f",
    "none": "#9aa4af",
}
"""Colours on a dark ground."""


SHUFFLING = "shuffling-epsilon"
ZERO_OUT = (
    "The neighbouring relation of this row is {}: one data set has the gradient 0 in the place of the "
    "example, since add-remove would change {}."
)
WHY_ZERO_OUT = {
    "fixed-size": "the sampling probability",
    "with-replacement": "the sampling probability",
    "shuffling": "the number of batches",
}
SHUFFLED_ADJACENCY = {"add-remove": "zero-out"}
"""Relations of the other rows, and of shuffling; remove and add are the directions of both."""
UNAMPLIFIED = "The upper end is that of no amplification: no better one is known at this noise."
KEPT_BINS = "Every example is in the same step of all epochs; drawn again in each epoch, this is allocation."
ONCE = "Shuffling uses every example in one step of an epoch, not in participations={}."

Answering = Callable[[Problem], Sourced | None]
"""Function that answers a problem, or returns None if nothing is stored and it must not compute."""


@dataclass(frozen=True, kw_only=True)
class SchemeRow:
    """The row of one scheme that chooses examples.

    Attributes:
        sampling: Its name, a word of `--sampling`.
        problem: The problem; None if the scheme does not apply to the run.
        answer: The answer, or None if nothing is stored.
        bracket: Both ends; None without an answer.
        status: `ok`, `not_applicable`, `missing` if nothing is stored, or the status of a failed answer.
        notes: Sentences about the row, or about the reason why it is empty.
    """

    sampling: str
    problem: Problem | None
    answer: Sourced | None = None
    bracket: Bracket | None = None
    status: str = "ok"
    notes: tuple[str, ...] = ()


def _row(sampling: str, problem: Problem, answer: Sourced | None, *notes: str) -> SchemeRow:
    """Return the row with this answer, or with the reason why it is missing."""
    row = SchemeRow(sampling=sampling, problem=problem, answer=answer, notes=notes)
    if answer is None:
        return replace(row, status="missing")
    row = replace(row, problem=answer.problem)  # the rate of Poisson sampling may be rounded in another way
    if not answer.ok:
        return replace(row, status=answer.status, notes=(*notes, answer.detail))
    if answer.bracket.crossed:
        return replace(row, status=CONFLICT, notes=(*notes, contradiction(answer.bracket)))
    return replace(row, bracket=answer.bracket)


def problems(
    options: Mapping[str, str | None], *, examples: str | None, batch_size: str | None
) -> tuple[dict[str, Problem], list[str]]:
    """Return the problems about the privacy of one run, by sampling, and notes to print.

    Poisson sampling uses the same number of examples per step on average: at rate k b / n, rounded up, in
    n / b steps, rounded up. If only the steps are known, the rate is k / steps.

    Args:
        options: Text of sigma, steps, delta, participations, epochs and adjacency; None where not given.
        examples: As in `training_question`.
        batch_size: As in `training_question`.

    Raises:
        PrivsweepError: Options contradict one another, are missing, or are outside their domains.
    """
    kind, fields, notes = training_question("allocation", options, examples=examples, batch_size=batch_size)
    allocation = kind.from_fields(fields)
    fields = allocation.as_fields()
    rest = {name: fields[name] for name in ("sigma", "delta", "adjacency")}
    if examples is not None and batch_size is not None:
        sizes = {"examples": number(examples), "batch_size": number(batch_size)}
        run = TrainingRun.checked(sizes | {name: fields[name] for name in ("epochs", "participations")})
        poisson = run.fields(run.safe("poisson"))
        drawn = sizes | {"batch_size": run.participations * run.batch_size}
    else:
        rate = float(fields["participations"]) / float(fields["steps"])
        poisson = {"steps": fields["steps"], "epochs": fields["epochs"], "sampling_probability": rate}
        drawn = {}
    none = problem_of("none")
    found = {
        "allocation": allocation,
        "poisson": problem_of("poisson").from_fields(rest | poisson),
        "none": none.from_fields({name: value for name, value in fields.items() if name in none.parameters}),
    }
    adjacency = str(fields["adjacency"])
    fixed = {"adjacency": ZEROED.get(adjacency, adjacency)}
    found["fixed-size"] = problem_of("fixed-size").from_fields(rest | poisson | fixed)
    if drawn:
        counts = {name: poisson[name] for name in ("steps", "epochs")}
        with suppress(DomainError):  # more examples than this problem has
            found["with-replacement"] = problem_of("with-replacement").from_fields(
                rest | counts | drawn | fixed
            )
    if fields["epochs"] != 1:
        names = ("steps", "epochs", "participations")
        bins = {name: fields[name] for name in names} | {"redraw": "once"}
        found["balls-in-bins"] = problem_of("balls-in-bins").from_fields(rest | bins)
    if fields["participations"] == 1:
        relation = SHUFFLED_ADJACENCY.get(adjacency, adjacency)
        redraw = "one-epoch" if fields["epochs"] == 1 else "each-epoch"
        shuffled = {"epochs": fields["epochs"], "redraw": redraw, "adjacency": relation}
        found["shuffling"] = find_problem(SHUFFLING).from_fields(rest | {"steps": fields["steps"]} | shuffled)
    return found, notes


def nearest_rate(asked: Mapping[str, Problem]) -> list[Problem]:
    """Return Poisson sampling at rate k / steps, rounded to nearest, if only this rounding makes it differ.

    Stored problems and the SQL macro `compare` have this rate. The rate of `problems` is rounded up.
    """
    allocation, poisson = asked["allocation"].as_fields(), asked["poisson"].as_fields()
    rate = float(allocation["participations"]) / float(allocation["steps"])
    if allocation["steps"] != poisson["steps"] or rate == poisson["sampling_probability"]:
        return []
    return [type(asked["poisson"]).from_fields(poisson | {"sampling_probability": rate})]


def rows(asked: Mapping[str, Problem], answering: Answering) -> Iterator[SchemeRow]:
    """Yield the row of every sampling, as soon as it is known.

    Args:
        asked: The problems, from `problems`.
        answering: Function that answers a problem.
    """
    none = answering(asked["none"])
    allocation = answering(asked["allocation"])
    yield _row("allocation", asked["allocation"], allocation, *_unamplified(allocation, none))
    yield _row("poisson", asked["poisson"], answering(asked["poisson"]))
    for name in ("fixed-size", "with-replacement"):
        if name in asked:
            yield _row(name, asked[name], answering(asked[name]), *_own_relation(asked, name))
    if "balls-in-bins" in asked:
        kept = answering(asked["balls-in-bins"])
        yield _row("balls-in-bins", asked["balls-in-bins"], kept, KEPT_BINS, *_unamplified(kept, none))
    yield _shuffling(asked, none, answering)
    yield _row("none", asked["none"], none)


def _shuffling(asked: Mapping[str, Problem], none: Sourced | None, answering: Answering) -> SchemeRow:
    """Return the row of shuffling, which has its own neighbouring relation, and often no better upper end."""
    problem = asked.get("shuffling")
    if problem is None:
        why = ONCE.format(asked["none"].as_fields()["participations"])
        return SchemeRow(sampling="shuffling", problem=None, status="not_applicable", notes=(why,))
    answer = answering(problem)
    notes = [*_own_relation(asked, "shuffling"), *_unamplified(answer, none)]
    return _row("shuffling", problem, answer, *notes)


def _unamplified(answer: Sourced | None, none: Sourced | None) -> list[str]:
    """Return a note if an answer is not better than that without amplification, unless that was imported."""
    if answer is None or none is None or not (answer.ok and none.ok) or none.imported:
        return []
    return [UNAMPLIFIED] if answer.bracket.upper >= none.bracket.upper else []


def _own_relation(asked: Mapping[str, Problem], sampling: str) -> list[str]:
    """Return a note about the neighbouring relation of a row if it is not that of the others."""
    own, usual = (adjacency_of(asked[name]) for name in (sampling, "allocation"))
    return [] if usual in ("zero-out", "replace-one") else [ZERO_OUT.format(own, WHY_ZERO_OUT[sampling])]


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


SHOWN = (*SAMPLING_FIELDS, "examples", "batch_size")
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
        **({"imported": list(bracket.imported)} if bracket and bracket.imported else {}),
        "notes": list(row.notes),
    }


def _explanation(row: SchemeRow, explained: Callable[[Sourced], Explanation]) -> Explanation | None:
    """Return the explanation of a row, or None if it has no answer."""
    return None if row.bracket is None or row.answer is None else explained(row.answer)
