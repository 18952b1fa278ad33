"""The tutorial, the recipes and the page on Python show the output of their code."""

from pathlib import Path

import pytest

from tests.docs.pages import Step, blocks, matches, play, run, steps, written

pytestmark = pytest.mark.xdist_group("pages")

Wrong = list[tuple[Step, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all pages, as for a reader."""
    return tmp_path_factory.mktemp("reader")


@pytest.fixture(scope="module")
def tutorial(repository: Path, folder: Path) -> Wrong:
    """Outputs that the tutorial shows wrongly; it leaves the store that other pages read."""
    return play(repository / "docs" / "tutorial.md", folder)


def told(wrong: Wrong) -> str:
    return "\n".join(f"line {step.line}: $ {step.command}\n{printed}" for step, printed in wrong)


@pytest.mark.thorough
def test_the_tutorial_shows_what_its_commands_print(tutorial: Wrong) -> None:
    assert not tutorial, told(tutorial)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "page",
    [
        "accountant.md",
        "auditing.md",
        "howto.md",
        "membership.md",
        "profile.md",
        "python.md",
        "questions.md",
        "sweeps.md",
        "tuning.md",
    ],
)
def test_a_page_shows_what_its_code_does(page: str, repository: Path, folder: Path, tutorial: Wrong) -> None:
    wrong = play(repository / "docs" / page, folder)
    assert not wrong, told(wrong)


def test_pages_are_long_enough_to_be_worth_playing(repository: Path) -> None:
    counts = {}
    for page in ("tutorial.md", "howto.md", "python.md"):
        text = (repository / "docs" / page).read_text()
        commands = [
            s
            for language, content, line in blocks(text)
            if language == "console"
            for s in steps(content, line)
        ]
        counts[page] = len(commands), sum(language == "python" for language, _, _ in blocks(text))
    assert counts["tutorial.md"][0] >= 8
    assert counts["howto.md"][0] >= 10
    assert counts["python.md"][1] >= 4


# ------------------------------------------------------------------------------- the player itself

PAGE = """Text.

```console
$ printf 'a\\nb 1.5 s\\n'
a
b ... s
$ echo \\
  one
two
```
"""


def test_the_player_finds_the_output_that_differs_and_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    ((step, printed),) = play(page, tmp_path)
    assert (step.line, step.command, step.shown, printed) == (7, "echo \\\n  one", "two\n", "one\n")
    page.write_text(written(PAGE, [(step, printed)]))
    assert play(page, tmp_path) == []


def test_dots_stand_for_what_varies_and_for_nothing_else() -> None:
    assert matches("a 1 s\n", "a ... s\n")
    assert matches("a\nb\nc\n", "a\n...\nc\n")
    assert matches("a\nc\n", "a\n...\nc\n")
    assert not matches("a\nb\n", "a\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("ab\n", "a.\n")


def test_decimals_may_differ_by_rounding_and_columns_by_their_width() -> None:
    assert matches("a    b\n1   0.45237482683314684\n", "a   b\n1  0.45237482683314373\n")
    assert matches("a 6.18904 1.5e-06\n", "a 6.18905 1.6e-06\n")
    assert matches("a 5.63037\n", "a 5.62991\n")
    assert not matches("a 6.18903\n", "a 6.19105\n")
    assert not matches("a 1.5e-06\n", "a 1.5e-05\n")
    assert not matches("1  0.4523748268\n", "2  0.4523748268\n")


def test_a_command_prints_its_error_beside_its_output() -> None:
    assert run("privsweep methods nothing-like-it") == run("privsweep methods nothing-like-it | cat")
    assert "Unknown problem or method" in run("privsweep methods nothing-like-it")
