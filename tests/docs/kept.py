"""The small store in which tests ask the queries of the pages about papers, written from a full store.

    python -m tests.docs.kept STORE

takes the rows of a store with all sweeps of the four pages, leaves out every large group (one problem, method
and sweep) without which all queries print the same, and writes the others to `KEPT`. Hosts, commits and
versions of packages are left out. It takes some minutes.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage import open_store, publish
from storage.located import located
from tests.flows.support.claims import ROOT, Claims

KEPT = ROOT / "tests" / "flows" / "figures" / "kept"
PAGES = tuple(sorted(path.name for path in (ROOT / "docs").glob("reproduction-*.md")))
_LEFT_OUT = {"host": "unknown", "git_commit": "unknown", "versions": "{}"}
_COMPRESSION = {"compression": "zstd", "compression_level": 19}

LARGE = 100
"""Number of rows from which a group is left out if no query needs it."""

Group = tuple[str, str, str]


def written(folder: Path, tables: dict[str, pa.Table]) -> Path:
    """Write a store with these tables, one part for each problem."""
    for table in tables.values():
        if table.num_rows:
            publish(located(folder), table)
    return folder


def printed(folder: Path) -> dict[tuple[str, str], list[str]]:
    """Return the numbers that every query of every page prints, by page and number of the query."""
    with open_store(folder) as store:
        return {
            (page, number): [str(value) for value in store.sql(query).to_pylist()[0].values()]
            for page in PAGES
            for number, _, query in Claims(page).queries
        }


def tables_of(store: Path) -> dict[str, pa.Table]:
    """Return the rows of a store by problem, without hosts, commits and versions."""
    found = {}
    for folder in sorted((store / "data").iterdir()):
        parts = [pq.read_table(path, partitioning=None) for path in sorted(folder.glob("*.parquet"))]
        table = pa.concat_tables(parts).sort_by("point_id")
        for name, value in _LEFT_OUT.items():
            column = pa.array([value] * table.num_rows).cast(table.schema.field(name).type)
            table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
        found[folder.name.removeprefix("problem=")] = table
    return found


def without(tables: dict[str, pa.Table], group: Group) -> dict[str, pa.Table]:
    """Return the tables without the rows of a problem, method and sweep."""
    problem, method, sweep = group
    table = tables[problem]
    inside = pc.and_(pc.equal(table["method"], method), pc.equal(table["sweep"], sweep))
    return tables | {problem: table.filter(pc.invert(inside))}


def groups(tables: dict[str, pa.Table]) -> Iterator[Group]:
    """Yield every problem, method and sweep with many rows, the largest first."""
    counted = [
        (row["point_id_count"], (problem, row["method"], row["sweep"]))
        for problem, table in tables.items()
        for row in table.group_by(["method", "sweep"]).aggregate([("point_id", "count")]).to_pylist()
    ]
    yield from (group for count, group in sorted(counted, reverse=True) if count >= LARGE)


def main(store: Path) -> None:
    """Write the kept store, and print the groups that it has."""
    tables = tables_of(store)
    with tempfile.TemporaryDirectory() as folder:
        expected = printed(written(Path(folder) / "all", tables))
        for number, group in enumerate(groups(tables)):
            fewer = without(tables, group)
            if printed(written(Path(folder) / str(number), fewer)) == expected:
                tables = fewer
            else:
                print("keep", *group, flush=True)
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(parents=True)
    for problem, table in tables.items():
        if table.num_rows:
            pq.write_table(table, KEPT / f"{problem}.parquet", **_COMPRESSION)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
