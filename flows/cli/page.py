"""Commands for the lookup page: build it as files, or serve it with live computation."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_STORE, AllowDegraded, Json, StorePath, reading_or_shipped
from flows.printing import as_json, note, say
from flows.terminal.window import fresh_line
from privcore.extras import require


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
