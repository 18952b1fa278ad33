"""`sql` and `export` print while the query runs: in limited memory and time, until the reader has enough."""

import io
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flows.answers.export import FORMATS
from flows.cli.app import run
from privcore import LimitError
from storage import QueryError, open_store
from storage.sql.query import ROWS
from tests.flows.small_store import Command
from tests.storage.made_up import put, rows

PRIVSWEEP = Path(sys.executable).with_name("privsweep")
ENDLESS = "from range(1000000000000)"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    put(tmp_path / "store", rows(3))
    return tmp_path / "store"


def printing(store: Path, *words: str) -> "subprocess.Popen[bytes]":
    """Return a command that prints a result without end."""
    command = [str(PRIVSWEEP), *words, ENDLESS, "--store", str(store)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("form", list(FORMATS))
def test_no_format_keeps_the_rows_that_it_has_written(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.export.GROUP_BYTES", 1)
    most = 0
    given: list[weakref.ref[Any]] = []

    def pieces() -> Iterator[Any]:
        nonlocal most
        for k in range(20):
            piece = pa.table({"a": [k], "b": ["x"]})
            given.append(weakref.ref(piece))
            yield piece
            del piece
            most = max(most, sum(each() is not None for each in given))

    file = io.BytesIO()
    FORMATS[form](pieces(), file)
    assert file.tell() > 0
    assert 0 < most <= 3


def test_a_part_of_a_result_is_there_before_the_query_ends(store: Path) -> None:
    with open_store(store) as opened:
        assert opened.stream(ENDLESS, lambda pieces: next(pieces).num_rows, limit_seconds=30) >= ROWS
        empty = opened.stream("select 1 as a where false", lambda pieces: [p.column_names for p in pieces])
        assert empty == [["a"]]


def test_short_parts_of_a_union_are_joined(store: Path) -> None:
    query = "from range(3) union all from range(4) union all from range(30000)"
    with open_store(store) as opened:
        sizes = opened.stream(query, lambda pieces: [piece.num_rows for piece in pieces])
    assert sum(sizes) == 30_007
    assert all(size >= ROWS for size in sizes[:-1])


@pytest.mark.parametrize("words", [["sql"], ["sql", "--json"], ["export"], ["export", "--format", "tex"]])
def test_the_time_limit_includes_printing(
    store: Path, words: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run([*words, ENDLESS, "--store", str(store), "--limit-seconds", "0.5"]) == 4
    printed = capsysbinary.readouterr()
    assert len(printed.out) > ROWS
    assert printed.err == b"privsweep: The query took longer than 0.5 s.\n"


def test_a_file_is_written_whole_or_not_at_all(store: Path, tmp_path: Path) -> None:
    for name in ("new/x.csv", "new/x.parquet"):
        out = tmp_path / name
        words = ["--out", str(out), "--store", str(store)]
        assert run(["export", ENDLESS, *words, "--limit-seconds", "0.5"]) == 4
        assert list(out.parent.iterdir()) == []
        out.parent.rmdir()
        assert run(["export", "select nothing", *words]) == 2
        assert not out.parent.exists()


def test_an_error_in_the_middle_of_a_result_is_one_sentence(
    store: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    query = "select case when range = 900000 then error('late') else range end as a from range(1000000)"
    assert run(["sql", query, "--csv", "--store", str(store)]) == 2
    printed = capsysbinary.readouterr()
    assert printed.out.startswith(b"a\n0\n1\n")
    assert printed.err.count(b"\n") == 1
    assert b"late" in printed.err


def test_a_table_of_many_rows_has_its_names_once_in_a_pipe(store: Path, privsweep: Command) -> None:
    assert privsweep("sql", "select range as a from range(25000)", "--store", store) == 0
    lines = privsweep.out.splitlines()
    assert [line.strip() for line in lines] == ["a", *map(str, range(25_000))]


@pytest.mark.parametrize("words", [["sql"], ["export", "--format", "json"]])
def test_a_reader_that_has_enough_ends_the_command_quietly(store: Path, words: list[str]) -> None:
    with printing(store, *words) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.read(100)
        command.stdout.close()
        assert command.stderr.read() == b""
    assert command.returncode == 0


def test_ctrl_c_ends_the_printing_of_a_result(store: Path) -> None:
    with printing(store, "sql", "--csv") as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == b"range\n"
        command.send_signal(signal.SIGINT)
        while command.stdout.read(1 << 20):
            pass
        assert command.stderr.read() == b"privsweep: Interrupted.\n"
    assert command.returncode == 130


def test_the_time_of_a_pager_is_not_the_time_of_the_query(store: Path) -> None:
    def read(pieces: Iterator[Any]) -> int:
        count = 0
        for piece in pieces:
            time.sleep(0.3)
            count += piece.num_rows
        return count

    with open_store(store) as opened:
        opened.sql("select 1")
        assert opened.stream("from range(40000)", read, limit_seconds=1.0) == 40_000


def test_a_damaged_snapshot_is_not_read_again_after_rows_were_printed(store: Path) -> None:
    calls = []

    def broken(pieces: Iterator[Any]) -> None:
        calls.append(next(pieces).num_rows)
        raise QueryError("IO Error: Corrupt database file: a checksum.")

    with open_store(store) as opened:
        with pytest.raises(QueryError, match="Corrupt database file"):
            opened.stream("from results", broken)
        assert calls == [3]
        assert opened.sql("from results").num_rows == 3
        with pytest.raises(LimitError):
            opened.stream(ENDLESS, lambda pieces: sum(piece.num_rows for piece in pieces), limit_seconds=0.3)
