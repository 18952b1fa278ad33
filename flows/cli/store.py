"""Commands that query a store: sql and export."""

import contextlib
import io
import itertools
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from flows.cli.options import (
    AllowDegraded,
    Json,
    Keep,
    StorePath,
    at_least_zero,
    reading,
    reading_or_shipped,
)
from flows.printing import note, show
from flows.spec.words import DEFAULT_STORE
from privcore import DomainError, ExitCode

LimitSeconds = Annotated[
    float, typer.Option(callback=at_least_zero, metavar="NUMBER", help="Time limit of the query, in seconds.")
]

GRACE_SECONDS = 3.0
"""Seconds in which an interrupted query must end."""

MOST_BYTES = 5_000_000_000
"""Largest growth of memory during a step of a query: DuckDB's own limit, and the process around it."""


def sql(
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="One SELECT over the views results, best, conflicts, failures, ...; also a file .sql, or - "
            "for standard input.",
        ),
    ],
    store: StorePath = DEFAULT_STORE,
    limit_seconds: LimitSeconds = 60.0,
    keep: Keep = False,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with all digits.")] = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Run a SELECT over a store; docs/sql.md describes the views."""
    from flows.answers.export import FORMATS, rows_of

    if json and csv:
        raise DomainError("Expected --json or --csv, got both.")

    def use(pieces: Iterator[Any]) -> None:
        if json or csv:
            with _output(None) as file:
                FORMATS["json" if json else "csv"](pieces, file)
        else:
            for k, piece in enumerate(pieces):
                show(piece.column_names, rows_of(piece), continued=k > 0)

    _queried(store, query, use, limit_seconds, allow_degraded, keep)


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
    """Write the result of a SELECT as CSV, Parquet, JSON, Markdown or LaTeX.

    Markdown and LaTeX round the numbers of columns named lower and upper outwards to four digits; everything
    else, and the other formats, keep all digits.
    """
    from flows.answers.export import FORMATS, chosen_format, target_of
    from storage.export import store_sql as statements

    if (query is None) != store_sql:
        raise DomainError("Expected either a query or --store-sql.")
    target = None if out is None else target_of(out)
    if query is None:
        with reading(store, allow_degraded=allow_degraded, missing_ok=False) as opened:
            content = statements(opened.place).encode()
        with _output(target) as file:
            file.write(content)
        return
    name = chosen_format(format, out)
    if name == "parquet" and out is None:
        raise DomainError("Expected --out FILE for the format parquet.")

    def use(pieces: Iterator[Any]) -> None:
        with _output(target) as file:
            FORMATS[name](pieces, file)

    _queried(store, query, use, limit_seconds, allow_degraded)


@contextlib.contextmanager
def _output(target: Path | None) -> Iterator[BinaryIO]:
    """Yield a new file, which replaces the target if the block ends without an error; or standard output."""
    from storage.place.disk import replacing

    if target is None:
        sys.stdout.flush()
        if hasattr(sys.stdout, "buffer"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        else:  # the output of a notebook
            kept = io.BytesIO()
            yield kept
            sys.stdout.write(kept.getvalue().decode())
    else:
        with replacing(target) as temporary, temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())


def _queried(
    store: Path,
    query: str,
    use: Callable[[Iterator[Any]], None],
    limit_seconds: float,
    allow_degraded: bool,
    keep: bool = False,
) -> None:
    """Pass the result of a query to a function, as a table in pieces."""
    from flows.answers.export import assumed_in, query_in, superseded_in, tables_in
    from flows.answers.held import CertifiedEpsilon
    from flows.answers.held import keep as kept

    query = query_in(query)
    with reading_or_shipped(store, allow_degraded=allow_degraded) as opened:
        opened.sql("select 1")  # builds the views if necessary, outside of the time limit
        certified = CertifiedEpsilon(opened, limit_seconds)

        def watched(pieces: Iterator[Any]) -> Iterator[Any]:
            while True:
                with _ended(limit_seconds):
                    piece = next(pieces, None)
                if piece is None:
                    return
                yield piece

        def read(pieces: Iterator[Any]) -> None:
            rest = watched(pieces)
            first = next(rest)  # an error of the query comes before any note and any new file
            facts = (about(query, opened) for about in (assumed_in, tables_in, superseded_in))
            note(*filter(None, facts))
            use(itertools.chain([first], rest))

        opened.stream(query, read, limit_seconds=limit_seconds, functions=[certified.function])
        note(*filter(None, [certified.note]))
        if keep:
            kept(opened, certified.answers.values())


@contextlib.contextmanager
def _ended(limit_seconds: float) -> Iterator[None]:
    """Exit with code 4 if a step of a query exceeds its limits and cannot be interrupted.

    DuckDB checks neither time nor memory during a single call of a function, such as `range(1000000000)`,
    and a thread cannot be killed.
    """
    done = threading.Event()

    def watch() -> None:
        end, most = time.monotonic() + limit_seconds + GRACE_SECONDS, _peak_bytes() + MOST_BYTES
        while not done.wait(0.1):
            if (late := time.monotonic() > end) or _peak_bytes() > most:
                reason = f"took longer than {limit_seconds:g} s" if late else "needs too much memory"
                note(f"The query {reason}.")
                os._exit(ExitCode.LIMIT)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _peak_bytes() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
