"""Input that once hung, used up the memory, or wrote to the terminal is refused in one short sentence."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from flows.printing import LONGEST_SENTENCE
from flows.spec.sweep import parse
from tests.flows.small_store import Command
from tests.storage.made_up import put, rows

GRID = """
[[grid]]
problem="unamplified-epsilon"
methods=["unamplified.exact"]
product={{sigma={},delta=1e-5}}
"""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))


@pytest.mark.parametrize(
    "words", ["plan /dev/zero", "run /dev/zero", "table show /dev/zero", "ask --batch /dev/zero"]
)
def test_a_file_without_an_end_is_refused(words: str) -> None:
    command = [sys.executable, "-m", "flows.cli", *words.split()]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, preexec_fn=limited
    )
    assert done.returncode == 2, done.stderr[-500:]
    assert done.stderr.startswith("privsweep: ")
    assert "Expected " in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_pipe_is_no_lookup_table_and_nobody_waits_for_it(tmp_path: Path, privsweep: Command) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert privsweep("table", "show", tmp_path / "pipe") == 2
    assert "a device or a pipe" in privsweep.err


def test_a_sweep_of_nine_thousand_grids_is_read_line_by_line_once() -> None:
    text = 'name = "many"' + "".join(GRID.format(1 + i / 10_000) for i in range(9_000))
    sweep = parse(text.encode(), "many.toml")
    assert sweep.grids[-1].origin == f"many.toml, line {3 + 5 * 8_999}, grid 9000"


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("number", ["1e301", "inf", "1e10"])
def test_a_limit_of_points_that_no_machine_could_plan_is_refused(
    command: str, number: str, privsweep: Command
) -> None:
    axis = "sigma=linear(1,2,1000000000)"
    assert privsweep(command, "unamplified-epsilon", axis, "delta=1e-5", "--max-points", number) == 2
    assert "Expected --max-points of at most 1e+09" in privsweep.err


@pytest.mark.parametrize("address", ["s3://", "s3:", "s3:/a", "S3://", "gs://", "https://a/b"])
@pytest.mark.parametrize(
    "words",
    [
        ("page", "build"),
        ("export", "select 1"),
        ("export", "--store-sql"),
        ("report", "compare-training"),
        ("report", "figures", "allocation"),
    ],
    ids=" ".join,
)
def test_nothing_is_written_to_an_address(
    words: tuple[str, ...],
    address: str,
    tmp_path: Path,
    privsweep: Command,
) -> None:
    put(tmp_path / "store", rows(5))
    assert privsweep(*words, "--store", "store", "--out", address) == 2
    assert "got the address" in privsweep.err
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_no_folder_is_made_for_a_cache_at_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, privsweep: Command
) -> None:
    monkeypatch.setenv("PRIVSWEEP_CACHE", "s3://bucket")
    privsweep("lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5")
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in privsweep.err


def test_control_characters_of_a_file_do_not_reach_the_terminal(tmp_path: Path, privsweep: Command) -> None:
    file = tmp_path / "spec.toml"
    for line in ('[[grid]]\nproblem = "a\\u001b[2Jb"', '"a\\u001b[2J" = 1', 'grid = "\\u009b2J"'):
        file.write_text(f'name = "x"\n{line}\n')
        assert privsweep("plan", file) == 2
        assert privsweep.err.rstrip("\n").isprintable()


def test_a_sentence_is_short_however_long_the_text_that_it_names(tmp_path: Path, privsweep: Command) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(f'name = "x"\n{"k" * 9_000} = 1\n')
    for words in (["plan", str(file)], ["methods", "q" * 9_000], ["ask", "q", "q" * 9_000], ["plan", "zzz"]):
        assert privsweep(*words) == 2
        assert len(privsweep.err) < LONGEST_SENTENCE + 20


def test_control_characters_of_arguments_do_not_reach_the_terminal(
    tmp_path: Path, privsweep: Command
) -> None:
    strange = "\x1b[31mX\u202e"
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\n[[grid]]\nproblem = "unamplified-epsilon"\nmethods = ["unamplified.exact"]\n'
        "product = { sigma = 1.0, delta = 1e-5 }\n"
    )
    store = ["--store", str(tmp_path / f"s{strange}")]
    for words in (
        ["status", *store],
        ["run", str(tmp_path / "tiny.toml"), *store, "--engine", "serial"],
        ["report", "sweep", "tiny", *store, "--format", "html", "--out", str(tmp_path / f"r{strange}")],
        ["report", "figures", *store, "--out", str(tmp_path / f"f{strange}")],
        ["table", "publish", *store, "--out", str(tmp_path / f"t{strange}")],
        ["page", "build", *store, "--out", str(tmp_path / f"p{strange}")],
        ["profile", "--sampling", "none", "--sigma", "1", "--chart", str(tmp_path / f"c{strange}.svg")],
    ):
        assert privsweep(*words) in {0, 1, 2, 3}, words
        for line in (privsweep.out + privsweep.err).splitlines():
            assert line.isprintable(), (words, line)


def test_cells_of_csv_are_data_and_printed_as_they_are(tmp_path: Path, privsweep: Command) -> None:
    assert (
        privsweep("run", "unamplified-epsilon", "sigma=1", "delta=1e-5", "--store", tmp_path / "store") == 0
    )
    assert privsweep("sql", "select chr(27) || '[31m' as x", "--csv", "--store", tmp_path / "store") == 0
    assert privsweep.out == "x\n\x1b[31m\n"
