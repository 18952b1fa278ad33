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
from storage.disk import write_atomically

FORMATS = ("html", "md", "both")


def write(
    document: Document, out: Path, kind: str, *, figures: bool, all_settings: bool = False
) -> dict[str, Any]:
    """Write the files of a report, and return a summary for JSON.

    Args:
        document: The report.
        out: The folder; it is created if it does not exist.
        kind: `html`, `md` or `both`.
        figures: Whether to write charts as files too; Markdown always has them, since it shows these files.
        all_settings: Whether each setting of a chart becomes a file, instead of only the first.

    Raises:
        DomainError: The folder is inside a store, or a file cannot be written there.
        StoreError: The disk refused.
    """
    drawing = figures or (kind != "html" and charts.available())
    pictures = list(_pictures(document, all_settings)) if drawing else []
    texts = {f"{document.name}.{each}": each for each in (("html", "md") if kind == "both" else (kind,))}
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
