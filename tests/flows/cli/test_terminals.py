"""Every command on a terminal: narrow, wide, without colour, and on a dumb terminal."""

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.cli import app as cli
from privcore import ExitCode
from tests.suites import some
from tests.terminal import Forks, Screen

pytestmark = pytest.mark.xdist_group("terminals")

SWEEP = """
name = "few"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = { sigma = [1, 2, 4], delta = [1e-8, 1e-5] }
"""
RUN = "--sigma 1.1 --examples 1000 --batch-size 400 --epochs 2 --delta 1e-5"
HELD = "unamplified-epsilon sigma=1 delta=1e-5"
DONE, FAILED, MISUSE, UNCOVERED = ExitCode.DONE, ExitCode.FAILED, ExitCode.MISUSE, ExitCode.UNCOVERED

CASES: dict[str, tuple[str, ExitCode]] = {
    "plan": ("quickstart", DONE),
    "run": ("few.toml --store new --engine serial", DONE),
    "schema": ("", DONE),
    "status": ("", DONE),
    "epsilon": (f"{RUN} --sampling poisson", DONE),
    "noise": ("--epsilon 4 --examples 6000 --batch-size 256 --delta 1e-5 --sampling none", DONE),
    "solve": ("epochs --epsilon 4 --sigma 9 --delta 1e-5 --sampling none", DONE),
    "profile": (f"{RUN} --sampling poisson", DONE),
    "steps": ("--examples 60000 --batch-size 256", DONE),
    "plot": ("--sampling none --delta 1e-5 --over sigma=1..2 --out plot.svg", DONE),
    "compare": (RUN, DONE),
    "ask": (HELD, DONE),
    "methods": ("", DONE),
    "lookup": ("few", DONE),
    "sql": ("'select problem, upper, method from results'", DONE),
    "export": ("'select * from results' --out all.md", DONE),
    "labels": ("--prior uniform --bag-size 4", DONE),
    "audit": ("--counts 1000 100 90 --delta 1e-5 --design independent", DONE),
    "membership": ("--epsilon 1 --delta 0 --adjacency add-remove", DONE),
    "serve": ("--port 0", DONE),
    "verify": ("", DONE),
    "repair": ("--engine serial", DONE),
    "compact": ("", DONE),
    "gc": ("", DONE),
    "report sweep": ("few", DONE),
    "report compare-training": ("", UNCOVERED),
    "report compare-labels": ("", UNCOVERED),
    "report compare-audits": ("", UNCOVERED),
    "report compare-membership": ("", UNCOVERED),
    "figures": ("membership --figure membership-privacy --store new", DONE),
    "report figures": ("", UNCOVERED),
    "report label-figures": ("", UNCOVERED),
    "report audit-figures": ("", UNCOVERED),
    "report membership-figures": ("", UNCOVERED),
    "table publish": ("", DONE),
    "table show": ("TABLE", DONE),
    "table import": ("TABLE --store other --check 0", DONE),
    "table remove": ("VERSION --store imported", DONE),
    "table diff": ("TABLE TABLE", DONE),
    "page build": ("", DONE),
}
"""For each command words that let it do a little, and its exit code; TABLE is a table of the store's rows."""

ERRORS = {
    "frobnicate": MISUSE,
    "run no-such-sweep --store new": MISUSE,
    "run few.toml --store new --ray-address 127.0.0.1:1": ExitCode.GONE,
    "epsilon --sigma 1.1": MISUSE,
    "epsilon --sigma -1 --steps 10 --delta 1e-5 --sampling poisson": MISUSE,
    "ask no-such-problem sigma=1": MISUSE,
    f"ask {HELD} --limit-seconds 0": ExitCode.LIMIT,
    "lookup unamplified-epsilon sigma=0.1 delta=1e-30": UNCOVERED,
    "sql select": MISUSE,
    "status --store missing": MISUSE,
    "membership --epsilon 0.01 --delta 0 --adjacency add-remove --attack 1000 1000 0 1000": FAILED,
    "verify --store harmed": FAILED,
    "lookup few --store harmed": MISUSE,
}
"""Command lines that fail, and their exit codes."""

WINDOWS: dict[str, tuple[int, dict[str, str]]] = {
    (WIDE := "200 columns"): (200, {}),
    "80 columns": (80, {}),
    "without colour": (80, {"NO_COLOR": "1"}),
    "dumb": (80, {"TERM": "dumb"}),
}
DATA = {"schema"}
"""Commands that print data for programs, whose lines are never broken."""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.close()


@pytest.fixture(scope="module")
def prepared(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sweep that has run, a table of its rows, a store that imported it, a harmed store."""
    folder = tmp_path_factory.mktemp("terminals")
    (folder / "few.toml").write_text(SWEEP)
    for line in ("run few.toml --engine serial", "table publish"):
        code, screen = forks.run(line.split(), folder)
        assert code == DONE, screen.text
    (table,) = folder.glob("lookup-*.parquet")
    words = ["table", "import", table.name, "--store", "imported", "--check", "0"]
    assert forks.run(words, folder)[0] == DONE
    shutil.copytree(folder / "store", folder / "harmed")
    next((folder / "harmed").rglob("*.parquet")).write_bytes(b"no longer a part")
    return folder


def narrow(words: str) -> list[tuple[int, dict[str, str]]]:
    """One of the windows of 80 columns, drawn by the commit; all of them if the test is named."""
    return some([window for name, window in WINDOWS.items() if name != WIDE], 1, words, 1)


def check(screen: Screen, environment: dict[str, str], *, data: bool = False) -> None:
    """Check the screen after any command."""
    assert "Traceback" not in screen.text
    assert "Warning" not in screen.text
    assert screen.cursor, "the cursor is hidden"
    assert screen.column == 0, f"a line is not finished: {screen.lines[screen.row]!r}"
    assert not screen.coloured or not environment, "a terminal without colours got some"
    assert not screen.styles or "TERM" not in environment, "a dumb terminal got control sequences"
    assert data or not screen.broken


def test_every_command_has_a_case() -> None:
    assert CASES.keys() == cli.COMMANDS.keys()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("command", CASES)
def test_every_command_leaves_a_clean_screen(
    command: str, forks: Forks, prepared: Path, tmp_path: Path
) -> None:
    line, code = CASES[command]
    (table,) = prepared.glob("lookup-*.parquet")
    line = line.replace("TABLE", table.name).replace("VERSION", table.stem.removeprefix("lookup-"))
    for columns, environment in [WINDOWS[WIDE], *narrow(command)]:
        folder = shutil.copytree(prepared, tmp_path / f"{columns} {environment}")
        words = [*command.split(), *shlex.split(line)]
        with forks.started(words, folder, columns=columns, **environment) as terminal:
            if command == "serve":
                terminal.read("http://")
                terminal.type(b"\x03")
            terminal.read()
            assert forks.code() == code, terminal.screen.text
        check(terminal.screen, environment, data=command in DATA)


@pytest.mark.parametrize("line", ERRORS)
def test_every_error_leaves_a_clean_screen(line: str, forks: Forks, prepared: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(prepared, tmp_path / "here")
    for columns, environment in narrow(line):
        code, screen = forks.run(line.split(), folder, columns=columns, **environment)
        assert code == ERRORS[line], screen.text
        check(screen, environment)
        assert "privsweep:" in screen.text or code == FAILED


@pytest.mark.parametrize("words", ["", "report", "table", "page", *cli.COMMANDS])
def test_every_help_leaves_a_clean_screen(words: str, forks: Forks, tmp_path: Path) -> None:
    for columns, environment in narrow(words):
        code, screen = forks.run([*words.split(), "--help"], tmp_path, columns=columns, **environment)
        assert code == DONE
        check(screen, environment)


def test_a_comparison_has_colours_where_they_are_wanted(forks: Forks, tmp_path: Path) -> None:
    for name, (columns, environment) in WINDOWS.items():
        code, screen = forks.run(["compare", *RUN.split()], tmp_path, columns=columns, **environment)
        assert code == DONE
        assert screen.coloured == (name in {WIDE, "80 columns"})
        assert len(screen.text.splitlines()) <= 14
        assert bool(screen.styles) == (name != "dumb"), "bold names and dim notes need no colour"
