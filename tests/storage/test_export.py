import math
from pathlib import Path

import pytest

from privcore import Answer, Status
from storage import open_store, write_manifest
from storage.export import store_sql, write_store_sql
from storage.place.located import located
from storage.sql.macros import COMPARED
from storage.table.lookup_table import import_lookup_table, read_lookup_table
from storage.table.shipped import shipped_file
from tests.storage.made_up import Claims, epsilon, manifest, put, row, rows
from tests.storage.plain import plainly

pytestmark = pytest.mark.sampled(1)

VIEWS = ("results", "best", "conflicts", "failures", "provenance", "sweeps", "unamplified_epsilon")


def as_texts(root: Path, query: str) -> list[list[str]]:
    with open_store(root) as store:
        return [list(map(str, row.values())) for row in store.sql(query).to_pylist()]


@pytest.fixture
def varied(root: Path) -> Path:
    """A store with a point computed twice, a conflict, a failure, and a sweep."""
    late = row(epsilon(), Answer.enclosure(1.0, 2.0), seconds_later=60, sweep="later")
    first = put(root, [row(epsilon(), Answer.enclosure(1.0, 2.0)), row(epsilon(adjacency="add"))])
    second = put(root, [late, row(epsilon(sigma=2.0), Answer.without(Status.TIMEOUT, "It took 3 s."))])
    third = put(root, [row(epsilon(adjacency="add"), Answer.enclosure(2.5, 4.0), method=Claims())])
    write_manifest(located(root), manifest(first, second, third))
    write_store_sql(located(root))
    return root


@pytest.mark.thorough
def test_plain_duckdb_shows_the_same_views(varied: Path) -> None:
    queries = {view: f"select * from {view} order by all" for view in VIEWS}
    queries["provenance"] = (
        "select * exclude (first_finished_at, last_finished_at) from provenance order by all"
    )
    queries["sweeps"] = "select * exclude (started_at, finished_at, counts, spec), len(spec) > 0 from sweeps"
    for view in ("results", "failures", "unamplified_epsilon"):
        queries[view] = f"select * replace (epoch_us(finished_at) as finished_at) from {view} order by all"
    plain = plainly(varied, *queries.values())
    assert [len(answer) for answer in plain] == [4, 2, 1, 1, 2, 1, 4]
    for (view, query), answer in zip(queries.items(), plain, strict=True):
        assert answer == as_texts(varied, query), view


@pytest.mark.thorough
def test_plain_duckdb_has_the_macros(varied: Path) -> None:
    queries = [
        "select upper, upper_from.sigma from unamplified_epsilon_at(sigma := 1.5, delta := 1e-5)",
        "from compare(sigma := 1.5, steps := 1, delta := 1e-5) where problem = 'unamplified-epsilon'",
        "select sigma from unamplified_epsilon_noise(epsilon := 2, delta := 1e-5)",
    ]
    plain = plainly(varied, *queries)
    assert plain[0] == [["2.0", "1.0"]]
    assert plain[2] == [["1.0"]]
    for query, answer in zip(queries, plain, strict=True):
        assert answer == as_texts(varied, query)


@pytest.mark.thorough
def test_parts_that_come_later_are_seen_without_a_new_file(varied: Path) -> None:
    put(varied, rows(5, first=900))
    assert plainly(varied, "select count(*) from results") == [[["9"]]]


@pytest.mark.thorough
def test_an_empty_store_has_all_views_and_macros(root: Path) -> None:
    open_store(root, create=True).close()
    write_store_sql(located(root))
    counts = [f"select count(*) from {view}" for view in VIEWS]
    nothing = "select lower, upper from epsilon_at(sigma := 1, steps := 10, delta := 1e-5)"
    assert plainly(root, *counts, nothing) == [*([["0"]] for _ in VIEWS), [["0.0", str(math.inf)]]]


@pytest.mark.thorough
def test_the_file_of_the_shipped_table_is_below_100_kb(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRIVSWEEP_TABLE")
    shipped = shipped_file()
    assert shipped is not None
    import_lookup_table(read_lookup_table(shipped), located(root), checked=False)
    assert len(set(root.glob("data/problem=*"))) == 9
    assert write_store_sql(located(root)).stat().st_size < 100_000
    query = "from compare(sigma := 0.83, steps := 1000, delta := 3e-6) order by problem"
    (answer,) = plainly(root, query)
    assert answer == as_texts(root, query)
    assert [each[0] for each in answer] == sorted(COMPARED)


def test_the_file_holds_no_absolute_path_and_is_written_only_where_it_changes(varied: Path) -> None:
    assert str(varied) not in store_sql(located(varied))
    before = (varied / "store.sql").stat().st_mtime_ns
    assert write_store_sql(located(varied)) == varied / "store.sql"
    assert (varied / "store.sql").stat().st_mtime_ns == before
    with open_store(varied) as store:
        (conflict,) = store.verify()
    assert "test.claims has at least 2.5" in conflict, "and nothing is wrong with the file"
