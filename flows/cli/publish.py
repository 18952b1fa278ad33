"""Commands that publish the answers of a store: lookup tables, and the lookup page as files or served."""

import shlex
import sys
from collections import Counter
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import AllowDegraded, Json, NewStorePath, StorePath, reading_or_shipped
from flows.printing import as_json, note, say
from flows.printing import show as show_table
from flows.spec.words import DEFAULT_STORE
from flows.terminal.window import fresh_line
from privcore import DomainError, ExitCode
from privcore.extras import require
from storage.errors import StoreError
from storage.schema import import_content, origin_text

if TYPE_CHECKING:
    from storage.table.lookup_table import LookupTable

TableFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="Lookup table, a Parquet file; default: the shipped table."),
]


def publish(
    store: StorePath = DEFAULT_STORE,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the files lookup-<version>.*.")
    ] = Path(),
    json: Json = False,
) -> None:
    """Write all answers of a store into one Parquet file, and its Croissant description next to it."""
    from storage import open_store
    from storage.place.located import not_address
    from storage.table.croissant import write_description
    from storage.table.lookup_table import lookup_table, write_lookup_table

    not_address(out, "folder")
    with open_store(store) as opened:
        table = lookup_table(opened)
    path = out / f"lookup-{table.version}.parquet"
    write_lookup_table(table, path)
    about = write_description(table, path)
    content = {"file": str(path), "about": str(about), "version": table.version, "rows": len(table.rows)}
    _print(content, json, table)


def show(file: TableFile = None, json: Json = False) -> None:
    """Check a lookup table, and print its version and its number of rows for each problem."""
    from storage.table.lookup_table import read_lookup_table

    table = read_lookup_table(file or _shipped())
    counts = Counter(table.rows["problem"].to_pylist())
    content: dict[str, Any] = {"version": table.version, "rows": len(table.rows)}
    if json:
        _print({**content, "problems": dict(sorted(counts.items()))}, json, table)
        return
    _print(content, json, table)
    for problem, count in sorted(counts.items()):
        say(f"{count:>9}  {problem}")


def import_(
    file: TableFile = None,
    store: NewStorePath = DEFAULT_STORE,
    check: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Recompute N drawn rows first, and all rows of quick methods; 0 recomputes none.",
        ),
    ] = 20,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="NUMBER", help="Seed of the drawn rows; default: a new one, which is printed."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute a sample of a lookup table, and copy its rows, marked as imported, into a store.

    Nothing is imported if a recomputed bracket contradicts the table.
    """
    from flows.runs.recompute import check_import, new_seed
    from storage.place.located import located
    from storage.table.lookup_table import import_lookup_table, read_lookup_table

    table = read_lookup_table(file or _shipped())
    place = located(store)
    draw = new_seed() if seed is None else seed
    again = check_import(table, check, draw)
    if again.wrong:
        how = "contradicts the table" if again.apart else "differs from the table"
        raise StoreError(f"Nothing was imported, since a recomputed row {how}: {again.wrong[0]}")
    if again.skipped:
        rows = "1 drawn row was" if len(again.skipped) == 1 else f"{len(again.skipped)} drawn rows were"
        note(f"{rows} not recomputed: {again.skipped[0]}.")
    parts = import_lookup_table(table, place)
    content = {"version": table.version, "rows": len(table.rows), "parts": len(parts), "store": place.name}
    _print({**content, "checked": again.rows, "seed": draw}, json, table)


def remove(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Version of the imported table.")],
    store: StorePath = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Delete the rows that were imported from a lookup table, and no others."""
    from storage.compaction import remove as remove_rows
    from storage.place.located import located

    place = located(store)
    _print({"version": version, "removed": remove_rows(place, version), "store": place.name}, json)


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Older lookup table.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Newer lookup table.")],
    json: Json = False,
) -> None:
    """Compare two lookup tables: common brackets, moved brackets. Exits with 1 on a contradiction."""
    from storage.table.lookup_table import Moved, compare, read_lookup_table

    tables = [read_lookup_table(path) for path in (old, new)]
    moved = compare(*tables)
    disjoint = sum(one.disjoint for one in moved)
    if json:
        versions = {"old": tables[0].version, "new": tables[1].version}
        say(as_json({**versions, "problems": [asdict(one) for one in moved]}, indent=1))
    else:
        say(f"{tables[0].version} to {tables[1].version}")
        names = [field.name for field in fields(Moved)]
        show_table(names, [[str(cell) for cell in asdict(one).values()] for one in moved])
        if disjoint:
            say(f"{disjoint} brackets contradict one another: one of the tables is wrong")
    if disjoint:
        raise typer.Exit(ExitCode.FAILED)


def _shipped() -> Path:
    """Return the path of the shipped table, or raise an error."""
    from storage.table.shipped import shipped_file

    if (path := shipped_file()) is None:
        raise DomainError("Expected the path of a lookup table: this installation has no shipped table.")
    return path


def _print(content: dict[str, Any], json: bool, table: "LookupTable | None" = None) -> None:
    """Print facts, and on standard error a note on rows that the author of a table had not computed."""
    if table is not None and (sources := table.sources):
        rows = f"{sum(sources.values())} of {len(table.rows)} rows of the table {table.version} had been "
        note(origin_text(sources, rows, "; an import of this table marks them with its own version."))
        content |= import_content(sources) if json else {}
    say(as_json(content) if json else "\n".join(f"{key:<8} {value}" for key, value in content.items()))


def build(
    store: StorePath = DEFAULT_STORE,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder to write; an older page in it is replaced.")
    ] = Path("page"),
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Write a static folder that answers from the store in a browser, without a backend."""
    from flows.page.build import build as build_page
    from flows.runs.progress import size

    with reading_or_shipped(store, allow_degraded=allow_degraded) as opened:
        built = build_page(opened, out)
    if built.conflicts:
        several = _counted(built.conflicts, "problem")
        note(f"The store contradicts itself about {several}; see the view conflicts and `privsweep verify`.")
    if json:
        content = {"out": str(built.out), "version": built.version, "rows": built.rows}
        say(as_json(content | {"problems": built.problems, "bytes": built.bytes}, indent=1))
        return
    held = f"{_counted(built.rows, 'row')} of {_counted(len(built.problems), 'problem')}"
    say(f"{built.out}: {held}, {size(built.bytes)}, table {built.version}")
    say(f"to view it: python3 -m http.server --directory {shlex.quote(str(built.out))} --bind 127.0.0.1")


def serve(
    store: StorePath = DEFAULT_STORE,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port to listen on; 0 chooses a free port.")
    ] = 8730,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Serve the lookup page on this machine only, and also compute new answers. Ctrl-C stops it."""
    require("uvicorn", "`privsweep serve`")
    from flows.page.serve import serve as serve_page

    def ready(address: str) -> None:
        say(as_json({"address": address}) if json else f"{address}  (Ctrl-C ends it)", flush=True)

    with reading_or_shipped(store, allow_degraded=allow_degraded) as opened:
        serve_page(opened, port, ready)
    fresh_line(sys.stderr)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
