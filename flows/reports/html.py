"""A report as one HTML file without network access: every text is escaped, and only one script may run."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from flows.reports import charts
from flows.reports.captions import captions
from flows.reports.document import Block, Document, Heading, Paragraph, TextTable
from flows.reports.plot import Plot

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
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; max-width: 62rem;
  margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; padding-top: .6rem; border-top: 1px solid #ddd; }
code { font: .9em ui-monospace, monospace; background: #f2f2f2; padding: .1em .3em; border-radius: 3px;
  overflow-wrap: anywhere; }
.lead { font-size: 1.3rem; line-height: 1.35; font-weight: 600; margin: .6rem 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .3rem 0 1rem; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
caption { text-align: left; color: #555; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #eee;
  max-width: 36rem; overflow-wrap: break-word; }
th { border-bottom: 1px solid #999; font-weight: 600; }
.number { text-align: right; }
td.number { white-space: nowrap; }
td.long { min-width: 16rem; }
summary { cursor: pointer; color: #0b5394; font-size: .95rem; }
figure { margin: 1rem 0 1.5rem; }
figcaption, .note { color: #555; font-size: .9rem; }
.chart > div { width: 100%; min-height: 2rem; }
.chart .vega-embed { width: 100%; padding-right: 0; }
.chart .chart-wrapper { display: flex; flex-direction: column; }
.chart .vega-bindings { order: -1; }
.chart .vega-bindings { margin-top: .4rem; font-size: .9rem; }
.chart .vega-bindings select { font: inherit; max-width: 100%; padding: .15rem; }
.chart .vega-bind { overflow-wrap: anywhere; }
@media print {
  body { max-width: none; padding: 0; }
  .wide { overflow: visible; }
  figure, tr { break-inside: avoid; }
  h2, summary { break-after: avoid; }
  .chart svg { max-width: 100%; height: auto; }
  .vega-bindings, .vega-embed details { display: none; }
}
"""


def html(document: Document) -> str:
    """Return a report as HTML; the same report gives the same bytes.

    Args:
        document: The report. Without the packages for charts, the HTML has only the tables and a note.
    """
    drawing = charts.available() and any(document.plots)
    script = charts.bundle(_SNIPPET) if drawing else ""
    body = "\n".join(part for block in document.blocks for part in _block(block))
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
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        body,
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
        case Heading(text=text, level=level):
            yield f"<h{level}>{escape(text)}</h{level}>"
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
    caption = f"<figcaption><strong>{escape(plot.title)}.</strong> {escape(notes)}</figcaption>"
    if not charts.available():
        yield f'<figure>{caption}<p class="note">{_words(charts.NEEDED)}</p></figure>'
        return
    without = '<noscript><p class="note">This chart needs JavaScript; the tables do not.</p></noscript>'
    yield f'<figure class="chart" id="{escape(plot.name)}">{caption}{without}<div></div>'
    yield f'<script type="application/json">{_data(charts.spec(plot))}</script></figure>'


def _data(content: dict[str, Any]) -> str:
    """Return JSON without characters that could end the script element."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
