"""The page of assumptions covers every question, and names existing fields, options and methods."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from privcore.parameter import Choice
from privcore.registry import METHODS, PROBLEMS

WORDS = {"unknown", "candidates", "certain(FILE,NAME)", "because", "group", "verify", "accountant"}
"""Words of the page besides questions, fields, values, options and methods."""


@pytest.fixture(scope="module")
def rows(repository: Path) -> list[tuple[set[str], str]]:
    """Names of the questions of each row, and the text about them."""
    found: list[tuple[set[str], str]] = []
    for line in (repository / "docs" / "assumptions.md").read_text().splitlines():
        if not line.startswith("| ") or line.startswith("| questions |"):
            continue
        first, *rest = line.strip("| ").split(" | ")
        assert len(rest) == 2, line
        patterns = re.findall(r"`([^`]+)`", first)
        names = {kind.name for kind in PROBLEMS for each in patterns if fnmatchcase(kind.name, each)}
        assert all(any(fnmatchcase(name, each) for name in names) for each in patterns), line
        found.append((names | found[-1][0] if "the same" in first else names, " ".join(rest)))
    return found


def test_every_question_and_every_field_to_state_has_a_row(rows: list[tuple[set[str], str]]) -> None:
    for kind in PROBLEMS:
        said = " ".join(text for names, text in rows if kind.name in names)
        assert said, kind.name
        assert all(f"`{field}`" in said for field in kind.stated), (kind.name, tuple(kind.stated))


def test_every_field_option_and_method_of_the_page_exists(
    rows: list[tuple[set[str], str]], repository: Path
) -> None:
    options = (repository / "docs" / "commands.md").read_text()
    methods = {kind.name for kind in METHODS}
    seen = 0
    for names, text in rows:
        kinds = [kind for kind in PROBLEMS if kind.name in names] or list(PROBLEMS)
        fields = {name for kind in kinds for name in kind.parameters}
        choices = {
            word
            for kind in kinds
            for parameter in kind.parameters.values()
            if isinstance(parameter, Choice)
            for word in parameter.choices
        }
        for word in re.findall(r"`([^`]+)`", text):
            known = word in fields | choices | methods | WORDS or (
                word.startswith("--") and f"| `{word}" in options
            )
            assert known, (word, text)
            seen += 1
    assert seen > 50
