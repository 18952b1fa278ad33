"""The summary of the benchmarks has the figures of the tables below it."""

import re
from pathlib import Path

import pytest

NUMBERS = {"five": "5", "four": "4", "seven": "7", "nine": "9", "ten": "10", "three": "3"}


@pytest.fixture(scope="module")
def page(repository: Path) -> tuple[str, str]:
    """The summary, and the rest of the page."""
    head, _, rest = (
        (repository / "docs" / "benchmarks.md").read_text(encoding="utf-8").partition("`make bench`")
    )
    return head, rest


def test_every_figure_of_the_summary_is_measured_below(page: tuple[str, str]) -> None:
    summary, tables = page
    figures = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?=[ ,.;])", summary)
    assert len(figures) > 15
    measured = set(re.findall(r"\d+(?:\.\d+)?", tables))
    assert [figure for figure in figures if figure not in measured] == []


def test_the_summary_counts_the_targets_that_are_missed(page: tuple[str, str]) -> None:
    summary, tables = page
    (word,) = re.findall(r"^(\w+) targets are missed", summary, re.MULTILINE)
    assert NUMBERS[word.lower()] == str(tables.count("**Not met**."))
