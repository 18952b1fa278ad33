"""The small store in which tests ask the queries of the pages about papers, written from a full store.

    python -m tests.docs.kept STORE

takes the rows of a store with all sweeps of the four pages, leaves out every large group (one problem, method
and sweep) without which all queries print the same, and writes the others to `KEPT`. Hosts, commits and
versions of packages are left out. It takes some minutes.

    python -m tests.docs.kept --again

computes only those kept rows again whose method has a new version since, in a clean checkout.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from privcore import Point, evaluate, find, find_problem
from privcore.registry import versions
from storage import open_store, publish
from storage.place.located import located
from storage.schema import Row, to_table
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
        found[folder.name.removeprefix("problem=")] = _nameless(pa.concat_tables(parts).sort_by("point_id"))
    return found


def _nameless(table: pa.Table) -> pa.Table:
    """Return a table without hosts, commits and versions."""
    for name, value in _LEFT_OUT.items():
        column = pa.array([value] * table.num_rows).cast(table.schema.field(name).type)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
    return table


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
            _write(table, KEPT / f"{problem}.parquet")


def old(table: pa.Table) -> list[bool]:
    """Return for each row whether its method has another version now."""
    pairs = zip(table["method"].to_pylist(), table["method_version"].to_pylist(), strict=True)
    return [versions()[name] != version for name, version in pairs]


def again() -> None:
    """Compute the kept rows of older versions of methods again."""
    for path in sorted(KEPT.glob("*.parquet")):
        table = pq.read_table(path, partitioning=None)
        changed = pa.array(old(table))
        rows = table.filter(changed).to_pylist()
        if rows:
            new = _nameless(to_table([_again(row) for row in rows])).cast(table.schema)
            _write(pa.concat_tables([table.filter(pc.invert(changed)), new]).sort_by("point_id"), path)
            print(f"{len(rows)} of {len(table)} rows: {path.name}", flush=True)


def _again(row: dict[str, Any]) -> Row:
    kind = find_problem(row["problem"])
    problem = kind.from_fields({name: row[name] for name in kind.parameters})
    point = Point(problem=problem, method=find(row["method"]).from_knobs(json.loads(row["knobs"])))
    clock, processor = perf_counter(), process_time()
    return Row(
        point=point,
        answer=evaluate(point),
        seconds=perf_counter() - clock,
        cpu_seconds=process_time() - processor,
        attempt=1,
        finished_at=datetime.now(UTC),
        sweep=row["sweep"],
    )


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, **_COMPRESSION)


if __name__ == "__main__":
    if sys.argv[1] == "--again":
        again()
    else:
        main(Path(sys.argv[1]))
