"""The README shows the output of its commands, is short, and has the figures of the pages that it names."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from flows.cli.app import run
from storage.table.shipped import VARIABLE
from tests.docs.pages import matches, play, steps
from tests.terminal import program

LINES = 150
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
SMALL = 100_000
"""Bytes of a picture, which a reader loads with the page."""


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text(encoding="utf-8")


@pytest.mark.xdist_group("pages")
def test_the_readme_shows_what_its_commands_print(repository: Path, tmp_path: Path) -> None:
    wrong = play(repository / "README.md", tmp_path)
    assert not wrong, "\n".join(f"$ {step.command}\n{printed}" for step, printed in wrong)


@pytest.mark.thorough
@pytest.mark.xdist_group("pages")
def test_the_readme_shows_a_comparison_as_a_terminal_of_80_columns_does(
    readme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    (content,) = re.findall(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    (step,) = steps(content, 1)
    words = shlex.split(step.command)[1:]
    with program([sys.executable, "-m", "flows.cli", *words], tmp_path) as (terminal, ending):
        printed = terminal.read()
        assert ending.code == 0
    assert matches(printed, step.shown), printed


def test_the_readme_is_short_and_asks_three_questions(readme: str) -> None:
    assert readme.count("\n") <= LINES
    assert len(re.findall(r"^```(?:console|text)\n\$ privsweep ", readme, re.MULTILINE)) == 3


def test_a_picture_has_both_colour_schemes_and_is_small(readme: str, repository: Path) -> None:
    pictures = re.findall(r"<picture>.*?</picture>", readme, re.DOTALL)
    assert len(pictures) == 2
    for picture in pictures:
        (dark,) = re.findall(r'prefers-color-scheme: dark\)" srcset="([^"]+)"', picture)
        (light,) = re.findall(r'<img alt="[^"]+" src="([^"]+)"', picture)
        assert dark == light.replace("-light", "-dark")
        for path in (light, dark):
            assert 1000 < (repository / path).stat().st_size < SMALL


def linked(text: str, repository: Path) -> str:
    """The contents of the pages that a text links to."""
    paths = {path.partition("#")[0] for path in re.findall(r"\]\(([^)]+)\)", text)}
    return "\n".join((repository / path).read_text(encoding="utf-8") for path in sorted(paths))


def figures(text: str) -> set[str]:
    """The numbers of a text that are not in code, in addresses or in versions."""
    bare = re.sub(r"`[^`]*`|\]\([^)]*\)|\w+-?\w* \d+\.\d+(?:\.\d+)?(?= \|)", "", text)
    return set(re.findall(rf"(?<![\w.-]){NUMBER}(?![\w.])", bare))


@pytest.mark.parametrize("title", ["Next to other tools", "Reasons to trust it"])
def test_the_figures_of_a_section_are_those_of_the_pages_that_it_names(
    title: str, readme: str, repository: Path
) -> None:
    section = readme.split(f"## {title}\n")[1].split("\n## ", maxsplit=1)[0]
    known = re.findall(NUMBER, linked(section, repository))
    found = figures(section)
    assert len(found) >= 3
    assert sorted(found - set(known)) == []


def test_the_seeded_faults_are_all_noticed(readme: str, repository: Path) -> None:
    (claimed,) = re.findall(r"`make test-all` notices all of (\d+)", readme)
    testing = (repository / "docs" / "testing.md").read_text(encoding="utf-8")
    assert re.findall(
        r"^Of (\d+) seeded faults, .*`make test-all` catches (\d+),", testing, re.MULTILINE
    ) == [(claimed, claimed)]


@pytest.mark.thorough
def test_the_recipes_count_the_points_of_the_lookup_table(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "lookup", "--store", str(tmp_path / "store")]) == 0
    (points,) = re.findall(r"^lookup: (\d+) points", capsys.readouterr().out)
    assert f"{int(points):,} points" in (repository / "docs" / "howto.md").read_text(encoding="utf-8")
