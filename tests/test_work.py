"""Counts of work, instead of times: a change that increases the work of an answer fails a test.

The numbers in WORK are those of today. A test fails where a count exceeds its number by a tenth.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from math import floor
from pathlib import Path
from typing import Any

import pytest

from flows.cli.app import run
from flows.runs.plan import make_plan
from flows.spec.sweep import parse
from privcore import Point, evaluate, find, find_problem
from privcore.allocation.calibration import smallest_noise
from storage import Store, open_store, publish, to_table
from storage.place.folder import Folder
from storage.place.located import located
from storage.sql.lookup import lookup
from tests.storage.large import made_up_part
from tests.storage.made_up import rows
from tests.work import counted

ROOM = 1.1
NOISE = 0.5, 1.0

WORK: dict[str, dict[str, int]] = {
    "allocation": {"builds": 1, "combinations": 17, "pairs": 33971448, "readings": 12},
    "allocation, little noise": {"builds": 1, "combinations": 14, "pairs": 14375870, "readings": 11},
    "allocation, a million steps": {"builds": 1, "combinations": 25, "pairs": 63620695, "readings": 12},
    "allocation, 0.1 %": {"builds": 1, "combinations": 17, "pairs": 33971448, "readings": 12},
    "allocation, 10 of 1000": {
        "builds": 1,
        "combinations": 40,
        "pairs": 3562722,
        "terms": 6516502,
        "readings": 22,
    },
    "allocation, 100 of 10,000": {
        "builds": 1,
        "combinations": 50,
        "pairs": 4987282,
        "terms": 13723421,
        "readings": 24,
    },
    "allocation, 100 epochs": {"builds": 1, "combinations": 22, "pairs": 36297599, "readings": 11},
    "allocation, delta": {"builds": 3, "combinations": 51, "pairs": 42048128, "readings": 6},
    "Poisson": {"builds": 2, "combinations": 34, "pairs": 60841375, "readings": 23},
    "40 deltas": {"combinations": 102, "pairs": 227985990},
    "calibration": {"answers": 11, "hundredths of an evaluation": 44},
    "plan": {"batches": 32},
    "commit": {"flushes": 2, "bytes": 54466},
    "point lookup": {"queries": 4, "row groups": 3, "rows": 245848},
    "neighbour lookup": {"queries": 7, "row groups": 6, "rows": 614488},
    "start of a lookup": {"modules": 678, "files opened by Python": 2},
}

NEVER = {
    "ray",
    "prefect",
    "numba",
    "llvmlite",
    "dp_accounting",
    "matplotlib",
    "altair",
    "fastapi",
    "sqlalchemy",
}
NEVER |= {"s3fs", "jax", "sklearn", "pandas", "rich", "pyarrow.compute", "pyarrow.dataset"}
NEVER |= {"scipy.special", "scipy.stats", "scipy.optimize", "scipy.linalg"}
"""Packages that a lookup never needs; importing them would take ten times as long as the lookup."""

SWEEP = b"""
name = "work"
[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.certified"]
product = {sigma = {geometric = [0.5, 5, 1000]}, steps = [1000], delta = [1e-5, 1e-8]}
"""

ALLOCATION: dict[str, dict[str, Any]] = {
    "allocation": {"sigma": 1.0, "steps": 10_000, "delta": 1e-8},
    "allocation, little noise": {"sigma": 0.3, "steps": 1000, "delta": 1e-4},
    "allocation, a million steps": {"sigma": 1.0, "steps": 10**6, "delta": 1e-10},
    "allocation, 0.1 %": {"sigma": 1.0, "steps": 10_000, "delta": 1e-8, "tolerance": 0.001},
    "allocation, 10 of 1000": {"sigma": 1.0, "steps": 1000, "delta": 1e-5, "participations": 10},
    "allocation, 100 of 10,000": {"sigma": 2.0, "steps": 10_000, "delta": 1e-8, "participations": 100},
    "allocation, 100 epochs": {"sigma": 5.0, "steps": 1000, "delta": 1e-8, "epochs": 100},
}


def hold(name: str, counts: Mapping[str, int]) -> None:
    """Compare counts with the numbers of today."""
    known = WORK.get(name, {})
    more = {what: n for what, n in counts.items() if n > floor(ROOM * known.get(what, 0))}
    told = ", ".join(f"{n} {what} instead of {known.get(what, 0)}" for what, n in more.items())
    assert not more, (
        f"{name}: {told}. Find work that is done twice or for nothing. If more work is justified, say why in "
        f"the commit, and put {dict(counts)} into WORK of tests/test_work.py."
    )


def solved(problem: str, method: str, fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the work of an answer."""
    knobs = {name: value for name, value in fields.items() if name == "tolerance"}
    question = find_problem(problem).from_fields({k: v for k, v in fields.items() if k not in knobs})
    with counted() as work:
        assert evaluate(Point(problem=question, method=find(method).from_knobs(knobs))).ok
    return {what: n for what, n in vars(work).items() if what != "answers"}


@pytest.mark.parametrize("name", ALLOCATION)
def test_a_certified_bracket_of_allocation_takes_no_more_work_than_before(name: str) -> None:
    hold(name, solved("allocation-epsilon", "allocation.certified", ALLOCATION[name]))


def test_a_certified_delta_takes_no_more_work_than_before() -> None:
    fields = {"sigma": 1.0, "steps": 10_000, "epsilon": 0.05}
    hold("allocation, delta", solved("allocation-delta", "allocation.certified", fields))


def test_a_certified_bracket_of_poisson_sampling_takes_no_more_work_than_before() -> None:
    fields = {"sigma": 1.0, "steps": 10_000, "delta": 1e-8, "sampling_probability": 1e-4}
    hold("Poisson", solved("poisson-epsilon", "poisson.certified", fields))


def test_many_deltas_of_one_run_share_their_laws() -> None:
    kind, method = find_problem("allocation-epsilon"), find("allocation.certified")()
    with counted() as work:
        for k in range(40):
            fields = {"sigma": 1.0, "steps": 10_000, "delta": 1e-10 * 1.6**k}
            assert evaluate(Point(problem=kind.from_fields(fields), method=method)).ok
    hold("40 deltas", {"combinations": work.combinations, "pairs": work.pairs})


def test_a_calibration_takes_few_evaluations() -> None:
    """Beside the work of one bracket as narrow as the last ones of the search."""
    with counted() as work:
        found = smallest_noise("allocation", epsilon=1.0, delta=1e-8, steps=10_000, precision=1e-3)
    assert found.upper <= found.lower * 1.001
    fields = {"sigma": found.upper, "steps": 10_000, "delta": 1e-8, "tolerance": 1e-4}
    once = solved("allocation-epsilon", "allocation.certified", fields)
    evaluations = round(100 * work.pairs / once["pairs"])
    hold("calibration", {"answers": work.answers, "hundredths of an evaluation": evaluations})


def test_a_sweep_is_cut_into_few_batches(tmp_path: Path) -> None:
    plan = make_plan(parse(SWEEP, "sweep"), open_store(tmp_path / "store", missing_ok=True), workers=2)
    assert plan.total == 2000
    hold("plan", {"batches": len(plan.batches)})


def test_a_commit_writes_few_files_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "store"
    flushed: list[int] = []
    publish(located(root), to_table(rows(1)))
    before = bytes_below(root)
    monkeypatch.setattr(os, "fsync", flushed.append)
    publish(located(root), to_table(rows(1000, first=1)))
    hold("commit", {"flushes": len(flushed), "bytes": bytes_below(root) - before})


def bytes_below(folder: Path) -> int:
    """Return the total size of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.thorough
def test_a_run_opens_its_store_once_and_hands_it_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def count(kind: type[Any], name: str) -> None:
        made = vars(kind)["__init__"]

        def init(*given: Any, **more: Any) -> None:
            opened.append(name)
            made(*given, **more)

        monkeypatch.setattr(kind, "__init__", init)

    count(Store, "store")
    count(Folder, "place")
    question = ["allocation-epsilon", "sigma=1,2", "steps=10", "delta=1e-5"]
    options = [
        "--method",
        "allocation.decomposition",
        "--engine",
        "serial",
        "--store",
        str(tmp_path / "store"),
    ]
    assert run(["run", *question, *options]) == 0
    assert opened == ["place", "store"]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 130,000 rows, more than a row group, with its snapshot."""
    root = tmp_path_factory.mktemp("work") / "store"
    publish(located(root), made_up_part(NOISE[0]))
    publish(located(root), made_up_part(NOISE[1]).slice(0, 30_000))
    with open_store(root) as store:
        store.sql("select 1")
    return root


class Explained:
    """A connection that counts queries and the rows of their scans."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.counts = dict.fromkeys(("queries", "row groups", "rows"), 0)

    def execute(self, query: str, values: Any = ()) -> Any:
        ((_, told),) = self.connection.execute(f"explain (analyze, format json) {query}", values).fetchall()
        self.counts["queries"] += 1
        for scan in scans(json.loads(told)["operator"]):
            self.counts["row groups"] += scan["row_groups_scanned"]
            self.counts["rows"] += scan["rows_scanned"]
        return self.connection.execute(query, values)


def scans(operators: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the operators that read tables, at any depth."""
    for operator in operators:
        if operator["type"] == "TABLE_SCAN":
            yield operator
        yield from scans(operator.get("children", []))


@pytest.mark.parametrize(("name", "steps"), [("point lookup", 10), ("neighbour lookup", 11)])
def test_a_lookup_reads_few_row_groups(large: Path, name: str, steps: int) -> None:
    fields = {"sigma": NOISE[1], "steps": steps, "delta": 1e-12, "participations": 3, "epochs": 2}
    with open_store(large) as store, store._cursor() as cursor:
        explained = Explained(cursor)
        found = lookup(explained, find_problem("allocation-epsilon").from_fields(fields))  # type: ignore[arg-type]
        assert found is not None
        assert found.exact is (steps == 10)
        hold(name, explained.counts)


def test_a_lookup_opens_few_files_and_imports_little(large: Path) -> None:
    """In a separate process; packages that a lookup never needs are named, and the others are counted."""
    run = f"--sampling allocation --sigma {NOISE[1]} --steps 10 --delta 1e-12"
    arguments = f"epsilon {run} --stored-only --json --store {large}"
    script = (
        "import json, sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, of: event == 'open' and opened.append(str(of[0])))\n"
        "from flows.cli.app import run\n"
        f"assert run({arguments.split()!r}) == 0\n"
        f"told = sorted(sys.modules), sum(name.startswith({str(large)!r}) for name in opened)\n"
        "print(json.dumps(told), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules, opened = json.loads(done.stderr)
    assert NEVER & set(modules) == set()
    hold("start of a lookup", {"modules": len(modules), "files opened by Python": opened})
