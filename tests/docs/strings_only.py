"""Checks that a change of words is one of words alone: `python -m tests.docs.strings_only COMMIT [PATH ...]`.

Compares the syntax trees of all Python files of two states, COMMIT and the working tree, with every string
emptied and comments gone. Prints each string of one word that changed, since it may be a name that is stored.
"""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path


def shape(content: str) -> str:
    """Return a syntax tree without its texts: constants empty, of formatted strings the values alone."""
    tree = ast.parse(content)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            node.values = [part for part in node.values if not isinstance(part, ast.Constant)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def names(content: str) -> Counter[str]:
    """Return the strings of one word, which may be names, and how often each is found."""
    nodes = ast.walk(ast.parse(content))
    strings = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return Counter(text for text in strings if text and not any(c.isspace() for c in text))


def changed(commit: str, paths: list[str]) -> list[str]:
    """Return the Python files that differ from a commit."""
    listed = ["git", "diff", "--name-only", "--diff-filter=M", commit, "--", *(paths or ["."])]
    found = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in found if name.endswith(".py")]


if __name__ == "__main__":
    wrong = 0
    for name in changed(sys.argv[1], sys.argv[2:]):
        shown = ["git", "show", f"{sys.argv[1]}:{name}"]
        before = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
        after = Path(name).read_text(encoding="utf-8")
        if shape(before) != shape(after):
            wrong += 1
            print(f"{name}: more than strings changed")
        moved = (names(before) - names(after)) + (names(after) - names(before))
        if moved:
            print(f"{name}: words changed: {', '.join(sorted(moved))}")
    sys.exit(wrong > 0)
