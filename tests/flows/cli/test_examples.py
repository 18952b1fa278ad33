"""The examples at the end of each command's help run as they are printed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli.app import COMMANDS, PANELS
from flows.cli.examples import EXAMPLES
from storage.table.shipped import FOLDER

pytestmark = pytest.mark.xdist_group("examples")

SERVED = "serve"  # it ends by Ctrl-C: tests/flows/page starts it
LACKING = {"report compare-labels": 1, "report compare-audits": 1, "report compare-membership": 3}
"""Exit codes of reports whose problems the shipped table lacks; each names the sweep to run."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, two tables and scores, and with `privsweep` on the path."""
    folder = tmp_path_factory.mktemp("examples")
    (shipped,) = FOLDER.glob("lookup-*.parquet")
    (folder / "tables").mkdir()
    for name in ("old.parquet", "new.parquet", f"tables/{shipped.name}"):
        shutil.copy(shipped, folder / name)
    scores = "".join(f"{k % 7 + 5 * (k % 2)},{k % 2}\n" for k in range(401))
    (folder / "scores.csv").write_text(f"score,included\n{scores}")
    typed(folder, "privsweep run quickstart --engine serial && privsweep table import --check 1")
    return folder


def typed(folder: Path, line: str, code: int = 0) -> str:
    """Run a line in a shell that ends with this code, and return its output."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(folder), "PRIVSWEEP_CACHE": f"{folder}/cache"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert not code or "to compute them: `privsweep run " in done.stderr
    return done.stdout


def test_every_command_and_group_has_two_examples() -> None:
    listed = {words for words, (_, sentence) in COMMANDS.items() if sentence}
    assert set(EXAMPLES) == listed | {"report", "table", "page"}
    assert {len(set(lines)) for lines in EXAMPLES.values()} == {2}


def test_every_command_is_under_one_heading_of_the_help() -> None:
    named = [name for names in PANELS.values() for name in names]
    assert sorted(named) == sorted({words.partition(" ")[0] for words in COMMANDS})


@pytest.mark.parametrize("words", EXAMPLES)
def test_the_help_of_a_command_ends_with_its_examples(words: str, tmp_path: Path) -> None:
    shown = typed(tmp_path, f"COLUMNS=200 privsweep {words} --help")
    assert all(line in shown.partition("Examples:")[2] for line in EXAMPLES[words])
    assert "bool" not in shown


@pytest.mark.thorough
@pytest.mark.parametrize("words", [words for words in EXAMPLES if words != SERVED])
def test_the_examples_of_a_command_run(words: str, folder: Path) -> None:
    (shipped,) = FOLDER.glob("lookup-*.parquet")
    for line in EXAMPLES[words]:
        typed(folder, line.replace("VERSION", shipped.stem.removeprefix("lookup-")), LACKING.get(words, 0))
