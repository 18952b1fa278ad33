"""Stored rows for a report: answers of methods, and the brackets of a kind of problem."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flows.answers.ask import UncoveredError
from flows.answers.sweep_table import stored_brackets
from privcore import Bracket, Problem, Status
from privcore.answer import attributed
from privcore.parameter import Value
from storage import Store
from storage.views import current, quoted, source_of, view_name

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
