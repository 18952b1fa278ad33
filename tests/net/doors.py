"""The doors at which users ask: command line, Python, page server and SQL, each with the answer it gives."""

import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dp_accounting

import privsweep as ps
from flows.answers.held import CertifiedEpsilon
from flows.answers.parse import DROP_LAST, completed, problem_of
from flows.answers.question import COMPARED, adjacency_of, phases_of, question
from flows.cli import app as cli
from flows.page import live
from flows.printing import as_json
from privcore import Answer, Problem
from privcore.accountant import PrivsweepAccountant, from_opacus
from privcore.training import from_sizes, written
from storage import Store, open_store
from storage.sql.macros import literal
from storage.sql.views import view_name
from storage.table.shipped import FOLDER, VARIABLE, shipped_store
from tests.storage.made_up import epsilon, put, row

Ends = tuple[float, float]

RELATIONS = {
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": dp_accounting.NeighboringRelation.REPLACE_SPECIAL,
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
}
ONE_METHOD = ("balls-in-bins", "fixed-size", "with-replacement", "truncated-poisson")
"""Samplers whose questions have one method, so that `ask`, which uses all, is quick."""


def command(*words: object) -> Any:
    """Return the JSON that a command prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = cli.run([*map(str, words), "--json"])
    assert printed.getvalue(), f"exit code {code}: {words}"
    return json.loads(printed.getvalue())


def options(given: Mapping[str, Any]) -> list[str]:
    """Return arguments as the options of a command."""
    return [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in given.items()
    ]


def typed(problem: Problem) -> list[str]:
    """Return the fields of a problem as the words of a command."""
    return [f"{name}={value}" for name, value in problem.as_fields().items()]


@contextmanager
def table_shipped() -> Iterator[Store]:
    """Answer from the table of the package inside the block, and from nothing stored outside."""
    (file,) = FOLDER.glob("lookup-*.parquet")
    with patch.dict(os.environ, {VARIABLE: str(file)}):
        store = shipped_store()
        assert store is not None
        yield store


class Doors:
    """All doors, in an empty folder; the process of the page server starts when it is asked first."""

    def __init__(self) -> None:
        self.desk: live.Desk | None = None

    def page(self, problem: Problem) -> Any:
        """Return the answer of the page server."""
        if self.desk is None:
            self.desk = live.Desk().__enter__()
        asked = {"problem": problem.name, "fields": problem.as_fields()}
        with patch.object(live, "PER_MINUTE", 10**9):  # a person types fewer
            return json.loads(as_json(self.desk.answer(json.dumps(asked).encode())))

    def sql(self, sampling: str, given: Mapping[str, Any]) -> Ends:
        """Return the ends that the SQL function gives for a run."""
        listed = ", ".join(f"{name} := {literal(value)}" for name, value in given.items())
        if not Path("other").exists():
            put(Path("other"), row(epsilon(), Answer.enclosure(4.37717, 4.37718)))  # a query needs a store
        with open_store("other") as store:
            query = f"select certified_epsilon(sampling := '{sampling}', {listed}) as found"
            (one,) = store.sql(query, functions=[CertifiedEpsilon(store).function]).to_pylist()
        return one["found"]["lower"], one["found"]["upper"]

    def looked_up(self, problem: Problem, door: int) -> Iterator[tuple[str, Ends | None]]:
        """Yield the bracket in the shipped table from Python, and by SQL or the command; None without an end.

        Args:
            problem: The question.
            door: 1 for SQL, 2 for the command; they take longer.
        """
        with table_shipped() as store:
            found = store.lookup(problem)
            yield "Store.lookup", None if found is None else (found.lower, found.upper)
            if door == 1:
                given = ", ".join(
                    f"{name} := {literal(value)}" for name, value in problem.as_fields().items()
                )
                (said,) = ps.sql(f"from {view_name(problem.name)}_at({given})").arrow.to_pylist()
                nothing = not (said["lower_method"] or said["upper_method"])
                yield "ps.sql", None if nothing else (said["lower"], said["upper"])
            if door == 2 and found and found.upper_method:
                said = command("lookup", problem.name, *typed(problem))
                yield "privsweep lookup", (said["lower"], said["upper"])

    def run(self, sampling: str, given: Mapping[str, Any]) -> Iterator[tuple[str, Ends]]:
        """Yield the ends of a run at every door that has this sampler and relation."""
        problem = run(sampling, given)
        found = ps.epsilon(sampling=sampling, **given)
        yield "ps.epsilon", (found.lower, found.upper)
        phases, relation, delta = written(phases_of(problem)), adjacency_of(problem), given["delta"]
        found = ps.ask("run-epsilon", phases=phases, adjacency=relation, delta=delta)
        yield "ps.ask run-epsilon", (found.lower, found.upper)
        if sampling in ONE_METHOD:
            fields: dict[str, Any] = problem.as_fields()
            found = ps.ask(problem.name, **fields)
            yield "ps.ask", (found.lower, found.upper)
        yield "certified_epsilon", self.sql(sampling, given)
        if sampling in ("allocation", "none") and given["adjacency"] == "add-remove":
            shared = {name: value for name, value in given.items() if name != "adjacency"}
            steps = {} if "examples" in given else {"steps": given.get("steps", 1)}
            compared = ps.compare(**{**shared, **steps})
            yield "ps.compare", (compared[sampling].lower, compared[sampling].upper)
        if given.get("drop_last"):
            words = {name: value for name, value in given.items() if name in COMPARED}
            found = ps.compare(**words)[DROP_LAST]
            yield "ps.compare", (found.lower, found.upper)
            said = self.page(problem)
            yield "page", (said["lower"], said["upper"])
        yield from by_accountant(sampling, problem)
        said = command("epsilon", "--sampling", sampling, *options(given))
        yield "privsweep epsilon", (said["lower"], said["upper"])


def run(sampling: str, given: Mapping[str, Any]) -> Problem:
    """Return the problem of a training run."""
    if "drop_last" in given:
        return question({"sampling": sampling, **given}).problem
    return from_sizes(problem_of(sampling), completed(sampling, given))


def by_accountant(sampling: str, problem: Problem) -> Iterator[tuple[str, Ends]]:
    """Yield the intervals of the accountants that have this sampler and relation."""
    fields: dict[str, Any] = problem.as_fields()
    relation = RELATIONS.get(fields["adjacency"])
    if relation is None or "sigma" not in fields:
        return
    noise, times = dp_accounting.GaussianDpEvent(fields["sigma"]), fields["steps"] * fields["epochs"]
    rate, size = fields.get("sampling_probability"), fields.get("examples")
    event = {
        "poisson": lambda: dp_accounting.PoissonSampledDpEvent(rate, noise),
        "none": lambda: noise,
        "with-replacement": lambda: dp_accounting.SampledWithReplacementDpEvent(
            size, fields["batch_size"], noise
        ),
        "truncated-poisson": lambda: dp_accounting.TruncatedSubsampledGaussianDpEvent(
            size, rate, fields["largest_batch"], fields["sigma"]
        ),
    }.get(sampling)
    if event is None:
        return
    times = times if sampling != "none" else fields["epochs"]
    sensitivity = 2 if fields["adjacency"] == "replace-one" else None
    accountant = PrivsweepAccountant(relation, sensitivity)
    yield "accountant", accountant.compose(event(), times).get_epsilon_interval(fields["delta"])
    if sampling == "poisson":
        opacus = from_opacus([(fields["sigma"], rate, times)], "poisson", fields["adjacency"])
        yield "Opacus", opacus.get_epsilon_interval(fields["delta"])


@contextmanager
def opened() -> Iterator[Doors]:
    """Yield all doors, in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="net-") as folder, chdir(folder):
        doors = Doors()
        try:
            yield doors
        finally:
            if doors.desk is not None:
                doors.desk.__exit__()
