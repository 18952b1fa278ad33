"""Pages of the documentation, played: files are written, commands run, outputs compared.

A block `toml` whose first line is a comment with a name is that file. A block `python` is run. In a block
`console` a line that begins with `$` is a command, and the lines below it are its output; `...` matches text
that varies, and any number of lines if it is the whole line.

`python -m tests.docs.pages FILE ...` plays pages in order in a fresh folder, and replaces outputs that differ
from those of the commands.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.cli import app as cli
from storage.table.shipped import VARIABLE

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0  # seconds for a command
SHELL = {"|", "||", "&&", ">", "<", ";"}
DECIMAL = r"[0-9]+\.[0-9]+(?:e-?[0-9]+)?"
SHIFT = 2e-4
"""Largest relative difference of a decimal that is computed on another processor."""
VARIES = (
    (r"computed now, [0-9.e-]+ s", "computed now, ... s"),
    (r"shipped table [0-9.]+-[0-9a-f]{8}", "shipped table ..."),
    (r"(commit +)[0-9a-f]{40}.*", r"\1..."),
    (r"(date +)2.* UTC", r"\1..."),
    (r"(store +)/.*", r"\1..."),
    (r"(\d failed), .*", r"\1, ..."),
    (r"(checked in) .* s:", r"\1 ... s:"),
    (r"( ok| not_applicable) +[0-9.e-]+(?=  )", r"\1 ..."),
    (r"((?:time|memory) +at most about) .*", r"\1 ..."),
    (r"(?:(?:computing )?\d+ of \d+ points.*\n)+", "...\n"),
)
"""Patterns of text that varies with machine and time, and its replacements on a page."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command of a page, with its output on the page."""

    command: str
    shown: str
    line: int


def blocks(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield language, content and first line of the fenced blocks that are played."""
    for found in re.finditer(r"^```(toml|python|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield found[1], found[2], text[: found.start(2)].count("\n") + 1


def steps(content: str, line: int) -> Iterator[Step]:
    """Yield the commands of a block `console`."""
    for part in re.split(r"^(?=\$ )", content, flags=re.MULTILINE):
        if part:
            command, shown = re.fullmatch(r"\$ ((?:.*\\\n)*.*)\n((?:.*\n)*)", part).groups()  # type: ignore[union-attr]
            yield Step(command=command, shown=shown, line=line)
        line += part.count("\n")


def play(page: Path, folder: Path) -> list[tuple[Step, str]]:
    """Play a page in a folder; return the commands with another output, and that output."""
    found = []
    names: dict[str, Any] = {"__name__": "page"}
    with contextlib.chdir(folder), _shipped_table():
        for language, content, line in blocks(page.read_text(encoding="utf-8")):
            if language == "toml":
                Path(content.split("\n")[0].removeprefix("# ")).write_text(content, encoding="utf-8")
            elif language == "python":
                exec(compile("\n" * (line - 1) + content, page, "exec"), names)
            else:
                for step in steps(content, line):
                    printed = run(step.command)
                    if not matches(printed, step.shown):
                        found.append((step, printed))
    return found


@contextlib.contextmanager
def _shipped_table() -> Iterator[None]:
    """Let commands use the shipped table, as for a reader, which other tests do not."""
    named = os.environ.pop(VARIABLE, None)
    try:
        yield
    finally:
        if named is not None:
            os.environ[VARIABLE] = named


def run(command: str) -> str:
    """Return all that a command prints; our own run in this process where they can, which is faster."""
    try:
        words = shlex.split(command.replace("\\\n", " "))
    except ValueError:
        words = []
    if words[:1] == ["privsweep"] and words[1] != "run" and not SHELL & set(words):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            cli.run(words[1:])
        return printed.getvalue()
    ours = f'privsweep() {{ "{sys.executable}" -m flows.cli "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", ours + command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    return done.stdout


def matches(printed: str, shown: str) -> bool:
    """Return whether an output matches a page, except for widths of columns and rounding.

    Other processors may give other last digits, so a decimal may differ by a unit of its last digit, or by
    `SHIFT` of its size: a last digit may decide which cells are refined.
    """
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else _pattern(line) for line in shown.splitlines())
    lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    found = re.fullmatch(pattern, lines)
    return found is not None and all(map(_close, found.groups(), re.findall(DECIMAL, shown)))


def _pattern(line: str) -> str:
    """Return a pattern for a line, with a group for each decimal."""

    def found(one: re.Match[str]) -> str:
        if one["decimal"]:
            return f"({DECIMAL})"
        return ".*" if one["any"] else " {2,}" if one["gap"] else re.escape(one[0])

    return re.sub(rf"(?P<decimal>{DECIMAL})|(?P<any>\.\.\.)|(?P<gap>  +)|.", found, line.rstrip()) + r"\n"


def _close(one: str, other: str) -> bool:
    """Return whether two decimals are equal, except for rounding."""
    numbers = float(one), float(other)
    mantissa, _, exponent = other.partition("e")
    unit = float(f"1e{int(exponent or 0) - len(mantissa.partition('.')[2])}")
    return abs(numbers[0] - numbers[1]) <= max(1.001 * unit, SHIFT * abs(numbers[1]))


def lasting(printed: str) -> str:
    """Return an output without the text that varies."""
    for pattern, instead in VARIES:
        printed = re.sub(pattern, instead, printed)
    return printed


def written(text: str, found: list[tuple[Step, str]]) -> str:
    """Return a page with the outputs of its commands, without the text that varies."""
    for step, printed in reversed(found):
        lines = "".join(f"{line.rstrip()}\n" for line in lasting(printed).splitlines())
        head = "".join(text.splitlines(keepends=True)[: step.line - 1])
        rest = text.removeprefix(head).removeprefix(f"$ {step.command}\n{step.shown}")
        text = f"{head}$ {step.command}\n{lines}{rest}"
    return text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for name in map(Path, sys.argv[1:]):
            wrong = play(name.resolve(), Path(scratch))
            name.write_text(written(name.read_text(encoding="utf-8"), wrong), encoding="utf-8")
            print(f"{name}: {len(wrong)} outputs written")
