"""Commands that write reports: `report SWEEP`, and comparisons of stored results."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.options import AllowDegraded, Json, StorePath, reading
from flows.printing import as_json, note, say
from flows.spec.words import DEFAULT_STORE
from privcore import DomainError, ExitCode

if TYPE_CHECKING:
    from flows.reports.document import Document
    from storage import Store

Out = Annotated[
    Path,
    typer.Option(metavar="PATH", help="Folder for the files; or the report itself, a file .html or .md."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format of the report: html, md or both; default: as in --out, else html.",
    ),
]
Figures = Annotated[
    bool, typer.Option("--figures", help="Also write every chart as SVG and PDF; md always does.")
]
AllSettings = Annotated[
    bool,
    typer.Option(
        "--all-settings", help="Write the charts of all settings, not only of the first; implies --figures."
    ),
]
DEFAULT_OUT = Path("reports")


def sweep(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SWEEP", help="Name of a sweep, embedded or already run on the store, or a TOML file."
        ),
    ],
    store: StorePath = DEFAULT_STORE,
    out: Out = DEFAULT_OUT,
    kind: Format = None,
    figures: Figures = False,
    all_settings: AllSettings = False,
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Report on a sweep: tables, charts, failures and provenance. Short form: `report SWEEP`."""
    from flows.answers.sweep_table import sweep_named
    from flows.reports.sweep_report import sweep_report

    def make(opened: "Store") -> "Document":
        asked = sweep_named(name, opened)
        if asked is None:
            raise DomainError(
                f"Expected the name of a sweep, got the problem {name}; "
                "`privsweep status` lists the sweeps of a store."
            )
        return sweep_report(asked, opened)

    with reading(store, allow_degraded=allow_degraded) as opened:
        _write(lambda: make(opened), out, kind, figures, all_settings, json)


def _comparison(name: str, what: str) -> Callable[..., None]:
    """Return the command that writes a comparison, made by the function of that name in its own module."""

    def command(
        store: StorePath = DEFAULT_STORE,
        out: Out = DEFAULT_OUT,
        kind: Format = None,
        figures: Figures = False,
        all_settings: AllSettings = False,
        json: Json = False,
        allow_degraded: AllowDegraded = False,
    ) -> None:
        make = getattr(import_module(f"flows.reports.{name}"), name)
        with reading(store, allow_degraded=allow_degraded) as opened:
            _write(lambda: make(opened), out, kind, figures, all_settings, json)

    command.__doc__ = what
    return command


compare_training = _comparison(
    "compare_training",
    "Compare allocation, Poisson sampling, shuffling and no amplification at equal settings.",
)
compare_labels = _comparison(
    "compare_labels", "Compare bags of labels with the randomized response that reveals as much."
)
compare_audits = _comparison(
    "compare_audits",
    "Compare the epsilon that audits refute, planned and on training runs, with the true epsilon.",
)
compare_membership = _comparison(
    "compare_membership",
    "Compare all bounds of membership inference on the same problem, one interval below another.",
)


def _write(
    make: "Callable[[], Document]", out: Path, kind: str | None, figures: bool, all_settings: bool, json: bool
) -> None:
    """Write a report, and print its files and its missing parts."""
    from flows.reports.charts import NEEDED, available
    from flows.reports.files import target, write

    target(out, kind)  # rejects a wrong place before the report is made
    figures = figures or all_settings
    if figures and not available():
        raise DomainError(NEEDED)
    document = make()
    written = write(document, out, kind, figures=figures, all_settings=all_settings)
    if json:
        say(as_json(written, indent=1))
    else:
        say(*written["files"], sep="\n", flush=True)
    note(*document.incomplete, *([] if available() else [NEEDED]))
    if document.incomplete:
        raise typer.Exit(ExitCode.FAILED)
