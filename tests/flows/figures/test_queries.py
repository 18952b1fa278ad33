"""The queries of the pages about papers print the numbers of the pages, on a kept store of their sweeps."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.figures.papers import SWEEPS
from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import evaluate
from privcore.registry import used_versions, versions
from storage import open_store
from tasks.guard import estimate
from tests.docs.kept import KEPT, PAGES, written
from tests.flows.support.claims import Claims

QUICK = 0.05
"""Seconds of computation up to which a kept row is computed again."""
SAMPLE = 40


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = {path.stem: pq.read_table(path, partitioning=None) for path in KEPT.glob("*.parquet")}
    return written(tmp_path_factory.mktemp("kept") / "store", tables)


def test_no_kept_row_is_of_a_version_of_its_method_that_is_not_used() -> None:
    """Else: `python -m tests.docs.kept --again`."""
    oldest, names = used_versions(), ("method", "method_version")
    for path in KEPT.glob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        for method, version in zip(*(table[name].to_pylist() for name in names), strict=True):
            assert version >= oldest[method], (path.stem, method, version)


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES)
def test_every_query_of_a_page_prints_its_numbers(page: str, kept: Path) -> None:
    queries = Claims(page).queries
    assert queries
    with open_store(kept) as store:
        for number, printed, query in queries:
            (row,) = store.sql(query).to_pylist()
            assert list(map(float, row.values())) == list(map(float, printed.split(", "))), number


@pytest.mark.thorough
def test_kept_rows_are_those_of_the_sweeps_and_today_s_code_computes_them(kept: Path) -> None:
    """Else: `python -m tests.docs.kept STORE`, with a store in which the sweeps were run again."""
    points = {
        point.id: point for names in SWEEPS.values() for name in names for point in expand(load(name).grids)
    }
    with open_store(kept) as store:
        ends = "lower, upper, value"
        found = store.sql(f"select point_id, method, method_version, {ends} from results order by point_id")
    rows = [row for row in found.to_pylist() if row["method_version"] == versions()[row["method"]]]
    assert {row["point_id"] for row in rows} <= points.keys()
    quick = [row for row in rows if estimate(points[row["point_id"]]).seconds <= QUICK]
    assert len(quick) > 10 * SAMPLE
    for row in quick[:: len(quick) // SAMPLE]:
        answer = evaluate(points[row["point_id"]])
        for name in ("lower", "upper", "value"):
            assert getattr(answer, name) == pytest.approx(row[name], rel=1e-9), (name, row)
