"""Commands that write reports and draw the figures of papers."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import AllowDegraded, Json, NewStorePath, StorePath, Workers, reading, shown
from flows.cli.sweep import run
from flows.figures.draw import FORMATS, draw
from flows.figures.figure import Figure, Picture, picture
from flows.figures.papers import PAPERS, SWEEPS
from flows.printing import as_json, note, say
from flows.spec.words import DEFAULT_STORE
from privcore import DomainError, ExitCode
from privcore.extras import require
from storage.place.located import outside_stores
from storage.schema import import_content

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


Folder = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the files.")]
Kind = Annotated[
    str, typer.Option("--format", metavar="FORMAT", help="Format of the files: png, svg or pdf.")
]
Names = Annotated[
    list[str] | None,
    typer.Option("--figure", metavar="NAME", help="Figure to draw; repeat the option for several figures."),
]
PAPER = typer.Argument(metavar="PAPER", help="Paper: allocation, labels, auditing or membership.")


def reproduced(
    paper: Annotated[str, PAPER],
    store: NewStorePath = DEFAULT_STORE,
    out: Folder = Path("figures"),
    figure: Names = None,
    kind: Kind = "png",
    workers: Workers = None,
) -> None:
    """Compute the points that the figures of a paper need, and draw them. After Ctrl-C, it resumes.

    All sweeps of the paper run, also those that only its page of claims uses; with --figure, those of the
    figures. What is stored is not computed again.
    """
    known = _known(paper, figure, kind)
    require("matplotlib", "`privsweep figures`")
    chosen = [sweep for name in figure or () for sweep in known[name].sweeps]
    for sweep in dict.fromkeys(chosen if figure else SWEEPS[paper]):
        try:
            run(sweep, store=store, workers=workers)
        except typer.Exit as ended:  # some points have no answer: the figures say which
            if ended.exit_code != ExitCode.UNANSWERED:
                raise
    figures(paper, store, out, figure, kind)


def figures(
    paper: Annotated[str, PAPER] = "allocation",
    store: StorePath = DEFAULT_STORE,
    out: Folder = Path("figures"),
    figure: Names = None,
    kind: Kind = "png",
    json: Json = False,
    allow_degraded: AllowDegraded = False,
) -> None:
    """Draw the figures of a paper from the stored points of its sweeps; see docs/reports.md.

    Dots, and distributions of additive advantages of labels, are simulated again, which takes a few seconds.
    """
    known = _known(paper, figure, kind)
    outside_stores(out, "folder")
    require("matplotlib", "`privsweep report figures`")
    with reading(store, allow_degraded=allow_degraded) as opened:
        pictures = [picture(known[name], opened) for name in dict.fromkeys(figure or known)]
    _report(pictures, store, out, kind, json)


def _known(paper: str, figure: list[str] | None, kind: str) -> dict[str, Figure]:
    """Return the figures of a paper by name, or raise `DomainError` for an unknown word."""
    if paper not in PAPERS:
        raise DomainError(f"Expected a paper in {{{', '.join(PAPERS)}}}, got {paper}.")
    if kind not in FORMATS:
        raise DomainError(f"Expected --format in {{{', '.join(FORMATS)}}}, got {kind}.")
    known = {each.name: each for each in PAPERS[paper]}
    for name in figure or []:
        if name not in known:
            raise DomainError(f"Expected --figure in {{{_choices(list(known))}}}, got {name}.")
    return known


def _of_paper(paper: str) -> Callable[..., None]:
    """Return a command that draws the figures of one paper, as `figures PAPER` does."""

    def command(
        store: StorePath = DEFAULT_STORE,
        out: Folder = Path("figures"),
        figure: Names = None,
        kind: Kind = "png",
        json: Json = False,
        allow_degraded: AllowDegraded = False,
    ) -> None:
        """Draw the figures of one paper, as `report figures PAPER` does."""
        figures(paper, store, out, figure, kind, json, allow_degraded)

    return command


label_figures, audit_figures, membership_figures = map(_of_paper, ("labels", "auditing", "membership"))


def _choices(names: list[str]) -> str:
    """Return the names of figures; for numbered figures, only the first and the last."""
    return f"{names[0]}, ..., {names[-1]}" if names[0].isdecimal() else ", ".join(names)


def _report(pictures: Sequence[Picture], store: Path, out: Path, kind: str, json: bool) -> None:
    """Draw the stored points, and print the files, the fitted rates, and the missing points."""
    content: list[dict[str, Any]] = []
    for each in pictures:
        path = None if each.empty else out / f"{each.figure.stem}.{kind}"
        if path is not None:
            out.mkdir(parents=True, exist_ok=True)
            draw(each, path, kind)
            if not json:
                notes = [*each.notes, each.origin] if each.notes and each.origin else each.notes
                say(path, *(f"  {line}" for line in notes), sep="\n", flush=True)
        content.append(
            _identity(each)
            | {
                "file": None if path is None else str(path),
                "points": each.points,
                "missing": each.missing,
                "failed": each.failed,
            }
            | import_content(each.tables)
        )
        note(*_complaints(each, store))
    if json:
        say(as_json(content, indent=1))
    if any(each.empty for each in pictures):
        raise typer.Exit(ExitCode.UNCOVERED)
    if any(each.missing or each.failed for each in pictures):
        raise typer.Exit(ExitCode.FAILED)


def _identity(drawn: Picture) -> dict[str, Any]:
    """Return the first entries of a figure in JSON; numbered figures have one sweep each."""
    figure = drawn.figure
    if figure.name.isdecimal():
        return {"figure": int(figure.name), "sweep": figure.sweeps[0]}
    return {"figure": figure.name, "sweeps": list(figure.sweeps), "notes": list(drawn.notes)}


def _complaints(drawn: Picture, store: Path) -> list[str]:
    """Return one sentence about the missing points of a figure, and one about its failed points."""
    words, total = f"Figure {drawn.figure.name}", drawn.points
    option = f" --store {shlex.quote(shown(store))}" if store != DEFAULT_STORE else ""
    commands = [f"privsweep run {sweep}{option}" for sweep in drawn.figure.sweeps]
    runs = " and ".join(f"`{command}`" for command in commands)
    compute, again = ("computes", "tries") if len(commands) == 1 else ("compute", "try")
    if drawn.empty:
        return [f"{words} is not drawn: nothing of it is stored in {shown(store)}; {runs} {compute} it."]
    sentences = []
    if missing := sum(drawn.missing.values()):
        sentences.append(
            f"{words} lacks {missing} of {total} points, which are not stored "
            f"({_listed(drawn.missing)}); {runs} {compute} them."
        )
    if failed := sum(drawn.failed.values()):
        retries = " and ".join(f"`{command} --retry`" for command in commands)
        sentences.append(
            f"{words} lacks {failed} of {total} points, which failed "
            f"({_listed(drawn.failed)}); {retries} {again} again."
        )
    if drawn.origin:
        sentences.append(f"{words}: {drawn.origin}")
    return sentences


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{method} {count}" for method, count in counts.items())
