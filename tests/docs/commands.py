"""Reference of the commands in docs/commands.md, made from their help.

`python -m tests.docs.commands` writes it into the page.
"""

import re
from pathlib import Path
from typing import Any

import typer

from flows.cli.app import COMMANDS, PANELS, command
from tests.docs.sweeps import Rows, code, table

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
BEGIN, END = "<!-- begin commands -->\n", "<!-- end commands -->"
LISTED = {words: sentence for words, (_, sentence) in COMMANDS.items() if sentence}
REMARKS = re.compile(r"\s*\[(default: [^\]]*|required|[^\]]*x[^\]]*)\]$")
"""Remarks at the end of the help of a parameter: its default, its range, and whether it is required."""
VALUE = re.compile(r" <([a-z]+)[^>]*>$")
VALUES = {"int": "NUMBER", "float": "NUMBER", "str": "WORD", "path": "PATH", "list": "WORD", "bool": ""}
"""Names of the values of options that declare no name."""


def written(text: str) -> str:
    """Return the page with the reference that the commands give."""
    head, _, rest = text.partition(BEGIN)
    content = "\n".join(["", contents(), *(section(words) for words in LISTED)])
    return f"{head}{BEGIN}{content}\n{END}{rest.partition(END)[2]}"


def contents() -> str:
    """Return a table of commands for each heading of the help."""
    found = []
    for panel, names in PANELS.items():
        below = [words for words in LISTED if words.split()[0] in names]
        rows: Rows = [
            (f"[{code(words)}](#privsweep-{words.replace(' ', '-')})", escaped(LISTED[words]))
            for words in below
        ]
        found.append(f"**{panel}**\n\n{table(('command', 'purpose'), rows)}")
    return "\n".join(found)


def section(words: str) -> str:
    """Return the section of a command: usage, help, arguments and options.

    Args:
        words: A key of `COMMANDS`.
    """
    found = command(words)
    context = typer.Context(found, info_name=f"privsweep {words}")
    usage = " ".join(found.get_usage(context).removeprefix("Usage: ").split())
    text = [escaped(paragraph) for paragraph in (found.help or "").split("\n\n")]
    rows: Rows = [row(each, context) for each in found.params if not getattr(each, "hidden", False)]
    parts = [f"## privsweep {words}", f"    {usage}", *text]
    parts += [table(("option", "default", "meaning"), rows).strip()] if rows else []
    if found.epilog:
        heading, *examples = found.epilog.strip().split("\n\n")
        parts += [heading, "\n".join(f"    {example}" for example in examples)]
    return "\n\n".join(parts).strip() + "\n"


def row(parameter: Any, context: typer.Context) -> tuple[str, str, str]:
    """Return name, default and meaning of an argument or an option."""
    name, meaning = parameter.get_help_record(context)
    kind = VALUE.search(name)
    takes = "" if kind is None or not name.startswith("--") else f" {VALUES[kind[1]]}"
    default = ""
    if remarks := REMARKS.search(meaning):
        meaning = meaning[: remarks.start()]
        for remark in remarks[1].split("; "):
            if remark.startswith("default: ") or remark == "required":
                default = remark.removeprefix("default: ").removesuffix(".0")
            else:
                meaning += f" {_range(remark)}."
    shown = code(default) if default not in ("", "required") else default
    return code(VALUE.sub("", name) + takes), shown, escaped(meaning)


def _range(remark: str) -> str:
    """Return the range of a number as a sentence."""
    least, _, most = remark.replace("<=x<=", " ").removeprefix("x>=").removesuffix(".0").partition(" ")
    return f"From {least} to {int(most):,}" if most else f"At least {least}"


def escaped(text: str) -> str:
    """Return a text of help in Markdown, on one line."""
    return " ".join(re.sub(r"(?<!`)([<*])", r"\\\1", text).split())


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
