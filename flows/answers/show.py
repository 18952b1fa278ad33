"""Answers as text: ends rounded outwards, with methods, sources, and intervals without proof."""

import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.ask import Asked, conditions
from flows.answers.explain import Explanation
from flows.answers.sourced import Sourced
from flows.printing import as_json, exactly, listed, rounded_down, rounded_up, say, show
from privcore import Bracket, Direction, Problem
from privcore.answer import attributed
from privcore.registry import used_versions
from storage import QueryError, Store
from storage.schema import IMPORTED, IMPORTS, NOT_RECOMPUTED, import_content, origin_text, problem_id
from storage.sql.views import current, view_name
from storage.table.shipped import shipped_store

NEIGHBOURS = {
    "add-remove": "one canary is added or removed (add-remove)",
    "replace-one": "one canary is replaced by another alternative (replace-one)",
}
"""Neighbouring data sets of an audit, by the name of the relation."""

VALUES_ALONE = "proved for the values of the file alone"
"""Kind of a bound if a column of a file is taken as a whole distribution."""


@dataclass(frozen=True, kw_only=True)
class Aside:
    """A fact that is printed after an answer.

    Attributes:
        key: Its key in JSON.
        content: Its content in JSON.
        text: Its lines as text.
    """

    key: str
    content: Mapping[str, Any]
    text: str


def print_answer(
    answer: Sourced,
    json: bool,
    explanation: Explanation | None = None,
    asides: Sequence[Aside] = (),
) -> None:
    """Print an answer: the bracket, its kind, the methods of its ends, and its source.

    Args:
        answer: The answer; if its status is not `ok`, only JSON is printed.
        json: Whether to print JSON.
        explanation: The explanation to print as well.
        asides: Facts to print as well.
    """
    problem, bracket = answer.problem, answer.bracket
    fields = problem.as_fields()
    content: dict[str, Any] = {
        "problem": problem.name,
        "fields": fields,
        "lower": bracket.lower,
        "upper": bracket.upper,
        "confidence": bracket.confidence,
        "status": answer.status,
        "kind": kind_of(problem, bracket),
        "lower_method": bracket.lower_by or None,
        "upper_method": bracket.upper_by or None,
        "method": methods_text(bracket),
        "source": answer.source,
        **answer.corners,
    }
    if "adjacency" in fields:
        content["adjacency"] = fields["adjacency"]
    content |= conditions(problem)
    estimates = estimates_of(answer.answer) if isinstance(answer.answer, Asked) else {}
    if estimates:
        content["estimates"] = estimates
        if is_trivial(problem, bracket):
            content |= {"kind": "estimate, not a bound", "method": ", ".join(estimates)}
    content |= import_content(bracket.tables)
    if answer.detail:
        content["detail"] = answer.detail
    content |= {aside.key: aside.content for aside in asides}
    if explanation is not None:
        content["explanation"] = explanation.as_content()
    if json:
        say(as_json(content))
        return
    if answer.status != "ok":
        return
    show_headline(problem, bracket, estimates)
    rest = {name: value for name, value in fields.items() if name != "adjacency"}
    say(f"problem    {problem.name} {listed(rest)}")
    if "adjacency" in fields:
        say(f"adjacency  {fields['adjacency']}")
    say(f"kind       {content['kind']}")
    say(f"method     {content['method']}")
    say(f"source     {answer.told}")
    show_conditions(problem)
    for aside in asides:
        say(aside.text)
    if explanation is not None:
        explanation.show()


def is_trivial(problem: Problem, bracket: Bracket) -> bool:
    """Return whether a bracket says nothing about the truth."""
    return bracket.lower <= 0.0 and bracket.upper >= problem.largest


def kind_of(problem: Problem, bracket: Bracket) -> str:
    """Return the kind of bound, such as `enclosure, proved`."""
    from_below, from_above = bracket.lower > 0.0, bracket.upper < problem.largest
    names = {(True, True): "enclosure", (True, False): "lower bound", (False, True): "upper bound"}
    if (name := names.get((from_below, from_above))) is None:
        return "no bound"
    return f"{name}, {certainty(problem, bracket.confidence, bracket.tables)}"


def certainty(problem: Problem, confidence: float, tables: Collection[str] = ()) -> str:
    """Return the confidence, or `proved`, or another word for a bound that this installation did not compute.

    Args:
        problem: The question; the word has a condition if a file is taken as a whole distribution.
        confidence: The confidence of the bound.
        tables: Published tables of its rows.
    """
    if confidence < 1.0:
        return f"confidence {sure(confidence)}"
    return certain(assuming=bool(problem.assumption()), tables=tables)


def certain(*, assuming: bool, tables: Collection[str]) -> str:
    """Return the word for a bound at confidence 1, such as `proved`.

    Args:
        assuming: Whether a column of a file is taken as a whole distribution.
        tables: Published tables of its rows.
    """
    proof = VALUES_ALONE if assuming else "proved"
    return proof.replace("proved", NOT_RECOMPUTED, 1) if tables else proof


def show_conditions(problem: Problem) -> None:
    """Print the neighbouring relation of a problem without a field for it, and an assumption behind it."""
    for name, text in condition_lines(problem):
        say(f"{name:10} {text}")


def condition_lines(problem: Problem) -> list[tuple[str, str]]:
    """Return the names and texts of the conditions of a problem: neighbouring relation and assumption."""
    return [(name, NEIGHBOURS.get(text, exactly(text))) for name, text in conditions(problem).items()]


def estimates_of(asked: Asked) -> dict[str, float]:
    """Return the estimates, which prove nothing, by the names of their methods."""
    replies = [reply for reply in asked.replies if reply.method.direction is Direction.ESTIMATE]
    return {
        reply.method.name: reply.answer.value
        for reply in replies
        if reply.answer.ok and reply.answer.value is not None
    }


def show_headline(problem: Problem, bracket: Bracket, estimates: Mapping[str, float]) -> None:
    """Print the bracket, unless only estimates are known, and each estimate, marked as such."""
    if not (estimates and is_trivial(problem, bracket)):
        say(bracket_text(problem, bracket))
    for name, value in estimates.items():
        say(f"{problem.asks} is about {value:.6g}, an estimate by {name}, not a bound")


def bracket_text(problem: Problem, bracket: Bracket) -> str:
    """Return `epsilon in [0.06, 0.07]`, both ends rounded outwards, with a confidence below 1."""
    ends = f"{problem.asks} in [{rounded_down(bracket.lower)}, {rounded_up(bracket.upper)}]"
    return ends if bracket.confidence == 1.0 else f"{ends} with confidence {sure(bracket.confidence)}"


def sure(confidence: float) -> str:
    """Return a confidence as it was given, or rounded down if it has many digits.

    Example:
        >>> sure(0.95), sure(1.0 - 0.1 - 0.2 / 3.0)
        ('0.95', '0.833333')
    """
    text = exactly(confidence)
    return text if len(text) <= 8 else rounded_down(confidence)


def methods_text(bracket: Bracket) -> str:
    """Return the methods that gave the ends, once if both are the same."""
    if bracket.lower_by == bracket.upper_by:
        return bracket.upper_by or "none"
    ends = {"lower end": bracket.lower_by, "upper end": bracket.upper_by}
    return ", ".join(f"{name} ({end})" for end, name in ends.items() if name)


def width_text(bracket: Bracket) -> str:
    """Return the relative width of a bracket in per cent, rounded up; empty without two positive ends."""
    if not 0.0 < bracket.lower <= bracket.upper < math.inf:
        return ""
    percent = 100.0 * (bracket.upper / bracket.lower - 1.0)
    return "<0.01%" if percent < 0.01 else f"{rounded_up(percent, 2)}%"


def show_replies(asked: Asked) -> None:
    """Print a table of the replies of all methods."""
    rows = []
    for reply in asked.replies:
        answer = reply.answer
        ends = ["", "", "", ""]
        if answer.ok:
            value = "" if answer.value is None else f"{answer.value:.6g}"
            ends = [rounded_down(answer.lower), rounded_up(answer.upper), value, exactly(answer.confidence)]
        rows.append([reply.method.name, *ends, answer.status.value, f"{reply.seconds:.2g}", answer.detail])
    names = ["method", "lower", "upper", "estimate", "confidence", "status", "seconds", "detail"]
    wanted = [k for k, name in enumerate(names) if name not in {"estimate"} or any(row[k] for row in rows)]
    show([names[k] for k in wanted], [[row[k] for k in wanted] for row in rows])


_NARROWEST = "if(lower = upper, 0, upper - lower), lower desc, upper, confidence desc, method::varchar"
"""Order of intervals: by width, and of those without an upper end by the lower end."""


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """The stored intervals of one problem.

    Attributes:
        problem: The problem.
        count: Number of intervals, >= 1.
        narrowest: The narrowest of them.
        command: Command that prints all of them.
    """

    problem: Problem
    count: int
    narrowest: Bracket
    command: str

    @property
    def sentence(self) -> str:
        """The number of intervals, the narrowest, and the command for all, without a full stop."""
        several = self.count > 1
        text = f"{self.count} stored interval{'s' * several} with a confidence below 1 "
        text += f"{'are' if several else 'is'} left out; the narrowest: "
        origin = ", ".join(filter(None, (self.narrowest.lower_by, origin_text(self.narrowest.tables))))
        text += f"{bracket_text(self.problem, self.narrowest)} ({origin})"
        return f"{text}; to print them: `{self.command}`"

    def aside(self) -> Aside:
        """Return the intervals as a line after an answer."""
        ends = {name: getattr(self.narrowest, name) for name in ("lower", "upper", "confidence")}
        content: dict[str, Any] = {
            "count": self.count,
            "narrowest": {
                **ends,
                "method": self.narrowest.lower_by,
                IMPORTS: list(self.narrowest.tables),
            },
            "command": self.command,
        }
        return Aside(key="intervals", content=content, text=f"intervals  {self.sentence}")


def intervals(store: Store, problem: Problem, option: str | None) -> Intervals | None:
    """Return the stored intervals of exactly this problem, or None.

    Args:
        store: Opened with `missing_ok`; if it is missing, the shipped table is read, as `privsweep sql` does.
        problem: The question.
        option: Name of the store, or None for the default.
    """
    read = store if store.exists else shipped_store()
    if read is None:
        return None
    columns = (
        f"lower, upper, confidence, method::varchar as method, {IMPORTED} as source, {current()} as newest"
    )
    chosen = f"from {view_name(problem.name)} where problem_id = '{problem_id(problem)}' and confidence < 1"
    try:
        found = read.sql(f"select {columns} {chosen} order by {_NARROWEST}").to_pylist()
    except QueryError:  # a problem without methods has no view
        return None
    rows = [row for row in found if row["newest"]]
    if not rows:
        return None
    for name in sorted({row["method"] for row in found if not row["newest"]}):
        chosen += f" and not (method = '{name}' and method_version < {used_versions()[name]})"
    by = attributed(rows[0]["method"], rows[0]["source"])
    ends = {name: rows[0][name] for name in ("lower", "upper", "confidence")}
    at = "" if option is None else f" --store {shlex.quote(option)}"
    return Intervals(
        problem=problem,
        count=len(rows),
        narrowest=Bracket(**ends, lower_by=by, upper_by=by),
        command=f'privsweep sql "{chosen}"{at}',
    )
