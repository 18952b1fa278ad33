"""Readers of Parquet files get all columns and rows of a store with several problems, as its page shows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privcore import Answer, find, find_problem
from storage import open_store
from tests.storage.made_up import put, row

QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "poisson-epsilon",
        "poisson.certified",
        {"sigma": 1.0, "steps": 9, "sampling_probability": 0.1, "delta": 1e-5},
    ),
    ("membership-advantage", "membership.exact", {"law": "uniform(5)", "records": 5}),
    ("label-advantage", "labels.cells", {"mechanism": "llp", "prior": "uniform", "bag_size": 4}),
]


@pytest.fixture
def store(root: Path) -> Path:
    """A store with three problems, whose columns differ."""
    for problem, method, fields in QUESTIONS:
        asked = find_problem(problem).from_fields(fields)
        put(root, [row(asked, Answer.enclosure(0.25, 0.5), method=find(method)())])
    return root


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "store.md").read_text()


def columns(store: Path) -> set[str]:
    """Return the names of the columns of all parts."""
    parts = list(store.glob("data/*/*.parquet"))
    assert len(parts) == 3
    return {name for part in parts for name in pq.read_schema(part).names}


READERS = ["by_pyarrow", "by_pandas", "by_polars"]


@pytest.mark.parametrize("reader", READERS)
def test_pyarrow_pandas_and_polars_read_all_columns_and_rows(
    reader: str, store: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(r"```python\n(.*?unify_schemas.*?)```", page, re.DOTALL)
    monkeypatch.chdir(store.parent)
    found: dict[str, Any] = {}
    exec(code.replace('"store/data"', repr(str(store / "data"))), found)
    assert sorted(each for each in found if each.startswith("by_")) == sorted(READERS)
    read = found[reader]
    names = read.schema.names if reader == "by_pyarrow" else list(read.columns)
    assert sorted(names) == sorted(columns(store))
    assert len(read) == 3
    with open_store(store) as opened:
        ids = {each["point_id"] for each in opened.sql("select point_id from results").to_pylist()}
    values = read["point_id"].to_pylist() if reader == "by_pyarrow" else list(read["point_id"])
    assert set(values) == ids


@pytest.mark.parametrize(
    "read",
    [
        pq.read_table,
        pd.read_parquet,
        pl.read_parquet,
        lambda path: pl.read_parquet(f"{path}/*.parquet"),
        lambda path: ds.dataset(path).to_table(),
        lambda path: ds.dataset(path, partitioning="hive").to_table(),
        lambda path: duckdb.execute(f"from '{path}/*.parquet'").df(),
    ],
    ids=["pq", "pandas", "polars", "polars-glob", "dataset", "dataset-hive", "duckdb"],
)
def test_the_folder_of_a_problem_needs_no_option(read: Callable[[str], Any], store: Path) -> None:
    for folder in store.glob("data/*"):
        (part,) = folder.glob("*.parquet")
        found = read(str(folder))
        assert len(found) == 1
        names = found.schema.names if isinstance(found, pa.Table) else list(found.columns)
        assert sorted(names) == sorted(pq.read_schema(part).names)


def test_the_calls_that_the_page_advises_against_fail_or_lose_columns(store: Path) -> None:
    data = str(store / "data")
    for quiet in (pd.read_parquet(data), pq.read_table(data), ds.dataset(data).to_table()):
        assert len(quiet) == 3
        assert quiet.shape[1] < len(columns(store))
    for path in (data, f"{data}/**/*.parquet"):
        with pytest.raises(pl.exceptions.SchemaError, match="extra column"):
            pl.read_parquet(path)
    with pytest.raises(pa.ArrowTypeError, match="Field problem has incompatible types"):
        ds.dataset(data, partitioning="hive")


def test_duckdb_reads_all_columns_and_rows(store: Path, page: str) -> None:
    (query,) = re.findall(r"```sql\n(select \* from read_parquet.*?)```", page, re.DOTALL)
    read = duckdb.query(query.strip().removesuffix(";").replace("store/data", str(store / "data")))
    assert read is not None
    assert sorted(read.columns) == sorted(columns(store))
    assert len(read.fetchall()) == 3
