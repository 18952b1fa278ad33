"""Sweeps as the command runs them, except for the scheduler: planned, computed, stored and recorded."""

import hashlib
import importlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import flows.runs.run
import tasks.batch
import tasks.engine
from flows.runs.batches import Batches, grouped
from flows.runs.ledger import Ledger
from flows.spec.grid import expand
from flows.spec.sweep import parse
from privcore.point import evaluate
from storage import open_store
from storage.place.located import located
from storage.schema import provenance
from tasks.batch import Batch
from tasks.guard import Limits, Measured
from tasks.work import Job, run_batch
from tests.faults import disk

PROBLEM = "unamplified-epsilon"
SPEC = """
name = "harmed"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = [0.5, 1, 1.5, 2, 3, 5], delta = [1e-8, 1e-5]}
"""
POINTS = 12
BATCHES = 3
MANY = SPEC.replace("[0.5, 1, 1.5, 2, 3, 5]", "{linear = [0.5, 5, 50]}")

# Otherwise, a sweep imports these on its way, which takes most of its time; forked children inherit them.
for _name in ("flows.cli.app", "flows.runs.repair", "pandas", "pyarrow.pandas_compat", "scipy.special"):
    importlib.import_module(_name)
provenance()  # calls git once


class Here:
    """Evaluates points in this process instead of a guard's child, so that a hundred runs are cheap."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def results(self, batch: Batch, *, last: bool = True) -> Iterator[Measured]:
        """Yield the answers of a batch; every one of them is a fault point."""
        for point in batch.points():
            disk.point("compute", WHERE[0])
            answer = evaluate(point)
            yield Measured(answer=answer, seconds=1e-3, cpu_seconds=1e-3, finished_at=datetime.now(UTC))


WHERE = [Path("/")]  # a computation counts as a fault point of this folder


def sweep(root: Path, spec: str = SPEC, *, workers: int = 1, guarded: bool = False) -> int:
    """Run a sweep on a store, with several batches; return the number of points that were computed.

    It replaces functions in its process, so it is for children.

    Args:
        root: The store.
        spec: The sweep, TOML.
        workers: Number of workers for which the points are cut into batches.
        guarded: Whether to compute in a guard's child as the command does, which takes a second to start.
    """
    tasks.batch.SHORTEST = 1e-9  # otherwise these cheap points would make one batch
    if not guarded:
        tasks.engine.Guard = Here  # type: ignore[assignment,attr-defined]  # a name it imports and does not export
    WHERE[0] = root.parent
    return flows.runs.run.run(
        parse(spec.encode(), "harmed.toml"),
        open_store(root, missing_ok=True),
        engine=tasks.engine.Engine(name="serial", workers=workers),
    ).computed


def sweep_on(kind: str, number: int, code: int, root: Path, guarded: bool = False) -> int:
    """Run the sweep with a disk that kills the run, or fails, at a fault point."""
    strike = disk.kill_at(number) if kind == "kill" else disk.fail_at(number, code)
    disk.watch(root.parent, strike)
    return sweep(root, guarded=guarded)


def sweep_past_a_part(spec: str, root: Path) -> int:
    """Run a sweep that is killed at its first computation after it has stored a part."""
    disk.watch(root.parent, disk.kill_after(".parquet", "compute"))
    return sweep(root, spec)


def mend(root: Path) -> None:
    """Repair a store as the command does, in this process; for children."""
    from flows.runs.repair import repair

    tasks.engine.Guard = Here  # type: ignore[assignment,attr-defined]  # a name it imports
    WHERE[0] = root.parent
    repair(open_store(root, missing_ok=True), engine=tasks.engine.Engine(name="serial"))


def mend_on(number: int, root: Path) -> None:
    """Repair a store and be killed at a fault point."""
    disk.watch(root, disk.kill_at(number))
    mend(root)


def mending_points(root: Path) -> list[str]:
    """Repair a store and return the fault points that it passed."""
    passed = disk.watch(root, lambda _k, _operation, _path: None)
    mend(root)
    return list(passed)


def fault_points(root: Path) -> list[str]:
    """Run the sweep and return the fault points that it passed."""
    passed = disk.watch(root.parent, lambda _k, _operation, _path: None)
    sweep(root)
    return list(passed)


def batches_of(spec: str) -> list[Batch]:
    """Return the points of a sweep in batches of four."""
    asked = parse(spec.encode(), "harmed.toml")
    (whole,) = Batches(grouped(Ledger(asked.grids), frozenset(), asked.limits), workers=1)
    return [whole.part(first, first + 4) for first in range(0, len(whole), 4)]


def work(batch: Batch, job: Job, root: Path, killed_at: int | None) -> list[str]:
    """Run one batch as a worker does, to the end or to a fault point; return the points that it passed."""
    WHERE[0] = root.parent
    passed = disk.watch(root.parent, disk.kill_at(-1 if killed_at is None else killed_at))
    run_batch(batch, job, Here(job.limits), located(root))  # type: ignore[arg-type]  # all that it needs
    return list(passed)


def leftovers(root: Path) -> list[str]:
    """Return the sentences of a verification about files that a killed writer left unfinished."""
    with open_store(root) as store:
        return [finding.detail for finding in store.examine().findings if finding.kind == "leftover"]


def ids(spec: str = SPEC) -> set[str]:
    """Return the ids of the points of a sweep."""
    return {point.id for point in expand(parse(spec.encode(), "harmed.toml").grids)}


def content(root: Path) -> str:
    """Return a hash of all answers in a store, sorted by point; it must not depend on scheduling."""
    columns = "point_id, status, lower, upper, value, confidence"
    with open_store(root) as store:
        rows = store.sql(f"select {columns} from results order by point_id").to_pylist()
    lines = [repr([row[name] for name in columns.split(", ")]) for row in rows]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
