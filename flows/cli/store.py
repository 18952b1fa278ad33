"""Commands that read a store: lookup, sql and export."""

import contextlib
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.answers.ask import is_tight
from flows.cli.completion import problems_and_sweeps
from flows.cli.options import (
    DEFAULT_STORE,
    AllowDegraded,
    Explain,
    Json,
    StorePath,
    at_least_zero,
    finish,
    reading,
    waiting,
)
from flows.cli.options import LimitSeconds as ComputingSeconds
from flows.printing import exactly, show
from flows.spec.words import fields_from
from privcore import DomainError, ExitCode, Problem, find_problem
from privcore.training import from_sizes

if TYPE_CHECKING:
    from storage import Found, Store

LimitSeconds = Annotated[
    float, typer.Option(callback=at_least_zero, help="Time limit of the query, in seconds.")
]

TIGHT = 0.01
"""Largest relative width at which a bracket from other grid points is accepted as an answer."""


GRACE_SECONDS = 3.0
"""Seconds in which an interrupted query must end."""

MOST_BYTES = 5_000_000_000
"""Largest growth of memory during a query: DuckDB's own limit, the result, and the process around them."""


def lookup(  # noqa: PLR0913  the options of a command are its arguments
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a problem, followed by its fields, or of a sweep.",
            autocompletion=problems_and_sweeps,
        ),
    ],
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE", help="Fields of the problem, such as sigma=1."),
    ] = None,
    *,
    store: StorePath = DEFAULT_STORE,
    compute: Annotated[
        bool,
        typer.Option(
            "--compute", help="Compute now if nothing is stored, or the stored bracket is wider than 5 %."
        ),
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Store the bounds that --compute computes.")] = False,
    limit_seconds: ComputingSeconds = 300.0,
    explain: Explain = False,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Print the stored bounds that cover a problem, or the table of a sweep. Computes only with --compute.

    With --compute, the answer is the intersection of the stored and the computed bracket.
    """
    from flows.answers.explain import explained
    from flows.answers.show import print_answer
    from flows.answers.sourced import from_store
    from flows.answers.sweep_table import show_sweep, sweep_named
    from flows.answers.tightened import keep as kept
    from flows.answers.tightened import tightened, width_aside
    from flows.cli.uncovered import uncovered

    if keep and not compute:
        raise DomainError("Expected --compute with --keep.")
    with reading(store, allow_degraded=allow_degraded) as opened:
        if not fields and (sweep := sweep_named(name, opened)) is not None:
            if explain or compute:
                option = "--explain" if explain else "--compute"
                raise DomainError(f"Expected a problem with its fields for {option}, got a sweep.")
            return show_sweep(sweep, opened, json)
        problem = from_sizes(find_problem(name), fields_from(fields or []))
        if compute:
            with waiting(f"computing {problem.name}"):
                found = opened.lookup(problem) if opened.exists else None
                answer = tightened(problem, found, limit_seconds=limit_seconds)
        elif (found := stored_answer(opened, problem, any_width=True)) is None:
            raise uncovered(opened, problem)
        else:
            answer = from_store(problem, found)
        explanation = explained(answer, opened) if explain and answer.ok else None
        asides = [width_aside(answer, None if store == DEFAULT_STORE else opened.name)] if answer.ok else []
        print_answer(answer, json, explanation, asides)
        if keep:
            kept(opened, answer)
    return finish(answer)


def sql(
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", help="One SELECT over the views results, best, conflicts, failures, ..."
        ),
    ],
    store: StorePath = DEFAULT_STORE,
    limit_seconds: LimitSeconds = 60.0,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with all digits.")] = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Run a SELECT over a store; docs/sql.md describes the views."""
    from flows.answers.export import FORMATS, rows_of

    if json and csv:
        raise DomainError("Expected --json or --csv, got both.")
    table = _queried(store, query, limit_seconds, allow_degraded)
    if json or csv:
        print(FORMATS["json" if json else "csv"](table).decode(), end="")
    else:
        show(table.column_names, [list(map(exactly, row)) for row in rows_of(table)])


def export(
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="One SELECT, as for `privsweep sql`.")
    ] = None,
    store: StorePath = DEFAULT_STORE,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="Format: csv, parquet, json, md or tex; default: as in --out, else csv."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write; default: standard output.")
    ] = None,
    store_sql: Annotated[
        bool,
        typer.Option("--store-sql", help="Write the views and macros for plain DuckDB, instead of a result."),
    ] = False,
    limit_seconds: LimitSeconds = 60.0,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Write the result of a SELECT as CSV, Parquet, JSON, Markdown or LaTeX."""
    from flows.answers.export import FORMATS, chosen_format, target_of
    from storage.disk import write_atomically
    from storage.export import store_sql as statements

    if (query is None) != store_sql:
        raise DomainError("Expected either a query or --store-sql.")
    target = None if out is None else target_of(out)
    if query is None:
        with reading(store, allow_degraded=allow_degraded, missing_ok=False) as opened:
            content = statements(opened.place).encode()
    else:
        name = chosen_format(format, out)
        if name == "parquet" and out is None:
            raise DomainError("Expected --out FILE for the format parquet.")
        content = FORMATS[name](_queried(store, query, limit_seconds, allow_degraded))
    if target is None:
        print(content.decode(), end="")
    else:
        write_atomically(target, content)


def _queried(store: Path, query: str, limit_seconds: float, allow_degraded: bool) -> Any:
    """Return the result of a query as a table."""
    with reading(store, allow_degraded=allow_degraded, missing_ok=False) as opened:
        opened.sql("select 1")  # builds the views if necessary, outside of the time limit
        with _ended(limit_seconds):
            return opened.sql(query, limit_seconds=limit_seconds)


@contextlib.contextmanager
def _ended(limit_seconds: float) -> Iterator[None]:
    """Exit with code 4 if a query exceeds its limits and cannot be interrupted.

    DuckDB checks neither time nor memory during a single call of a function, such as `range(1000000000)`,
    and a thread cannot be killed.
    """
    done = threading.Event()

    def watch() -> None:
        end, most = time.monotonic() + limit_seconds + GRACE_SECONDS, _peak_bytes() + MOST_BYTES
        while not done.wait(0.1):
            if (late := time.monotonic() > end) or _peak_bytes() > most:
                reason = f"took longer than {limit_seconds:g} s" if late else "needs too much memory"
                print(f"privsweep: The query {reason}.", file=sys.stderr, flush=True)
                os._exit(ExitCode.LIMIT)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _peak_bytes() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# ------------------------------------------------------------------------------ answers from a store


def stored_answer(store: "Store", problem: Problem, *, any_width: bool) -> "Found | None":
    """Return the stored bracket of a problem, or None if it is not good enough for an answer.

    Args:
        store: Opened with `missing_ok`.
        problem: The question.
        any_width: Whether any upper bound is enough, and an exact hit even without an upper bound. Otherwise
            the problem itself must be stored with both ends, or the bracket from its neighbours be tight.

    Raises:
        StoreError: The folder is not a store, or the store is damaged or has a newer format.
    """
    if not store.exists:
        return None
    found = store.lookup(problem)
    if found is None or is_tight(found, TIGHT):
        return found
    both = found.exact and found.lower_method and found.upper_method
    worth = found.exact or found.upper_method if any_width else both
    return found if worth else None
