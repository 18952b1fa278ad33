import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from privcore import PROBLEMS, LimitError
from storage import QueryError, Store, open_store
from storage.sql.snapshot import _LOCKED
from tests.storage.made_up import put, rows

pytestmark = pytest.mark.sampled(6)

ENDLESS = "select count(*) from range(1000000000) a, range(1000000) b where (a.range + b.range) % 7 = 8"


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    put(root, rows(3))
    with open_store(root) as store:
        yield store


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "query",
    [
        "from read_csv('/etc/passwd')",
        "from read_text('/etc/passwd')",
        "from read_blob('/etc/passwd')",
        "from '/etc/passwd'",
        "from glob('/etc/*')",
        "from read_parquet('{root}/data/*/*.parquet')",
        "from read_json('https://example.org/x.json')",
        "from parquet_metadata('{root}/data/*/*.parquet')",
        "from sniff_csv('/etc/passwd')",
        "from query('copy (select 1) to ''{root}/x.csv''')",
        "from secret",
        "copy results to '{root}/x.csv'",
        "copy (select 1) to '{root}/cache/x.csv'",
        "attach '{root}/cache/x.duckdb'",
        "export database '{root}/x'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "reset memory_limit",
        "pragma enable_profiling",
        "call pragma_version()",
        "create table x as select 1",
        "create temp table x as select 1",
        "insert into main.unamplified_epsilon select * from main.unamplified_epsilon",
        "update main.unamplified_epsilon set upper = 0",
        "delete from main.unamplified_epsilon",
        "drop view results",
        "vacuum",
        "begin",
        "select 1; drop view results",
        "create temp table mine as pivot results on status using count(*)",
        "copy (pivot results on status using count(*)) to '{root}/x.csv'",
        "delete from main.unamplified_epsilon where 1 in (from (pivot results on status using count(*)))",
        "pivot results on status using count(*)); drop view results; from (select 1",
        "select 1; select 2",
        "explain analyze copy (select 1) to '{root}/x.csv'",
        "explain analyze delete from main.unamplified_epsilon",
        "",
        "-- nothing",
        "selec 1",
        "select nothing from results",
        "select 'a'::int",
        "select ?",
    ],
)
def test_sql_answers_selects_over_the_views_and_nothing_else(store: Store, query: str) -> None:
    secret = "a variable of this frame"  # noqa: F841  DuckDB would find it, were that not switched off
    before = {p: p.stat().st_mtime_ns for p in store.place.root.rglob("*.parquet")}
    assert store.sql("from results").num_rows == 3
    files = set(store.place.root.rglob("*"))
    with pytest.raises(QueryError) as caught:
        store.sql(query.format(root=store.place.root))
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert store.sql("from results").num_rows == 3
    assert set(store.place.root.rglob("*")) == files
    assert {p: p.stat().st_mtime_ns for p in store.place.root.rglob("*.parquet")} == before


def test_syntax_errors_are_told_in_one_sentence(store: Store) -> None:
    for query, sentence in [
        ("selec 1", 'Parser Error: syntax error at or near "selec".'),
        ("select 1; select 2", "Expected one SELECT, got 2 statements."),
        ("drop view results", "Expected one SELECT, got DROP."),
        ("", "Expected one SELECT, got 0 statements."),
        ("select '\udcff'", "Expected text in UTF-8, got an invalid byte at character 9."),
    ]:
        with pytest.raises(QueryError) as caught:
            store.sql(query)
        assert str(caught.value) == sentence


def test_everything_that_reads_is_allowed(store: Store) -> None:
    for query, count in [
        ("with x as (select 1 as one) from x", 1),
        ("values (1), (2)", 2),
        ("describe results", store.sql("from results").num_columns),
        ("explain select 1", 1),
        ("show tables", store.sql("show tables").num_rows),
        ("summarize results", store.sql("from results").num_columns),
        ("table results", 3),
        ("pivot results on status using count(*) group by problem;", 1),
        ("with p as (pivot results on status using count(*) group by problem) from p -- a table", 1),
        ("describe pivot results on status using count(*) group by problem", 2),
        ("unpivot results on lower, upper into name side value bound", 6),
        ("select sigma, upper from results where upper > 1 order by sigma limit 2;", 2),
        ("select problem, count(*), max(finished_at) from results group by problem", 1),
    ]:
        assert store.sql(query).num_rows == count


def test_every_column_of_results_and_best_has_a_comment_that_describe_shows(store: Store) -> None:
    commented = "from duckdb_columns() where table_name in ('results', 'best') and comment <> ''"
    (count,) = store.sql(f"select count(*) as n {commented}").to_pylist()
    assert count["n"] == sum(store.sql(f"from {view}").num_columns for view in ("results", "best"))
    shown = {row["column_name"]: row["comment"] for row in store.sql("DESCRIBE results;").to_pylist()}
    assert list(shown) == store.sql("from results").column_names
    assert all(shown.values())
    assert shown["confidence"] == "Probability of the enclosure; 1 is a proof"


def test_times_are_in_utc_wherever_one_asks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, rows(1))
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        with open_store(root) as store:
            answer = store.sql("select finished_at, finished_at::varchar as text from results").to_pylist()[0]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert answer["finished_at"].isoformat() == "2026-11-01T12:00:00+00:00"
    assert answer["text"] == "2026-11-01 12:00:00+00"


@pytest.mark.parametrize(
    "query",
    [
        ENDLESS,
        "select a.range from range(1000000000) a, range(1000000) b where (a.range + b.range) % 7 = 8",
    ],
    ids=["one-row", "stream"],
)
def test_a_query_that_takes_too_long_is_stopped(store: Store, query: str) -> None:
    with pytest.raises(LimitError, match=r"^The query took longer than 0.3 s\.$"):
        store.sql(query, limit_seconds=0.3)
    assert store.sql("from results").num_rows == 3


def test_a_limit_that_is_over_at_once_stops_the_query_all_the_same(store: Store) -> None:
    with pytest.raises(LimitError):
        store.sql(ENDLESS, limit_seconds=0)


def test_a_limit_is_a_time_or_infinity(store: Store) -> None:
    assert store.sql("from results", limit_seconds=math.inf).num_rows == 3
    for limit in (math.nan, -1.0):
        with pytest.raises(QueryError, match="Expected a limit of at least 0 seconds, got "):
            store.sql("from results", limit_seconds=limit)


def test_a_query_that_needs_too_much_memory_is_stopped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_LOCKED, "memory_limit", "50MB")
    with pytest.raises(LimitError, match="needs too much memory"):
        store.sql("select count(distinct (a.range, b.range)) from range(100000) a, range(100000) b")


def test_a_result_that_is_too_large_is_stopped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.sql.query.LIMIT_BYTES", 10_000_000)
    with pytest.raises(LimitError, match=r"^The result exceeds 0\.01 GB"):
        store.sql("from range(1000000000000)")


def test_ctrl_c_ends_a_query_at_once(store: Store) -> None:
    assert store.sql("select 1").num_rows == 1
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        store.sql(ENDLESS, limit_seconds=30)


def test_two_threads_can_ask_one_store(store: Store) -> None:
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(store.sql("from results").num_rows)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [3] * 8


def test_views_read_only_problems_with_rows_and_have_the_columns_of_all(store: Store) -> None:
    tables = "regexp_extract_all(sql, 'main\\.([a-z_]+)', 1)"
    (found,) = store.sql(
        f"select {tables} as read from duckdb_views() where view_name = 'results'"
    ).to_pylist()
    assert found["read"] == ["unamplified_epsilon"]
    columns = store.sql("from results").column_names
    assert {name for kind in PROBLEMS for name in kind.parameters} <= set(columns)
