"""The README shows the output of its commands, on a store with the problem of the quickstart."""

import re
import shlex
from pathlib import Path

import pytest

from flows.cli.app import run
from privcore import Point, evaluate, find, find_problem
from storage import publish, to_table
from storage.located import located
from tests.storage.made_up import row

SHOWN = re.compile(r"^    \$ \.venv/bin/privsweep (?P<words>.*)\n(?P<out>(?:    .*\n)+)", re.MULTILINE)
README = (Path(__file__).parents[2] / "README.md").read_text()


@pytest.fixture
def quickstart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a store that holds the first answer of the README."""
    monkeypatch.chdir(tmp_path)
    method = find("allocation.certified")()
    problem = find_problem("allocation-epsilon").from_fields({"sigma": 1, "steps": 10_000, "delta": 1e-8})
    answer = evaluate(Point(problem=problem, method=method))
    publish(located(tmp_path / "store"), to_table([row(problem, answer, method=method)]))


@pytest.mark.usefixtures("quickstart")
@pytest.mark.parametrize(("words", "out"), [(m["words"], m["out"]) for m in SHOWN.finditer(README)])
def test_the_readme_shows_what_a_command_prints(
    words: str, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(words)) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = [line.removeprefix("    ").rstrip() for line in out.splitlines()]
    if shown[-1] == "...":
        shown.pop()
        assert len(printed) > len(shown), "dots in the place of lines"
        printed = printed[: len(shown)]
    assert printed == shown


def test_the_readme_shows_commands() -> None:
    assert len(SHOWN.findall(README)) >= 2


@pytest.mark.thorough
def test_the_readme_counts_the_points_of_the_lookup_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "lookup", "--store", str(tmp_path / "store")]) == 0
    (points,) = re.findall(r"^lookup: (\d+) points", capsys.readouterr().out)
    assert f"{int(points):,} points" in README
