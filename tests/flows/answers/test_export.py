import json
import os
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pyarrow.parquet as pq
import pytest

from flows.answers.export import markdown, target_of, tex
from flows.cli.app import run
from flows.cli.store import _ended
from flows.runs.ledger import Ledger
from flows.runs.status import coverage, record
from flows.spec.sweep import parse
from privcore import DomainError
from storage import open_store
from tests.flows.small_store import Command
from tests.storage.made_up import NOON, epsilon, put, row, rows
from tests.storage.plain import plainly

pytestmark = pytest.mark.sampled(8)

Run = Callable[..., tuple[int, str, str]]

HOSTILE = """
    select '=cmd()' as a, 'a|b[x](javascript:y)<script>' as b, '5% & $x_1$ \\input{z}' as c,
           'nan'::double as d, 'inf'::double as e, {'f': 'nan'::double, 'g': [1.5]} as f, 1e-8::double as g
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    put(tmp_path / "store", rows(3))
    return tmp_path / "store"


def export(store: Path, *arguments: object) -> int:
    return run(["export", *map(str, arguments), "--store", str(store)])


def test_json_is_strict_at_any_depth(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(store, HOSTILE, "--format", "json") == 0

    def refuse(token: str) -> None:
        raise AssertionError(token)

    (cells,) = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert (cells["d"], cells["e"], cells["f"]) == (None, "inf", {"f": None, "g": [1.5]})


def test_csv_starts_no_formula(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(store, HOSTILE) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head == "a,b,c,d,e,f,g"
    assert line.startswith("'=cmd(),")
    assert line.endswith(",1e-08")


def test_markdown_and_tex_hold_text_and_nothing_that_acts(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(store, HOSTILE, "--format", "md") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "|---|---|---|---:|---:|---|---:|"
    assert r" a\|b\[x\](javascript:y)\<script\> " in lines[2]
    assert export(store, HOSTILE, "--format", "tex") == 0
    text = capsys.readouterr().out
    assert r"5\% \& \$x\_1\$ \textbackslash{}input\{z\}" in text
    assert text.startswith("\\begin{tabular}{lllrrlr}\n\\toprule\n")
    assert tex(["x"], [["[1]"]]).splitlines()[4] == "{}[1] \\\\"
    assert markdown(["x"], []) == "| x |\n|---|\n"


def test_what_latex_and_markdown_act_on_is_text_wherever_it_stands() -> None:
    assert tex(["x"], [[" [1cm]"], ["\n*"]]).splitlines()[4:6] == ["{} [1cm] \\\\", "{} * \\\\"]
    assert r"| http\://a.b WWW\.a.b a:b |" in markdown(["x"], [["http://a.b WWW.a.b a:b"]])


def test_negative_decimals_are_numbers(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select -1.5 as a, sum(-range) as b, 12345678901234567890.5 as c from range(3)"
    for form, text in [("csv", "a,b,c\n-1.5,-3,12345678901234567890.5\n"), ("md", "|---:|---:|---|")]:
        assert export(store, query, "--format", form) == 0
        assert text in capsys.readouterr().out


def test_many_rows_are_written_in_pieces_that_fit(store: Path, tmp_path: Path) -> None:
    names = [tmp_path / "x.csv", tmp_path / "x.json"]
    for count in (0, 25_000):
        for out in names:
            assert export(store, f"select range as a, 'b' as a from range({count})", "--out", out) == 0
        assert names[0].read_text() == "a,a\n" + "".join(f"{k},b\n" for k in range(count))
        assert json.loads(names[1].read_text()) == [{"a": k, "a_2": "b"} for k in range(count)]


@pytest.mark.parametrize(
    "value",
    [
        "'infinity'::timestamp",
        "'20000-01-01'::date",
        "'1:2:3.000000001'::time_ns",
        "'2020-01-01 00:00:00.000000001'::timestamp_ns",
    ],
)
def test_a_time_that_python_lacks_is_one_sentence(
    store: Path, tmp_path: Path, value: str, privsweep: Command
) -> None:
    query = f"select {value} as late"
    assert export(store, query, "--out", tmp_path / "x.parquet") == 0
    for arguments in (["export", query, "--format", "md"], ["export", query], ["sql", query]):
        assert privsweep(*arguments, "--store", store) == 2
        error = privsweep.err
        assert "got other times in late; cast them to varchar." in error
        assert error.count("\n") == 1


@pytest.mark.thorough
def test_a_query_that_cannot_be_stopped_ends_the_command(process: Run, folder: Path) -> None:
    put(folder / "store", rows(1))
    query = "select levenshtein(repeat('a', 300000), repeat('b', 300000))"  # one call of minutes
    code, out, error = process("sql", query, "--store", folder / "store", "--limit-seconds", "0.2")
    assert (code, out, error) == (4, "", "privsweep: The query took longer than 0.2 s.\n")


def test_a_query_that_takes_memory_beyond_its_limit_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes: Queue[int] = Queue()
    monkeypatch.setattr("os._exit", codes.put)
    monkeypatch.setattr("flows.cli.store.MOST_BYTES", -1)
    with _ended(60):
        assert codes.get(timeout=10) == 4
    assert "privsweep: The query needs too much memory.\n" in capsys.readouterr().err


def test_parquet_keeps_types_and_values(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "best.parquet"
    assert export(store, "select sigma, steps, problem, upper from best order by sigma", "--out", out) == 0
    table = pq.read_table(out)
    assert [str(kind) for kind in table.schema.types] == ["double", "int64", "string", "double"]
    assert table["sigma"].to_pylist() == [1.0, 1.01, 1.02]


@pytest.mark.thorough
def test_the_format_follows_the_name_of_the_file(store: Path, tmp_path: Path) -> None:
    for suffix, start in [("csv", "sigma\n1.0\n"), ("json", '[{"sigma": 1.0}, '), ("md", "| sigma |\n")]:
        out = tmp_path / "new folder" / f"x.{suffix}"
        assert export(store, "select sigma from best order by 1", "--out", out) == 0
        assert out.read_text().startswith(start)
    assert export(store, "select 1 as a", "--format", "csv", "--out", tmp_path / "x.md") == 0
    assert (tmp_path / "x.md").read_text() == "a\n1\n"


def test_nothing_is_written_inside_a_store(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "other", row(epsilon()))
    (tmp_path / "link").symlink_to(store / "data")
    (tmp_path / "file").symlink_to(store / "store.json")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    outs = [store / "store.json", store / "data" / "x.csv", tmp_path / "link" / "x.csv", tmp_path / "file"]
    outs += [tmp_path / "other" / "x.csv", store / ".." / "store" / "x.csv"]
    for out in outs:
        assert export(store, "select 1", "--format", "csv", "--out", out) == 2
        assert "Expected a file outside of every store" in capsys.readouterr().err
    assert export(store, "select 1", "--format", "csv", "--out", tmp_path) == 2
    assert {
        p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and "cache" not in p.parts
    } == before


def test_no_device_pipe_or_link_is_replaced(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to(tmp_path / "pipe")
    with pytest.raises(DomainError, match="got the device or pipe /dev/null"):
        target_of(Path("/dev/null"))
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(DomainError, match="a link that leads back to itself"):
        target_of(tmp_path / "round")
    for name in ("pipe", "to-pipe"):
        assert export(store, "select 1", "--format", "csv", "--out", tmp_path / name) == 2
        assert capsys.readouterr().err.startswith("privsweep: Expected a file, got the device or pipe ")
    (tmp_path / "link.csv").symlink_to(tmp_path / "new.csv")
    assert export(store, "select 1 as a", "--out", tmp_path / "link.csv") == 0
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "to-pipe").is_symlink()
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "new.csv").read_text() == "a\n1\n"


def test_a_query_that_fails_leaves_the_file_as_it_was(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    out.write_text("mine")
    endless = (
        "select count(*) from range(100000) a, range(100000) b, range(100) c where a.range + b.range > 7"
    )
    assert export(store, "copy results to 'x.csv'", "--out", out) == 2
    assert export(store, endless, "--out", out, "--limit-seconds", "0.3") == 4
    assert out.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name != "store"] == ["x.csv"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["select 1", "--format", "xlsx"], "xlsx"),
        (["select 1", "--format", "parquet"], "Expected --out FILE for the format parquet."),
        (["select 1", "--store-sql"], "Expected either a query or --store-sql."),
        ([], "Expected either a query or --store-sql."),
        (["select 1 as a, 2 as a", "--format", "parquet", "--out", "{out}"], "columns with different names"),
        (["select interval 1 day as a", "--out", "{out}"], "Parquet cannot hold this table"),
    ],
)
def test_misuse_is_one_sentence(
    store: Path,
    tmp_path: Path,
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "x.parquet"
    assert export(store, *(word.format(out=out) for word in arguments)) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_store_sql_can_be_had_elsewhere(store: Path, tmp_path: Path) -> None:
    assert export(store, "--store-sql", "--out", tmp_path / "mine.sql") == 0
    (store / "store.sql").write_text((tmp_path / "mine.sql").read_text())
    assert plainly(store, "select count(*) from results") == [[["3"]]]


@pytest.mark.thorough
def test_the_end_of_a_sweep_writes_store_sql_beside_the_data(store: Path) -> None:
    text = """
        name = "s"
        [[grid]]
        problem = "unamplified-epsilon"
        methods = ["unamplified.exact"]
        product = {sigma = [1.0], delta = [1e-5]}
    """
    sweep = parse(text.encode(), "s.toml")
    ledger = Ledger(sweep.grids)
    with open_store(store, missing_ok=True) as opened:
        ledger.read(opened)
        record(sweep, coverage(sweep, ledger), ledger.parts, opened, NOON)
    query = "select count(*) from unamplified_epsilon where status = 'ok'"
    assert plainly(store, query, "select name, status from sweeps") == [[["3"]], [["s", "complete"]]]
