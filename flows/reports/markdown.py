"""A report as Markdown: the same paragraphs and tables, with its charts as picture files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from flows.answers.export import markdown as table_of
from flows.reports import charts
from flows.reports.captions import captions
from flows.reports.document import Block, Document, Heading, Paragraph, TextTable, counted
from flows.reports.plot import Plot, shown

_SPECIAL = re.compile(r"([\\*_\[\]<>#|~$&!^{}])")


def markdown(document: Document, pictures: Mapping[str, Mapping[str, str]]) -> str:
    """Return a report as Markdown.

    Args:
        document: The report.
        pictures: Paths of the pictures, relative to the file, by name of the chart and by setting.
    """
    return (
        "\n\n".join(part.rstrip("\n") for block in document.blocks for part in _block(block, pictures)) + "\n"
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


def _block(block: Block, pictures: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    match block:
        case Heading(text=text, level=level):
            yield f"{'#' * level} {_plain(text)}"
        case Paragraph(text=text, lead=lead):
            yield f"**{_words(text)}**" if lead else _words(text)
        case TextTable():
            yield f"{_words(block.title)}:"
            yield _table(block)
            if block.left_out:
                yield _words(block.left_out)
        case Plot():
            yield f"**{_plain(block.title)}.** {_plain(' '.join(captions(block)))}".rstrip()
            for setting, path in pictures.get(block.name, {}).items():
                yield f"![{_plain(shown(block.title, setting))}]({path})"
            if block.name not in pictures:
                yield _words(charts.NEEDED)
            elif more := len(block.settings) - len(pictures[block.name]):
                yield f"{counted(more, 'more setting')}: `--all-settings` draws all of them."


def _table(table: TextTable) -> str:
    """Return a table; columns of numbers are aligned to the right."""
    lines = table_of(table.names, table.shown).split("\n")
    lines[1] = f"|{'|'.join('---:' if right else '---' for right in table.numeric)}|"
    return "\n".join(lines)


def _words(text: str) -> str:
    """Return an escaped text; text between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _plain(text)
    return "".join(f"`{part}`" if k % 2 else _plain(part) for k, part in enumerate(parts))


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text).replace("`", "\\`")
