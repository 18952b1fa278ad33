"""The files of a report: HTML without network access, Markdown, and its charts as SVG and PDF."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from flows.answers.export import markdown as table_of
from flows.answers.export import target_of
from flows.printing import counted
from flows.reports import charts
from flows.reports.document import Block, Document, Heading, Headline, Paragraph, TextTable
from flows.reports.plot import Plot, captions, darker, shown
from flows.reports.stored import ORIGIN_TITLE
from privcore import DomainError
from storage.place.disk import write_atomically
from storage.place.located import outside_stores

_SNIPPET = """
for (const figure of document.querySelectorAll("figure.chart")) {
  const options = {
    ast: true, renderer: "svg", logLevel: 1, downloadFileName: figure.id,
    actions: {export: true, source: false, compiled: false, editor: false},
  };
  const spec = JSON.parse(figure.querySelector("script").textContent);
  vegaEmbed(figure.querySelector("div"), spec, options).catch((error) => {
    figure.querySelector("div").textContent = "This chart could not be drawn: " + error;
  });
}
"""
"""With `ast`, Vega interprets its expressions instead of compiling them, which the policy forbids.
Log level 1 suppresses warnings about curves without visible marks, which are useless to a reader."""

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1b1f24; --dim: #57606a; --line: #e4e8ec;
  --link: #0b5394; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ground: #0d1117; --text: #e6edf3; --dim: #8b949e; --line: #262c36; --link: #79b8ff; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground); max-width: 62rem;
  margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; padding-top: .6rem; border-top: 1px solid var(--line); }
code { font: .9em ui-monospace, monospace; background: var(--line); padding: .1em .3em; border-radius: 3px;
  overflow-wrap: anywhere; }
.headline { display: flex; flex-wrap: wrap; gap: .2rem 2rem; margin: .5rem 0; }
.headline p { margin: 0; color: var(--dim); max-width: 18rem; line-height: 1.3; overflow-wrap: anywhere; }
.headline strong { display: block; color: var(--text); font-size: 1.9rem;
  font-variant-numeric: tabular-nums; }
.lead { font-weight: 600; margin: .6rem 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .3rem 0 1rem; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
caption { text-align: left; color: var(--dim); padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0;
  border-bottom: 1px solid var(--line);
  max-width: 36rem; overflow-wrap: break-word; }
th { border-bottom: 1px solid var(--dim); font-weight: 600; }
.number { text-align: right; }
td.number { white-space: nowrap; }
td.long { min-width: 16rem; }
summary { cursor: pointer; color: var(--link); font-size: .95rem; }
.origin summary h2 { display: inline-block; border: 0; }
figure { margin: .5rem 0 1.5rem; }
figure p { margin: 0 0 .3rem; }
figcaption, .note { color: var(--dim); font-size: .9rem; }
.chart > div { width: 100%; min-height: 2rem; }
.chart .vega-embed { width: 100%; padding-right: 0; }
.chart .chart-wrapper { display: flex; flex-direction: column; }
.chart .vega-bindings { order: -1; margin-top: .4rem; font-size: .9rem; }
.chart .vega-bindings select { font: inherit; max-width: 100%; padding: .15rem; }
.chart .vega-bind { overflow-wrap: anywhere; }
.scaled > div { background: #fff; color: #1b1f24; color-scheme: light; }
@media (max-width: 640px) {
  .headline { gap: .2rem 1rem; }
  .headline p { flex: 1 1 6rem; font-size: .8rem; }
  .headline strong { font-size: 1.2rem; }
  h1 { font-size: 1.2rem; }
}
@media print {
  body { max-width: none; padding: 0; }
  .wide { overflow: visible; }
  figure, tr { break-inside: avoid; }
  h2, summary { break-after: avoid; }
  .chart svg { max-width: 100%; height: auto; }
  .vega-bindings, .vega-embed details { display: none; }
}
"""


def _dark(document: Document) -> str:
    """Return the rules that give each colour of a chart its counterpart on a dark screen; paper is light."""
    rules = [
        f'.chart:not(.scaled) svg [{part}="{light}"] {{ {part}: {dark}; }}'
        for light, dark in darker(document.plots).items()
        for part in ("fill", "stroke")
    ]
    return "\n".join(["@media screen and (prefers-color-scheme: dark) {", *rules, "}", ""])


def html(document: Document) -> str:
    """Return a report as HTML; the same report gives the same bytes.

    Args:
        document: The report. Without the packages for charts, the HTML has only the tables and a note.
    """
    drawing = charts.available() and any(document.plots)
    script = charts.bundle(_SNIPPET) if drawing else ""
    body = "\n".join(part for block in document.arranged for part in _block(block))
    allowed = _digest(script) if script else "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=False)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(document.title)}</title>",
        f"<style>{_STYLE}{_dark(document) if drawing else ''}</style>",
        "</head>",
        "<body>",
        "<main>",
        body,
        *(["</details>"] if ORIGIN_TITLE in body else []),
        "</main>",
        *([f"<script>{script}</script>"] if script else []),
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(lines)


def _digest(script: str) -> str:
    """Return the hash of a script for the content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text=text) if text == ORIGIN_TITLE:  # the last section
            yield f'<details class="origin"><summary><h2>{escape(text)}</h2></summary>'
        case Heading(text=text, level=level):
            yield f"<h{level}>{escape(text)}</h{level}>"
        case Headline(numbers=numbers):
            told = (f"<p><strong>{escape(number)}</strong> {escape(words)}</p>" for number, words in numbers)
            yield f'<div class="headline">{"".join(told)}</div>'
        case Paragraph(text=text, lead=lead):
            look = ' class="lead"' if lead else ""
            yield f"<p{look}>{_words(text)}</p>"
        case TextTable():
            yield from _table(block)
        case Plot():
            yield from _chart(block)


def _words(text: str) -> str:
    """Return a text as escaped HTML; text between backticks becomes code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def _table(table: TextTable) -> Iterator[str]:
    look = [
        ' class="number"' if right else ' class="long"' if long else ""
        for right, long in zip(table.numeric, table.long, strict=True)
    ]
    named = zip(table.names, look, strict=True)
    head = "".join(f'<th scope="col"{each}>{escape(name)}</th>' for name, each in named)
    opening = f"<details><summary>{escape(table.title)}</summary>" if table.folded else ""
    hidden = ' class="unseen"' if table.folded else ""  # the summary shows it already
    caption = f"<caption{hidden}>{escape(table.title)}</caption>"
    told = escape(table.title)
    # A region that is wider than a telephone can be scrolled with keys, and has a label.
    wide = f'<div class="wide" role="region" tabindex="0" aria-label="{told}">'
    yield f"{opening}{wide}<table>{caption}<thead><tr>{head}</tr></thead><tbody>"
    for row in table.shown:
        cells = "".join(f"<td{each}>{escape(cell)}</td>" for cell, each in zip(row, look, strict=True))
        yield f"<tr>{cells}</tr>"
    left_out = f'<p class="note">{_words(table.left_out)}</p>' if table.left_out else ""
    yield f"</tbody></table></div>{left_out}{'</details>' if table.folded else ''}"


def _chart(plot: Plot) -> Iterator[str]:
    notes = " ".join(captions(plot))
    title, caption = (
        f"<p><strong>{escape(plot.title)}</strong></p>",
        f"<figcaption>{escape(notes)}</figcaption>",
    )
    if not charts.available():
        yield f'<figure>{title}{caption}<p class="note">{_words(charts.NEEDED)}</p></figure>'
        return
    without = '<noscript><p class="note">This chart needs JavaScript; the tables do not.</p></noscript>'
    look = "chart scaled" if plot.is_scaled else "chart"
    yield f'<figure class="{look}" id="{escape(plot.name)}">{title}{without}<div></div>'
    yield f'<script type="application/json">{_data(charts.spec(plot))}</script>{caption}</figure>'


def _data(content: dict[str, Any]) -> str:
    """Return JSON without characters that could end the script element."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_SPECIAL = re.compile(r"([\\*_\[\]<>#|~$&!^{}])")


def markdown(document: Document, pictures: Mapping[str, Mapping[str, str]]) -> str:
    """Return a report as Markdown.

    Args:
        document: The report.
        pictures: Paths of the pictures, relative to the file, by name of the chart and by setting.
    """
    return (
        "\n\n".join(
            part.rstrip("\n") for block in document.arranged for part in _markdown_block(block, pictures)
        )
        + "\n"
    )


def tables(document: Document, most: int) -> str:
    """Return the text and the tables of a report as Markdown, for a page that has no charts.

    Args:
        document: The report.
        most: Number of rows of a table that are written.
    """
    blocks: list[Block] = []
    for block in document.blocks:
        if isinstance(block, TextTable) and len(block.rows) > most:
            blocks.append(replace(block, rows=block.rows[:most]))
            blocks.append(Paragraph(text=f"... and {counted(len(block.rows) - most, 'more row')}."))
        elif not isinstance(block, Plot):
            blocks.append(block)
    return markdown(replace(document, blocks=blocks), {})


def _markdown_block(block: Block, pictures: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    match block:
        case Heading(text=text, level=level):
            yield f"{'#' * level} {_plain(text)}"
        case Headline(numbers=numbers):
            yield "; ".join(f"**{_plain(number)}** {_plain(words)}" for number, words in numbers)
        case Paragraph(text=text, lead=lead):
            yield f"**{_markdown_words(text)}**" if lead else _markdown_words(text)
        case TextTable():
            yield f"{_markdown_words(block.title)}:"
            yield _markdown_table(block)
            if block.left_out:
                yield _markdown_words(block.left_out)
        case Plot():
            yield f"**{_plain(block.title)}.** {_plain(' '.join(captions(block)))}".rstrip()
            for setting, path in pictures.get(block.name, {}).items():
                yield f"![{_plain(shown(block.title, setting))}]({path})"
            if block.name not in pictures:
                yield _markdown_words(charts.NEEDED)
            elif more := len(block.settings) - len(pictures[block.name]):
                yield f"{counted(more, 'more setting')}: `--all-settings` draws all of them."


def _markdown_table(table: TextTable) -> str:
    """Return a table; columns of numbers are aligned to the right."""
    lines = table_of(table.names, table.shown).split("\n")
    lines[1] = f"|{'|'.join('---:' if right else '---' for right in table.numeric)}|"
    return "\n".join(lines)


def _markdown_words(text: str) -> str:
    """Return an escaped text; text between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _plain(text)
    return "".join(f"`{part}`" if k % 2 else _plain(part) for k, part in enumerate(parts))


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text).replace("`", "\\`")


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
