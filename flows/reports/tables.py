"""Tables of a report: brackets, single methods, conflicts, failures and contradictions between methods."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.show import methods_text, sure, width_text
from flows.answers.sweep_table import Line
from flows.printing import counted, exactly, listed, rounded_down, rounded_up
from flows.reports.document import Block, Heading, TextTable
from flows.reports.stored import StoredAnswer, conflicts, stored
from privcore import Problem, find_problem
from privcore.answer import tables_of
from privcore.parameter import Value
from storage import Store
from storage.schema import IMPORTS, NOT_RECOMPUTED, origin_text
from storage.sql.views import remedy

Columns = dict[str, list[str]]


def of_brackets(kind: type[Problem], lines: Sequence[Line]) -> TextTable:
    """Return a table of the best proved brackets of a kind of problem, as `privsweep lookup` prints it."""
    bounds = [line for line in lines if line.stored]
    columns, same = _fields([line.problem.as_fields() for line in bounds])
    columns[f"{kind.asks} lower"] = [rounded_down(line.bracket.lower) for line in bounds]
    columns[f"{kind.asks} upper"] = [rounded_up(line.bracket.upper) for line in bounds]
    columns["width"] = [width_text(line.bracket) for line in bounds]
    columns["method"] = [methods_text(line.bracket) for line in bounds]
    some = "all" if len(bounds) == len(lines) else len(bounds)
    title = f"{counted(len(lines), 'problem')}, {some} with proved bounds"
    if theirs := sum(bool(line.bracket.tables) for line in bounds):
        columns[IMPORTS] = [" and ".join(line.bracket.tables) for line in bounds]
        title = f"{counted(len(lines), 'problem')}, {some} with bounds, {theirs} of them {NOT_RECOMPUTED}"
    return _table(title, same, columns)


def of_answers(kind: type[Problem], answers: Sequence[StoredAnswer], what: str) -> TextTable:
    """Return a table of the answers of single methods, with confidences and estimates if there are any.

    Args:
        kind: The kind of problem.
        answers: Answers with status `ok`.
        what: Title of the table.
    """
    columns, same = _fields([answer.fields for answer in answers])
    rows = [answer.row for answer in answers]
    columns["method"] = [answer.method for answer in answers]
    columns[f"{kind.asks} lower"] = [rounded_down(row["lower"]) for row in rows]
    columns[f"{kind.asks} upper"] = [rounded_up(row["upper"]) for row in rows]
    if not all(answer.proved for answer in answers):
        columns["confidence"] = [_confidence(answer) for answer in answers]
    if any(row["value"] is not None for row in rows):
        columns["estimate"] = ["" if row["value"] is None else f"{row['value']:.6g}" for row in rows]
    if any(tables := [answer.bracket.tables for answer in answers]):
        columns[NOT_RECOMPUTED] = [" and ".join(each) for each in tables]
    if any(row["reason"] for row in rows):
        columns["how"] = [row["reason"] for row in rows]
    return _table(what, same, columns)


def _confidence(answer: StoredAnswer) -> str:
    """Return the confidence of an answer; an estimate has none."""
    return sure(answer.row["confidence"]) if answer.proved or answer.row["confidence"] < 1.0 else "none"


def of_failures(answers: Sequence[StoredAnswer]) -> TextTable:
    """Return a table of points without an answer, grouped by reason; the most frequent reason comes first."""
    said: Counter[tuple[str, ...]] = Counter()
    example: dict[tuple[str, ...], StoredAnswer] = {}
    for answer in answers:
        key = (answer.problem, answer.method, str(answer.row["status"]), answer.row["reason"])
        said[key] += 1
        example.setdefault(key, answer)
    rows = [[*key[:3], str(count), key[3], listed(example[key].fields)] for key, count in said.most_common()]
    names = ["problem", "method", "status", "points", "reason", "for example"]
    return TextTable(title=counted(len(answers), "point"), names=names, rows=rows)


def of_conflicts(found: Sequence[Mapping[str, object]], asked: Mapping[str, Problem]) -> TextTable:
    """Return a table of contradictions: lower bounds above another method's upper bound.

    Args:
        found: From `conflicts`.
        asked: The problems, by their ids.
    """
    rows = [
        [
            str(each["problem"]),
            listed(asked[str(each["problem_id"])].as_fields()),
            exactly(each["lower"]),  # all digits, since both ends can agree in the first six
            _by(each["lower_method"]),
            exactly(each["upper"]),
            _by(each["upper_method"]),
        ]
        for each in found
    ]
    above = f"{counted(len(rows), 'lower bound')} above another method's upper bound"
    title = f"{above}; {remedy(_tables(found))}"
    return TextTable(title=title, names=["problem", "fields", "at least", "by", "at most", "by"], rows=rows)


def _by(method: Any) -> str:
    """Return the method of an end, with the lookup table of its row, if any."""
    return f"{method}{origin_text(tables_of(method), ', ')}"


def _tables(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the lookup tables of the rows that contradict one another."""
    return tables_of(*(each[f"{end}_method"] for each in found for end in ("lower", "upper")))


def _fields(rows: Sequence[Mapping[str, Value]]) -> tuple[Columns, dict[str, Value]]:
    """Return the columns of the fields that vary, and the fixed fields, for the title."""
    first = rows[0]
    varied = [name for name in first if len(rows) == 1 or any(row[name] != first[name] for row in rows)]
    columns = {name: [exactly(row[name]) for row in rows] for name in varied}
    return columns, {name: first[name] for name in first if name not in varied}


def _table(title: str, same: Mapping[str, Value], columns: Columns) -> TextTable:
    told = f"{title}, with {listed(same)}" if same else title
    return TextTable(title=told, names=list(columns), rows=list(zip(*columns.values(), strict=True)))


@dataclass(frozen=True, kw_only=True)
class Contradictions:
    """The contradictions about some problems; all empty if there are none.

    Attributes:
        asked: The problems, by their ids.
        blocks: Heading and table.
        incomplete: The sentence for the exit code.
    """

    asked: Mapping[str, Problem]
    blocks: Sequence[Block] = ()
    incomplete: Sequence[str] = ()


def contradictions_of(found: Sequence[Mapping[str, object]], asked: Mapping[str, Problem]) -> Contradictions:
    """Return the contradictions as parts of a report.

    Args:
        found: From `conflicts`.
        asked: The problems, by their ids.
    """
    if not found:
        return Contradictions(asked={})
    ids = {each["problem_id"] for each in found}
    tables = _tables(found)
    resolved = f"; {remedy(tables)}" if tables else ""
    return Contradictions(
        asked={key: problem for key, problem in asked.items() if key in ids},
        blocks=[Heading(text="Contradictions"), of_conflicts(found, asked)],
        incomplete=[f"{counted(len(found), 'contradiction')} between methods{resolved}."],
    )


def contradictions_about(store: Store, names: Collection[str]) -> Contradictions:
    """Return the contradictions about all stored problems with these names."""
    found = [each for each in conflicts(store) if each["problem"] in names]
    ids = {each["problem_id"] for each in found}
    asked = {
        answer.row["problem_id"]: find_problem(name).from_fields(answer.fields)
        for name in {str(each["problem"]) for each in found}
        for answer in stored(store, find_problem(name), ids)
    }
    return contradictions_of(found, asked)
