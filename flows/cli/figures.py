"""Commands that turn a store into something to look at: `report figures` and its like for other papers."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import DEFAULT_STORE, Json, StorePath, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flows.figures.allocation.curves import Picture
    from flows.figures.figure import Figure
    from flows.figures.panels import Picture as DrawnPicture

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")]
Format = Annotated[str, typer.Option("--format", help="png, svg or pdf.")]
Names = Annotated[
    list[str] | None, typer.Option("--figure", metavar="NAME", help="Draw this one; may stand repeatedly.")
]


@dataclass(frozen=True, kw_only=True)
class _Page:
    """A figure that is to become a file.

    Attributes:
        words: What it is called in sentences.
        stem: Name of the file.
        identity: Its first entries in JSON.
        sweeps: Those whose points it shows.
        picture: What is drawn.
        draw: Draws the picture into a file of a format.
    """

    words: str
    stem: str
    identity: dict[str, Any]
    sweeps: tuple[str, ...]
    picture: "Picture | DrawnPicture"
    draw: Callable[[Any, Path, str], None]


def figures(
    store: StorePath = DEFAULT_STORE,
    out: Out = Path("figures"),
    figure: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Draw this one; may stand repeatedly.")
    ] = None,
    kind: Format = "png",
    json: Json = False,
) -> None:
    """The figures of arXiv:2502.08202v3 from the sweeps figure1, ..., figure9, as far as they are stored."""
    from flows.figures.allocation.curves import picture
    from flows.figures.allocation.draw import draw
    from flows.figures.allocation.paper import FIGURES
    from privcore import DomainError

    _check_format(kind)
    known = {each.number: each for each in FIGURES}
    for number in figure or []:
        if number not in known:
            raise DomainError(f"Expected --figure in {{1, ..., {max(known)}}}, got {number}.")
    pictures = [picture(known[number], store) for number in dict.fromkeys(figure or known)]
    pages = [
        _Page(
            words=f"Figure {each.figure.number}",
            stem=each.figure.sweep,
            identity={"figure": each.figure.number, "sweep": each.figure.sweep},
            sweeps=(each.figure.sweep,),
            picture=each,
            draw=draw,
        )
        for each in pictures
    ]
    _report(pages, store, out, kind, json=json)


def label_figures(
    store: StorePath = DEFAULT_STORE,
    out: Out = Path("figures"),
    names: Names = None,
    kind: Format = "png",
    json: Json = False,
) -> None:
    """The figures of arXiv:2406.02797v1 and of its workshop paper, from the sweeps labels-*.

    Dots, and distributions of additive advantages, are simulated anew, which takes seconds.
    """
    from flows.figures.labels.paper import FIGURES

    _report_named(FIGURES, names, store, out, kind, json=json)


def audit_figures(
    store: StorePath = DEFAULT_STORE,
    out: Out = Path("figures"),
    names: Names = None,
    kind: Format = "png",
    json: Json = False,
) -> None:
    """The figures of arXiv:2410.22235v1 from the sweeps audits-*, as far as they are stored."""
    from flows.figures.auditing.paper import FIGURES

    _report_named(FIGURES, names, store, out, kind, json=json)


def membership_figures(
    store: StorePath = DEFAULT_STORE,
    out: Out = Path("figures"),
    names: Names = None,
    kind: Format = "png",
    json: Json = False,
) -> None:
    """The figures of arXiv:2310.13786v6 and more, from the sweeps membership-*, as far as they are stored."""
    from flows.figures.membership.paper import FIGURES

    _report_named(FIGURES, names, store, out, kind, json=json)


def _report_named(
    figures: "Sequence[Figure]", names: list[str] | None, store: Path, out: Path, kind: str, *, json: bool
) -> None:
    """Draw the figures of these names, or all of them."""
    from flows.figures.draw import draw
    from flows.figures.figure import picture
    from privcore import DomainError

    _check_format(kind)
    known = {each.name: each for each in figures}
    for name in names or []:
        if name not in known:
            raise DomainError(f"Expected --figure in {{{', '.join(known)}}}, got {name}.")
    pictures = [picture(known[name], store) for name in dict.fromkeys(names or known)]
    pages = [
        _Page(
            words=f"Figure {each.name}",
            stem=each.name,
            identity={"figure": each.name, "sweeps": list(each.sweeps), "notes": list(each.notes)},
            sweeps=each.sweeps,
            picture=each,
            draw=draw,
        )
        for each in pictures
    ]
    _report(pages, store, out, kind, json=json)


def _check_format(kind: str) -> None:
    """Raise `DomainError` where figures cannot be drawn in a format."""
    from flows.figures.allocation.draw import FORMATS
    from privcore import DomainError

    if kind not in FORMATS:
        raise DomainError(f"Expected --format in {{{', '.join(FORMATS)}}}, got {kind}.")


def _report(pages: Sequence[_Page], store: Path, out: Path, kind: str, *, json: bool) -> None:
    """Draw what is stored, and say where it is, what is fitted, and what is missing."""
    from flows.printing import as_json
    from privcore import ExitCode

    content: list[dict[str, Any]] = []
    for page in pages:
        path = None if page.picture.empty else out / f"{page.stem}.{kind}"
        if path is not None:
            out.mkdir(parents=True, exist_ok=True)
            page.draw(page.picture, path, kind)
            if not json:
                print(path, *(f"  {note}" for note in page.identity.get("notes", [])), sep="\n", flush=True)
        content.append(
            page.identity
            | {
                "file": None if path is None else str(path),
                "points": page.picture.points,
                "missing": page.picture.missing,
                "failed": page.picture.failed,
            }
        )
        for sentence in _complaints(page, store):
            print(f"privsweep: {sentence}", file=sys.stderr)
    if json:
        print(as_json(content, indent=1))
    if any(page.picture.empty for page in pages):
        raise typer.Exit(ExitCode.UNCOVERED)
    if any(page.picture.missing or page.picture.failed for page in pages):
        raise typer.Exit(ExitCode.FAILED)


def _complaints(page: _Page, store: Path) -> list[str]:
    """Return one sentence for what is not stored of a figure, and one for what failed."""
    picture, total = page.picture, page.picture.points
    option = f" --store {shlex.quote(shown(store))}" if store != DEFAULT_STORE else ""
    commands = [f"privsweep run {sweep}{option}" for sweep in page.sweeps]
    runs = " and ".join(f"`{command}`" for command in commands)
    compute, again = ("computes", "tries") if len(commands) == 1 else ("compute", "try")
    if picture.empty:
        return [f"{page.words} is not drawn: nothing of it is stored in {shown(store)}; {runs} {compute} it."]
    sentences = []
    if missing := sum(picture.missing.values()):
        sentences.append(
            f"{page.words} lacks {missing} of {total} points, which are not stored "
            f"({_listed(picture.missing)}); {runs} {compute} them."
        )
    if failed := sum(picture.failed.values()):
        retries = " and ".join(f"`{command} --retry`" for command in commands)
        sentences.append(
            f"{page.words} lacks {failed} of {total} points, which failed "
            f"({_listed(picture.failed)}); {retries} {again} again."
        )
    return sentences


def _listed(counts: "Mapping[str, int]") -> str:
    return ", ".join(f"{method} {count}" for method, count in counts.items())
