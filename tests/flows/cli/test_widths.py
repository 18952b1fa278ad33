"""Widths of help texts and tables on a terminal."""

import io
import re
import sys
from collections.abc import Callable
from itertools import pairwise

import pytest
import typer
from typer.core import TyperGroup

from flows.answers.catalogue import SIDES, catalogue
from flows.cli import app as cli
from flows.cli.app import run
from flows.printing import exactly

RUN = ("compare", "--sigma", "1.1", "--steps", "100", "--delta", "1e-5")

Shown = Callable[..., str]


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """A function that runs a command on a terminal of this width and returns the text."""

    def on_terminal(width: int, *words: str) -> str:
        screen = Terminal()
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            patch.setenv("TERM", "dumb")
            patch.setattr(sys, "stdout", screen)
            assert run(words) == 0
        return screen.getvalue()

    return on_terminal


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\s,;:]+", text)


# ------------------------------------------------------------------------------------------------ help


def command_of(words: str) -> tuple[str, list[str]]:
    """Return the help text and the names of the options of a command or group."""
    whole = typer.main.get_command(cli.app)
    assert isinstance(whole, TyperGroup)
    each = cli.command(words) if words in cli.COMMANDS else whole.commands[words] if words else whole
    shown = [parameter for parameter in each.params if not getattr(parameter, "hidden", False)]
    return each.help or "", [name for parameter in shown for name in parameter.opts if "--" in name]


@pytest.mark.parametrize("words", ["", "report", "table", "page", *cli.COMMANDS])
def test_help_fits_80_columns_without_broken_lines(words: str, shown: Shown) -> None:
    text = shown(80, *words.split(), "--help")
    assert widest(text) <= 80
    assert "…" not in text
    prose, options = command_of(words)
    for name in options:
        assert re.search(rf"{name}[\s,│]", text), f"{name} is cut short"
    assert " ".join(prose.split()) in " ".join(text.split())
    above = text.partition("╭")[0].splitlines()
    for line, following in pairwise(above):
        if line.strip() and following.strip():
            first = following.split()[0]
            assert len(line.rstrip()) + 1 + len(first) >= 80, f"{first} fits the line before: {line}"


# ---------------------------------------------------------------------------------- methods and compare


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_list_of_methods_fits_the_terminal_and_is_complete(width: int, shown: Shown) -> None:
    text = shown(width, "methods")
    assert widest(text) <= width
    words = set(words_of(text))
    for problem in catalogue()["problems"]:
        assert problem["name"] in words
        assert {name.partition(".")[2] for name in problem["methods"]} <= {word.rstrip("*") for word in words}
    for method in catalogue()["methods"]:
        settings = {f"{knob['name']}={exactly(knob['default'])}" for knob in method["knobs"]}
        assert settings | {method["name"], *words_of(method["reference"])} <= words


def test_a_hundred_columns_show_the_sides_of_a_problem_in_one_table(shown: Shown) -> None:
    lines = shown(100, "methods").splitlines()
    assert lines[1].split() == ["problem", *" ".join(SIDES.values()).split()]
    place = lines.index("method poisson.")
    assert lines[place + 1].split() == ["poisson-epsilon", "certified", "renyi", "pld"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["problems", "methods"])
def test_everything_about_a_name_fits_80_columns(kind: str, shown: Shown) -> None:
    for entry in catalogue()[kind]:
        text = shown(80, "methods", entry["name"])
        assert widest(text) <= 80, entry["name"]
        for parameter in entry.get("fields", entry.get("knobs")):
            assert parameter["name"] in text.split()
            assert " ".join(parameter["meaning"].split()) in " ".join(text.split())


@pytest.mark.parametrize("width", [80, 100])
def test_the_comparison_fits_the_terminal_and_explains_all_of_it(
    width: int, shown: Shown, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.chdir(str(tmp_path))
    text = shown(width, *RUN)
    assert widest(text) <= width
    assert len(text.splitlines()) <= 14
    explained = shown(width, *RUN, "--explain")
    assert widest(explained) <= width
    monkeypatch.setattr(sys, "stdout", piped := io.StringIO())
    assert run([*RUN, "--explain"]) == 0
    numbers = re.compile(r"computed now, [0-9.e-]+ s|-{2,}|[0-9:-]+ UTC")
    told, wanted = (set(words_of(numbers.sub("", each))) for each in (explained, piped.getvalue()))
    assert wanted <= told
