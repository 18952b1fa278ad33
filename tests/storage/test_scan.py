"""Polars over the files of a store, as the page on stores shows it."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from privcore import Answer, Status, find, find_problem
from storage import open_store
from tests.storage.made_up import epsilon, put, row, rows
from tests.storage.test_parts import republish

CERTIFIED, DIRECT = find("allocation.certified")(), find("allocation.direct")()


def problem(sigma: float, epochs: int = 1) -> Any:
    fields = {"sigma": sigma, "steps": 10, "delta": 1e-5, "epochs": epochs}
    return find_problem("allocation-epsilon").from_fields(fields)


@pytest.fixture
def store(root: Path) -> Path:
    """A store with an old part, rows that were computed twice, failures, and another problem."""
    some = [row(problem(s), Answer.enclosure(1 / s, 2 / s), method=CERTIFIED) for s in (1.0, 1.5, 2.0)]
    part = put(root, some)
    republish(part, pq.read_table(part, partitioning=None).drop_columns(["epochs", "adjacency"]))
    put(root, [row(problem(1.0), Answer.without(Status.CRASHED, "Gone."), method=DIRECT)])
    put(root, [row(problem(1.0), Answer.without(Status.TIMEOUT, "Late."), method=DIRECT, seconds_later=4.0)])
    put(root, [row(problem(1.0), Answer.at_most(1.75), method=DIRECT, seconds_later=9.0)])
    for sweep in ("one", "two"):
        later = row(
            problem(3.0, 2), Answer.at_most(5.0), method=DIRECT, seconds_later=len(sweep), sweep=sweep
        )
        put(
            root,
            [
                later,
                row(
                    problem(4.0, 2), Answer.without(Status.NOT_APPLICABLE, "Two."), method=DIRECT, sweep=sweep
                ),
            ],
        )
    put(root, rows(3))
    return root


def played(repository: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the code of the page in a folder with a store; return its variables."""
    page = (repository / "docs" / "store.md").read_text()
    (code,) = (each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "scan_parquet" in each)
    monkeypatch.chdir(folder)
    variables: dict[str, Any] = {}
    exec(code, variables)
    return variables


def test_the_points_are_those_of_the_view(
    store: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = played(repository, store.parent, monkeypatch)["points"].collect().sort("point_id")
    with open_store(store) as opened:
        points = opened.frame("from allocation_epsilon order by point_id", "polars")
    assert len(points) == len(scanned) == 6
    same = [name for name in points.columns if name not in {"epochs", "adjacency", "part"}]
    as_text = pl.selectors.categorical().cast(pl.String)
    assert_frame_equal(scanned.select(same).with_columns(as_text), points.select(same))
    assert scanned["epochs"].null_count() == 3, "the part of an earlier release"
    assert_frame_equal(scanned.select(pl.col("epochs").fill_null(1)), points.select("epochs"))
    assert scanned["part"].str.ends_with(".parquet").all()


def test_the_brackets_are_those_of_the_view(
    store: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = played(repository, store.parent, monkeypatch)["brackets"].sort("problem_id")
    with open_store(store) as opened:
        best = opened.best("allocation-epsilon", "polars").sort("problem_id")
    assert_frame_equal(scanned, best.select("problem_id", "lower", "upper"))
    assert best["upper"].to_list().count(1.75) == 1


def test_one_scan_reads_all_parts_of_one_release(root: Path) -> None:
    put(root, rows(3))
    put(root, row(epsilon(sigma=7.0)))
    scanned = pl.scan_parquet(root / "data" / "*" / "*.parquet", hive_partitioning=False).collect()
    with open_store(root) as opened:
        assert_frame_equal(
            scanned.select("point_id", "sigma", "upper", "finished_at").sort("point_id"),
            opened.frame("select point_id, sigma, upper, finished_at from results order by 1", "polars"),
        )
