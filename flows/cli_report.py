"""Commands that turn a store into something to look at: report figures."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli_options import DEFAULT_STORE, FAILED, Json, StorePath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flows.figures.curves import Picture

UNCOVERED = 3


def register(app: typer.Typer) -> None:
    """Add `report figures` to the command line."""
    report = typer.Typer(help="What a store holds, to look at; nothing is computed.", no_args_is_help=True)
    report.callback()(lambda: None)  # else typer would take the only command for the group
    report.command("figures")(figures)
    app.add_typer(report, name="report")


def figures(
    store: StorePath = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")] = Path("figures"),
    figure: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Draw this one; may stand repeatedly.")
    ] = None,
    kind: Annotated[str, typer.Option("--format", help="png, svg or pdf.")] = "png",
    json: Json = False,
) -> None:
    """The figures of arXiv:2502.08202 from the sweeps figure1, ..., figure9, as far as they are stored."""
    from flows.figures.curves import picture
    from flows.figures.draw import FORMATS, draw
    from flows.figures.paper import FIGURES
    from flows.printing import as_json
    from privcore import DomainError

    if kind not in FORMATS:
        raise DomainError(f"Expected --format in {{{', '.join(FORMATS)}}}, got {kind}.")
    known = {each.number: each for each in FIGURES}
    for number in figure or []:
        if number not in known:
            raise DomainError(f"Expected --figure in {{1, ..., {max(known)}}}, got {number}.")
    pictures = [picture(known[number], store) for number in dict.fromkeys(figure or known)]
    content: list[dict[str, Any]] = []
    for each in pictures:
        path = None if each.empty else out / f"{each.figure.sweep}.{kind}"
        if path is not None:
            out.mkdir(parents=True, exist_ok=True)
            draw(each, path, kind)
            if not json:
                print(path, flush=True)
        content.append(_content(each, path))
        for sentence in complaints(each, store):
            print(f"privsweep: {sentence}", file=sys.stderr)
    if json:
        print(as_json(content, indent=1))
    if any(each.empty for each in pictures):
        raise typer.Exit(UNCOVERED)
    if any(each.missing or each.failed for each in pictures):
        raise typer.Exit(FAILED)


def complaints(picture: "Picture", store: Path) -> list[str]:
    """Return one sentence for what is not stored of a figure, and one for what failed."""
    number, total = picture.figure.number, picture.points
    command = f"privsweep run {picture.figure.sweep}"
    command += f" --store {shlex.quote(str(store))}" if store != DEFAULT_STORE else ""
    if picture.empty:
        return [f"Figure {number} is not drawn: nothing of it is stored in {store}; `{command}` computes it."]
    sentences = []
    if missing := sum(picture.missing.values()):
        sentences.append(
            f"Figure {number} lacks {missing} of {total} points, which are not stored "
            f"({_listed(picture.missing)}); `{command}` computes them."
        )
    if failed := sum(picture.failed.values()):
        sentences.append(
            f"Figure {number} lacks {failed} of {total} points, which failed "
            f"({_listed(picture.failed)}); `{command} --retry` tries again."
        )
    return sentences


def _listed(counts: "Mapping[str, int]") -> str:
    return ", ".join(f"{method} {count}" for method, count in counts.items())


def _content(picture: "Picture", path: Path | None) -> dict[str, Any]:
    return {
        "figure": picture.figure.number,
        "sweep": picture.figure.sweep,
        "file": None if path is None else str(path),
        "points": picture.points,
        "missing": picture.missing,
        "failed": picture.failed,
    }
