"""Links inside the repository: every file and every anchor that a Markdown file names must exist.

`python -m tests.docs.links` prints each dead link and exits with 1 if there are any. It reads every other
text file, too, since messages, help texts and comments name pages as `docs/page.md`.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".ci", "deploy", "docs", "flows", "privcore", "privsweep", "storage", "tasks", "tests")
KINDS = {".md", ".py", ".js", ".toml", ".yaml", ".html", ".cff", ""}
READER = MarkdownIt("commonmark").enable("table")
HTML = re.compile(r"""\b(?:href|src|srcset)\s*=\s*["']([^"'\s]+)""")
PAGE = re.compile(r"\b(?:docs|deploy)/[\w./-]*\w\.md\b")
TARGET = re.compile(r"^\(([\w-]+)\)=$|<a (?:id|name)=[\"']([\w-]+)", re.MULTILINE)
"""Anchors other than headings: labels of MyST, and HTML."""


def dead(root: Path, files: Sequence[Path]) -> Iterator[str]:
    """Yield a sentence for each link of these files to a file or an anchor that does not exist.

    Args:
        root: Folder that no link may leave.
        files: Markdown files, whose links are read, and others, in which only names of pages are read.
    """
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        for name in dict.fromkeys(PAGE.findall(text)):
            if not (root / name).is_file():
                yield f"{file.relative_to(root)}: {name} does not exist"
        if file.suffix == ".md":
            yield from (f"{file.relative_to(root)}: {reason}" for reason in _dead(root, file, text))


def _dead(root: Path, file: Path, text: str) -> Iterator[str]:
    for link in dict.fromkeys(links(text)):
        split = urlsplit(link)
        if split.scheme or split.netloc:
            continue
        path = (file.parent / unquote(split.path)).resolve() if split.path else file
        if not path.is_relative_to(root):
            yield f"{link} leaves the repository"
        elif not path.exists():
            yield f"{link} does not exist"
        elif split.fragment and split.fragment not in anchors(path):
            yield f"{link}: {path.name} has no heading of this name"


def links(text: str) -> Iterator[str]:
    """Yield the addresses of links and pictures of a text in Markdown, in the order of the text."""
    tokens = READER.parse(text)
    for token in (inner for outer in tokens for inner in (outer, *(outer.children or ()))):
        if token.type in ("html_block", "html_inline"):
            yield from HTML.findall(token.content)
        for name in ("href", "src"):
            if address := token.attrGet(name):
                yield str(address)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a Markdown file: its headings as GitHub names them, and its own targets."""
    if path.suffix != ".md":
        return frozenset()
    text = path.read_text(encoding="utf-8")
    found = {name for pair in TARGET.findall(text) for name in pair if name}
    tokens = READER.parse(text)
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            name = slug(token)
            numbered = (f"{name}-{n}" for n in range(1, len(tokens)))
            found.add(name if name not in found else next(each for each in numbered if each not in found))
    return frozenset(found)


def slug(heading: Token) -> str:
    """Return the anchor of a heading.

    Example:
        >>> slug(READER.parse("## What `run` does, again?")[1])
        'what-run-does-again'
    """
    text = "".join(inner.content for inner in heading.children or ())
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def files(root: Path) -> list[Path]:
    """Return the text files of the repository, at its root and in its folders."""
    found = [path for folder in FOLDERS for path in (root / folder).rglob("*")]
    return [
        path
        for path in (*root.iterdir(), *found)
        if path.suffix in KINDS and path.is_file() and not {"_build", "__pycache__"} & {*path.parts}
    ]


def main() -> int:
    """Print the dead links of the checkout."""
    found = list(dead(ROOT, files(ROOT)))
    print(*found, f"{len(found)} dead links", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
