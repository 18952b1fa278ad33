"""The files of a report: HTML, Markdown, and its charts as SVG and PDF."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.answers.export import target_of
from flows.reports import charts
from flows.reports.document import Document
from flows.reports.html import html
from flows.reports.markdown import markdown
from flows.reports.plot import Plot
from privcore import DomainError
from storage.disk import write_atomically
from storage.located import outside_stores

FORMATS = {"html": ("html",), "md": ("md",), "both": ("html", "md")}


def target(out: Path, kind: str | None) -> tuple[Path, str, tuple[str, ...]]:
    """Return the folder of a report, the name of its file, and its formats.

    The name is empty if `out` is a folder; it is then that of the report.

    Args:
        out: The folder, which need not exist, or a file with the suffix of a format.
        kind: One of `FORMATS`; None for the format of the file, or HTML in a folder.

    Raises:
        DomainError: The format is unknown or not that of the file, or the folder is inside a store.
    """
    if kind is not None and kind not in FORMATS:
        raise DomainError(f"Expected --format in {{{', '.join(FORMATS)}}}, got {kind}.")
    suffix = out.suffix.removeprefix(".")
    if suffix not in ("html", "md") or out.is_dir():
        outside_stores(out, "folder")
        return out, "", FORMATS[kind or "html"]
    if kind not in (None, suffix):
        raise DomainError(f"Expected --format {suffix} with --out {out}, got {kind}.")
    outside_stores(out.parent, "folder")
    return out.parent, out.stem, (suffix,)


def write(
    document: Document, out: Path, kind: str | None, *, figures: bool, all_settings: bool = False
) -> dict[str, Any]:
    """Write the files of a report, and return a summary for JSON.

    Args:
        document: The report.
        out: As in `target`.
        kind: As in `target`.
        figures: Whether to write charts as files too; Markdown always has them, since it shows these files.
        all_settings: Whether each setting of a chart becomes a file, instead of only the first.

    Raises:
        DomainError: As `target`, or a file cannot be written there.
        StoreError: The disk refused.
    """
    out, stem, suffixes = target(out, kind)
    drawing = figures or ("md" in suffixes and charts.available())
    pictures = list(_pictures(document, all_settings)) if drawing else []
    texts = {f"{stem or document.name}.{each}": each for each in suffixes}
    names = [*texts, *(f"{stem}.{suffix}" for stem, _, _ in pictures for suffix in charts.FIGURES)]
    targets = {name: target_of(out / name) for name in names}
    out.mkdir(parents=True, exist_ok=True)
    contents = {
        f"{stem}.{suffix}": charts.drawn(plot, suffix, setting, document.source)
        for stem, plot, setting in pictures
        for suffix in charts.FIGURES
    }
    beside: dict[str, dict[str, str]] = {}
    for stem, plot, setting in pictures:
        beside.setdefault(plot.name, {})[setting] = f"{stem}.svg"
    for name, each in texts.items():
        contents[name] = (html(document) if each == "html" else markdown(document, beside)).encode()
    for name in names:
        write_atomically(targets[name], contents[name])
    return {
        "report": document.name,
        "title": document.title,
        "files": [str(out / name) for name in names],
        "charts": [plot.name for plot in document.plots] if charts.available() else [],
        "figures": [
            {"file": str(out / path), "chart": chart, "setting": setting}
            for chart, paths in beside.items()
            for setting, path in paths.items()
        ],
        "incomplete": list(document.incomplete),
    }


def _pictures(document: Document, all_settings: bool) -> Iterator[tuple[str, Plot, str]]:
    """Yield the figures to draw: name of the files, chart, and setting."""
    for plot in document.plots:
        for number, setting in enumerate(plot.settings if all_settings else plot.settings[:1], 1):
            yield plot.name if number == 1 else f"{plot.name}-{number}", plot, setting
