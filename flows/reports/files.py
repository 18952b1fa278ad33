"""A report on disk: HTML, Markdown, and its charts as SVG and PDF beside it."""

from pathlib import Path
from typing import Any

from flows.export import target_of
from flows.reports import charts
from flows.reports.document import Document
from flows.reports.html import html
from flows.reports.markdown import markdown
from storage.layout import write_atomically

FORMATS = ("html", "md", "both")


def write(document: Document, out: Path, kind: str, *, figures: bool) -> dict[str, Any]:
    """Write a report, and return what was written, for JSON.

    Args:
        document: The report.
        out: The folder; it is made where it does not exist.
        kind: `html`, `md` or `both`.
        figures: Whether charts become files too; beside Markdown, which shows them, they always do.

    Raises:
        DomainError: The folder is inside a store, or figures are asked for and cannot be drawn.
    """
    target_of(out / f"{document.name}.html")
    out.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, str] = {}
    files: list[Path] = []
    contents: dict[Path, bytes] = {}
    if figures or (kind != "html" and charts.available()):
        for plot in document.plots:
            drawn[plot.name] = f"{plot.name}.svg"
            contents |= {out / f"{plot.name}.{each}": charts.drawn(plot, each) for each in charts.FIGURES}
    if kind != "html":
        contents = {out / f"{document.name}.md": markdown(document, drawn).encode()} | contents
    if kind != "md":
        contents = {out / f"{document.name}.html": html(document).encode()} | contents
    for path, content in contents.items():
        write_atomically(path, content)
        files.append(path)
    return {
        "report": document.name,
        "title": document.title,
        "files": [str(path) for path in files],
        "charts": [plot.name for plot in document.plots] if charts.available() else [],
        "incomplete": list(document.incomplete),
    }
