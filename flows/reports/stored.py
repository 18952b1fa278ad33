"""Stored rows for a report: answers of methods, brackets of a kind of problem, and their provenance."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from flows.answers.ask import UncoveredError
from flows.answers.show import condition_lines
from flows.answers.sweep_table import stored_brackets
from flows.printing import counted
from flows.reports.document import Heading, Paragraph, TextTable
from privcore import Bracket, Problem, Status, find, find_problem
from privcore.answer import attributed, tables_of
from privcore.errors import PrivsweepError
from privcore.parameter import Value
from storage import SCHEMA_VERSION, Store
from storage.errors import StoreError
from storage.schema import NOT_RECOMPUTED, commit_text, object_in
from storage.sql.views import current, quoted, source_of, view_name

ORIGIN = ("method", "method_version", "git_commit", "git_dirty", "versions", "host", "finished_at", "sweep")
_ROW = ("point_id", "problem_id", "lower", "upper", "value", "confidence", "status", "knobs", *ORIGIN)


@dataclass(frozen=True, kw_only=True)
class StoredAnswer:
    """One stored answer.

    Attributes:
        problem: Name of the problem.
        fields: Fields of the problem.
        row: Ends, status and origin.
    """

    problem: str
    fields: Mapping[str, Value]
    row: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """Whether the method gave an answer."""
        return bool(self.row["status"] == Status.OK)

    @property
    def proved(self) -> bool:
        """Whether the ends are proved and not trivial."""
        return (
            self.ok
            and self.row["confidence"] == 1.0
            and (self.row["lower"] > 0.0 or self.row["upper"] < float("inf"))
        )

    @property
    def method(self) -> str:
        """Name of the method, with its settings if they differ from the defaults, and its published table."""
        name, knobs = str(self.row["method"]), self.row["knobs"]
        return attributed(name if knobs == "{}" else f"{name} {knobs}", source_of(self.row["versions"]))

    @property
    def bracket(self) -> Bracket:
        """The ends, with the method that gave them."""
        row = self.row
        return Bracket(
            lower=row["lower"],
            upper=row["upper"],
            confidence=row["confidence"],
            lower_by=self.method,
            upper_by=self.method,
        )


def check_exists(store: Store) -> None:
    """Check that the path of a store exists.

    Raises:
        UncoveredError: The path does not exist.
    """
    if not store.exists:
        raise UncoveredError(
            f"Nothing is stored: there is no store at {store.name}. "
            "`privsweep run SWEEP` computes a sweep, and `privsweep table import` copies the shipped table."
        )


def stored(store: Store, kind: type[Problem], problems: Collection[str] | None = None) -> list[StoredAnswer]:
    """Return the stored answers of a kind of problem, sorted by its fields and method.

    Answers of older versions of a method are left out, as in lookups.

    Args:
        store: The store.
        kind: The kind of problem.
        problems: Ids of the wanted problems, or None for all.
    """
    # The reasons of answers can be long, and are read only if they are shown.
    detail = "if(status = 'ok' and confidence = 1 and value is null, '', detail)"
    columns = f"{quoted([*_ROW, *kind.parameters])}, {detail} as reason"
    order = quoted([*kind.parameters, "method", "knobs"])
    found = store.sql(f"select {columns} from {view_name(kind.name)} where {current()} order by {order}")
    return [
        StoredAnswer(problem=kind.name, fields={name: row[name] for name in kind.parameters}, row=row)
        for row in found.to_pylist()
        if problems is None or row["problem_id"] in problems
    ]


def brackets(store: Store, kind: type[Problem]) -> Iterator[tuple[Mapping[str, Any], Bracket]]:
    """Yield the fields and the best proved bracket of every stored problem of a kind.

    Brackets whose ends contradict one another are left out.
    """
    rows = f"from best where problem = '{kind.name}' order by {quoted(kind.parameters)}"
    found = stored_brackets(store, list(kind.parameters), rows)
    return ((row, bracket) for row, bracket in found if not bracket.crossed)


def conflicts(store: Store) -> list[Mapping[str, Any]]:
    """Return the pairs of methods that contradict one another, with the id of the problem."""
    if not store.sql("from best where lower > upper limit 1").num_rows:
        return []  # the view conflicts joins all rows of the store, which takes ten times as long
    found = stored_brackets(store, ["problem_id", "problem"], "from conflicts order by all")
    return [
        row | {"lower_method": bracket.lower_by, "upper_method": bracket.upper_by} for row, bracket in found
    ]


ORIGIN_TITLE = "Origin of the numbers"
_MOST = 4
"""Most names in a line."""


def provenance(
    answers: Sequence[StoredAnswer], *, degraded: bool = False
) -> list[Heading | TextTable | Paragraph]:
    """Return the last section of a report.

    Args:
        answers: All stored rows that the report uses.
        degraded: Whether damaged parts of the store were skipped.
    """
    rows = [answer.row for answer in answers]
    methods = sorted({(row["method"], row["method_version"]) for row in rows})
    told = [[name, str(number), *_claims(name)] for name, number in methods]
    code = sorted({commit_text(row["git_commit"], row["git_dirty"]) for row in rows})
    packages = sorted({row["versions"] for row in rows})
    times = [row["finished_at"] for row in rows]
    origin = [["release of this report", version("privsweep")], ["schema of the store", str(SCHEMA_VERSION)]]
    origin += [["sweeps", ", ".join(sorted({row["sweep"] for row in rows}))]]
    origin += [["commit", each] for each in code]
    origin += [["packages", _packages(text)] for text in packages]
    origin += [["hosts", ", ".join(sorted({row["host"] for row in rows}))]]
    if times:
        first, last = (f"{when:%Y-%m-%d %H:%M} UTC" for when in (min(times), max(times)))
        origin += [["computed", first if first == last else f"{first} to {last}"]]
    told_of = (
        f"This report shows {counted(len(answers), 'stored row')}. "
        "Numbers that were computed for the report itself are named as such."
    )
    if degraded:
        told_of += (
            " Damaged and missing parts of the store were skipped, so answers may be missing from this "
            "report; `privsweep verify` lists these parts."
        )
    return [
        Heading(text=ORIGIN_TITLE),
        Paragraph(text=told_of),
        *_conditions(answers),
        *_imports(answers),
        TextTable(title="Methods", names=["method", "version", "claims", "reference"], rows=told),
        TextTable(title="Origin", names=["item", "value"], rows=origin),
    ]


def _conditions(answers: Sequence[StoredAnswer]) -> list[Paragraph]:
    """Return a paragraph for each neighbouring relation and each assumption behind the answers."""
    found: dict[tuple[str, str], None] = {}
    for name in dict.fromkeys(answer.problem for answer in answers):
        kind = find_problem(name)
        for fields in (answer.fields for answer in answers if answer.problem == name):
            found.update(dict.fromkeys(condition_lines(kind.from_fields(fields))))
    said = [Paragraph(text=f"{name.capitalize()}: {text}.") for name, text in found]
    rest = len(said) - _MOST
    return [*said[:_MOST], *([Paragraph(text=f"And {rest} more assumptions.")] if rest > 0 else [])]


def _imports(answers: Sequence[StoredAnswer]) -> list[Paragraph]:
    """Return a paragraph about the rows of each published table."""
    counts = Counter(table for answer in answers for table in tables_of(answer.method))
    return [
        Paragraph(text=f"Imported: {counted(n, 'row')} of the lookup table {table}, {NOT_RECOMPUTED}.")
        for table, n in sorted(counts.items())
    ]


def source(answers: Sequence[StoredAnswer]) -> str:
    """Return a line for each figure of a report, by which a single figure can be traced.

    Args:
        answers: All stored rows that the report uses.
    """
    rows = [answer.row for answer in answers]
    sweeps = sorted({str(row["sweep"]) for row in rows})
    commits = sorted({commit_text(row["git_commit"][:12], row["git_dirty"]) for row in rows})
    last = max((f"{row['finished_at']:%Y-%m-%d}" for row in rows), default="never")
    told = [f"sweep {_some(sweeps)}", f"commit {_some(commits)}"]
    tables = sorted(tables_of(*(answer.method for answer in answers)))
    told += [f"{NOT_RECOMPUTED} from {_some(tables)}"] if tables else []
    return ", ".join([f"privsweep {version('privsweep')}", *told, f"computed until {last}"])


def _some(words: Sequence[str]) -> str:
    """Return the words in a line, abbreviated if there are many."""
    return (
        " ".join(words) if len(words) <= _MOST else f"{' '.join(words[:_MOST])} and {len(words) - _MOST} more"
    )


def _claims(name: str) -> list[str]:
    """Return the direction and the reference of a method, or a note if it is unknown to this release."""
    try:
        method = find(name)
    except PrivsweepError:
        return ["", "unknown to this release"]
    return [method.direction.value, method.reference]


def _packages(text: str) -> str:
    """Return the versions of packages in a line."""
    try:
        found = object_in(text)
        return ", ".join(f"{name} {number}" for name, number in sorted(found.items()))
    except StoreError:
        return text[:60]
