"""The pictures of docs/gallery.md, made by the commands that the page shows.

`python -m tests.docs.gallery` draws them again, on both grounds.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

from flows.cli.app import run
from tests.docs.pages import blocks, steps

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
PICTURES = PAGE.parent / "pictures"


def commands() -> Iterator[list[str]]:
    """The words of each command, for a light and for a dark ground."""
    for _, content, line in blocks(PAGE.read_text(encoding="utf-8")):
        for step in steps(content, line):
            words = shlex.split(step.command.replace("\\\n", " "))[1:]
            yield words
            yield [*words[:-1], words[-1].replace("-light", "-dark"), "--dark"]


def draw(words: list[str], folder: Path) -> Path:
    """Run a command with its picture in a folder, and return the picture."""
    place = words.index("--out") + 1
    out = folder / words[place]
    assert run([*words[:place], str(out), *words[place + 1 :]]) == 0
    return out


if __name__ == "__main__":
    for each in commands():
        draw(each, PICTURES)
