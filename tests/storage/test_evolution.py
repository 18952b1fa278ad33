"""Stores of other releases; `data/store-<version>` was written by one with that schema and never changes."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcore import Answer, Point, find, find_problem
from storage import SCHEMA_VERSION, StoreError, open_store
from storage.export import write_store_sql
from storage.place.located import located
from storage.schema import VERSION_KEY
from tests.storage.made_up import epsilon, put, row, rows
from tests.storage.plain import plainly
from tests.storage.test_parts import republish

pytestmark = pytest.mark.sampled(3)

DATA = Path(__file__).with_name("data")
COUNT = "select count(*), min(epochs), min(adjacency), count(value) from results"


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_a_store_of_every_earlier_schema_is_read(root: Path, version: int) -> None:
    shutil.copytree(DATA / f"store-{version}", root)
    query = "select sigma, delta, epochs, lower, upper, value, status, detail from results order by sigma"
    with open_store(root) as store:
        assert store.verify() == []
        assert [tuple(r.values())[:6] for r in store.sql(query).to_pylist()] == [
            (0.5, 1e-6, 1, 2.0, 4.0, 3.0),
            (1.0, 1e-6, 1, 1.0, 2.0, 1.5),
            (2.0, 1e-6, 1, 0.5, 1.0, 0.75),
            (3.0, 1e-5, 1, 0.0, float("inf"), None),
        ]
        found = store.lookup(epsilon(sigma=1.5, delta=1e-6))
        assert found is not None
        assert (found.lower, found.upper) == (0.5, 2.0)
        assert store.sql("select name, status, parts from sweeps").to_pylist() == [
            {"name": "made-up", "status": "complete", "parts": 1}
        ]
    put(root, rows(1, first=900))  # and new rows are stored next to the old rows
    write_store_sql(located(root))
    assert plainly(root, "select count(*) from results") == [[["5"]]]


def altered(root: Path, change: str) -> Path:
    """A store with one part as another release would have written it."""
    part = put(root, rows(2))
    table = pq.read_table(part, partitioning=None)
    metadata = table.schema.metadata
    index = table.column_names.index("sigma")
    changed = {
        "newer": lambda: table.replace_schema_metadata({**metadata, VERSION_KEY: str(SCHEMA_VERSION + 1)}),
        "unknown": lambda: table.append_column("weather", pa.array(["wet", "dry"])),
        "retyped": lambda: table.set_column(index, "sigma", pa.array(["1", "inf"])),
        "lacking": lambda: table.drop_columns(["sigma"]),
        "older": lambda: table.drop_columns(["epochs", "adjacency", "value"]),
    }
    return republish(part, changed[change]())


@pytest.mark.thorough
@pytest.mark.parametrize("beside_today", [False, True], ids=["alone", "beside-today"])
def test_columns_that_were_added_later_are_null_or_their_default(root: Path, beside_today: bool) -> None:
    altered(root, "older")
    if beside_today:
        put(root, rows(1, first=900))
    write_store_sql(located(root))
    with open_store(root) as store:
        (ours,) = store.sql(COUNT).to_pylist()
    assert list(ours.values()) == [2 + beside_today, 1, "add-remove", 0]
    assert plainly(root, COUNT) == [[[*map(str, ours.values())]]]


@pytest.mark.thorough
def test_a_former_word_is_read_as_the_word_that_replaces_it(root: Path) -> None:
    problem = find_problem("shuffling-epsilon").from_fields({"sigma": 1.0, "steps": 10, "delta": 1e-5})
    point = Point(problem=problem, method=find("shuffling.largest")())
    part = put(root, row(problem, Answer.at_least(2.0), method=point.method))
    table = pq.read_table(part, partitioning=None).drop_columns(["epochs", "redraw"])
    place = table.column_names.index("adjacency")
    former = pa.array(["add-remove"], table.schema.field("adjacency").type)
    republish(part, table.set_column(place, "adjacency", former))
    write_store_sql(located(root))
    query = "select point_id, adjacency, epochs, redraw from shuffling_epsilon"
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql(query).to_pylist() == [
            {"point_id": point.id, "adjacency": "zero-out", "epochs": 1, "redraw": "one-epoch"}
        ]
        found = store.lookup(problem)
        assert found is not None
        assert found.lower == 2.0
    assert plainly(root, query) == [[[point.id, "zero-out", "1", "one-epoch"]]]


@pytest.mark.parametrize(
    ("change", "ours", "plain"),
    [
        ("newer", "has schema version 2, but this release reads 1", "has schema version 2, not 1."),
        (
            "unknown",
            "has the column weather, which",
            "has the column weather, which store.sql does not list.",
        ),
        (
            "retyped",
            "has the column sigma as string, expected double",
            "has sigma as BYTE_ARRAY, expected DOUBLE.",
        ),
        ("lacking", "lacks the column sigma", "lacks the column sigma."),
    ],
)
def test_what_would_be_misread_is_refused_by_name_here_and_in_plain_sql(
    root: Path, change: str, ours: str, plain: str
) -> None:
    part = altered(root, change)
    put(root, rows(1, first=900))
    with pytest.raises(StoreError, match=ours) as caught, open_store(root) as store:
        store.sql("select 1")
    assert str(part) in str(caught.value)
    write_store_sql(located(root))
    assert plainly(root, COUNT) == f"Invalid Input Error: {part.relative_to(root)} {plain}"
