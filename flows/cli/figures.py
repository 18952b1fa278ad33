"""The commands that draw the figures of a paper: from a store, or after its sweeps."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.options import (
    AllowDegraded,
    Json,
    NewStorePath,
    StorePath,
    Workers,
    reading,
    shown,
)
from flows.cli.sweep import run
from flows.figures.draw import FORMATS, draw
from flows.figures.figure import Figure, Picture, picture
from flows.figures.papers import PAPERS, SWEEPS
from flows.printing import as_json, note, say
from flows.spec.words import DEFAULT_STORE
from privcore import DomainError, ExitCode
from privcore.extras import require
from storage.located import outside_stores
from storage.schema import import_content

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the files.")]
Format = Annotated[
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
    out: Out = Path("figures"),
    figure: Names = None,
    kind: Format = "png",
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
        except typer.Exit as ended:  # some points failed: the figures say which
            if ended.exit_code != ExitCode.FAILED:
                raise
    figures(paper, store, out, figure, kind)


def figures(
    paper: Annotated[str, PAPER] = "allocation",
    store: StorePath = DEFAULT_STORE,
    out: Out = Path("figures"),
    figure: Names = None,
    kind: Format = "png",
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
        out: Out = Path("figures"),
        figure: Names = None,
        kind: Format = "png",
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
