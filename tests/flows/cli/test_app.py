"""The command line itself: fast help, one sentence for every mistake, exit codes."""

import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from flows.cli import app as cli
from flows.cli.app import run
from privcore import ExitCode, PrivsweepError
from storage.schema import provenance
from storage.table.shipped import shipped_version
from tests.flows.small_store import Command


def test_help_needs_no_heavy_import_and_lists_the_commands() -> None:
    script = (
        "import sys; from flows.cli.app import run; run(['--help']); "
        "heavy = {'numpy', 'numba', 'scipy', 'ray', 'prefect', 'duckdb', 'pyarrow', 'privcore'}; "
        "heavy &= sys.modules.keys(); "
        "print(heavy, len(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy, modules = done.stderr.rsplit(maxsplit=1)
    assert heavy == "set()"
    assert int(modules) < 600
    for name in ("plan", "run", "status", "epsilon", "noise", "ask", "methods", "lookup", "sql"):
        assert f" {name} " in done.stdout


@pytest.mark.parametrize("group", ["", "report", "table", "page"])
def test_help_lists_the_commands_in_the_order_of_their_table(group: str) -> None:
    whole = typer.main.get_command(cli.app)
    assert isinstance(whole, TyperGroup)
    below = whole.commands[group] if group else whole
    assert isinstance(below, TyperGroup)
    named = [words.rpartition(" ") for words, (_, sentence) in cli.COMMANDS.items() if sentence]
    groups = [] if group else ["report", "table", "page"]
    listed = [name for name, each in below.commands.items() if not each.hidden]
    assert listed == [name for where, _, name in named if where == group] + groups


@pytest.mark.parametrize("words", [words for words, (_, sentence) in cli.COMMANDS.items() if sentence])
def test_the_sentence_about_a_command_is_the_first_of_its_help(words: str) -> None:
    whole = cli.command(words).help
    first, *_ = whole.split("\n\n")
    assert " ".join(first.split()) == cli.COMMANDS[words][1]


def test_the_version_is_that_of_the_distribution_with_its_commit_and_table(
    privsweep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRIVSWEEP_TABLE")
    assert privsweep("--version") == 0
    first, second = privsweep.out.splitlines()
    assert first.startswith(f"privsweep {version('privsweep')} (commit {provenance().git_commit[:12]}")
    assert second == f"shipped table {shipped_version()}"


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run `plan` where loading the sweep raises an error."""

    def load(_reference: str) -> None:
        raise error

    monkeypatch.setattr("flows.spec.typed.load", load)
    return run(["plan", "x"])


class StrangeError(PrivsweepError):
    """An error with a code of its own."""

    exit_code = ExitCode.LIMIT


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (PrivsweepError("Wrong\nsomehow."), 2, "privsweep: Wrong somehow.\n"),
        (StrangeError("Too much."), 4, "privsweep: Too much.\n"),
        (PermissionError(13, "Permission denied", "/x"), 2, "privsweep: /x: Permission denied.\n"),
        (OSError(28, "No space left on device"), 2, "privsweep: No space left on device.\n"),
        (KeyboardInterrupt(), 130, "privsweep: Interrupted.\n"),
    ],
)
def test_an_error_is_its_sentence_and_its_code(
    error: BaseException,
    code: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fail_with(error, monkeypatch) == code
    assert capsys.readouterr().err == sentence


def test_an_interrupt_that_compiled_code_turned_into_an_error_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = SystemError("CPUDispatcher returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()
    assert fail_with(error, monkeypatch) == 130
    assert capsys.readouterr().err == "privsweep: Interrupted.\n"


EARLY = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from flows.cli.entry import main
main()
"""


def test_an_interrupt_while_the_command_is_imported_is_an_interrupt() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "privsweep: Interrupted.\n")


def test_the_installed_command_begins_where_interrupts_are_handled(repository: Path) -> None:
    scripts = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"privsweep": "flows.cli.entry:main"}


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_with(ZeroDivisionError("bug"), monkeypatch)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{sys.executable} -m flows.cli plan quickstart --json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{", "")


def test_module_and_command_are_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flows.run", "nothing.toml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "privsweep: nothing.toml: Expected a sweep file" in done.stderr
