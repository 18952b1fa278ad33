"""A store from before the packages were divided into rooms: every later commit reads, extends and trusts it.

`tests/storage/data/before-rooms/make.py` says how it was made; the numbers next to it are that commit's.
"""

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import PROBLEMS, Point, Problem, find, find_problem
from storage import Store, open_store
from tests.flows.small_store import Command

KEPT = Path(__file__).parents[2] / "storage" / "data" / "before-rooms"
EVERY_PROBLEM = KEPT / "every-problem.toml"

RAISED = {
    "allocation.certified",
    "allocation.combined",
    "allocation.montecarlo",
    "allocation.renyi",
    "auditing.approximate",
    "auditing.best",
    "auditing.ceiling",
    "auditing.combined",
    "auditing.nasr",
    "auditing.planned",
    "auditing.plannedapproximate",
    "auditing.power",
    "auditing.revealed",
    "auditing.runs",
    "auditing.trained",
    "batches.certified",
    "bins.certified",
    "labels.bag",
    "labels.cells",
    "labels.classes",
    "labels.composition",
    "labels.infinite",
    "labels.residual",
    "labels.response",
    "labels.sampling",
    "membership.clopper",
    "membership.purity",
    "membership.overfitting",
    "membership.roc",
    "membership.sampling",
    "membership.sharp",
    "membership.threshold",
    "poisson.certified",
    "runs.certified",
    "truncated.certified",
    "runs.curves",
    "utility.simulation",
}
"""Methods of a higher version since then, by "Numbers" in the changelog: their rows are computed again."""

pytestmark = pytest.mark.xdist_group("kept-store")  # its snapshot is built once


def kept(name: str) -> list[dict[str, Any]]:
    """Return the entries that this commit wrote about its points or lookups."""
    content: list[dict[str, Any]] = json.loads((KEPT / name).read_text())
    return content


def asked(entry: dict[str, Any]) -> Problem:
    """Return the problem of an entry."""
    return find_problem(entry["problem"]).from_fields(entry["fields"])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the store, since opening a store may write files next to its parts."""
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(KEPT / "store.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "store"


@pytest.fixture(scope="module")
def store(root: Path) -> Iterator[Store]:
    """The copy, opened once."""
    with open_store(root) as store:
        yield store


def test_the_kept_points_are_of_every_problem_of_then_and_have_the_same_ids() -> None:
    entries = kept("points.json")
    problems = {entry["problem"] for entry in entries}
    assert len(problems) == 59
    assert problems <= set(PROBLEMS.names)
    for entry in entries:
        point = Point(problem=asked(entry), method=find(entry["method"]).from_knobs(entry["knobs"]))
        assert (point.id == entry["id"]) == (entry["method"] not in RAISED), entry


@pytest.mark.thorough
def test_lookups_on_and_off_the_grid_have_the_same_bits(store: Store) -> None:
    for entry in kept("lookups.json"):
        found, before = store.lookup(asked(entry)), entry["found"]
        if before and RAISED & {before["lower_method"], before["upper_method"]}:
            continue  # a row of an earlier version does not answer
        assert (found is None) == (before is None), entry
        if found is not None:
            for end in ("lower_from", "upper_from"):  # with the fields that were added since then
                before[end] = before[end] and asked({**entry, "fields": before[end]}).as_fields()
            now = dict(vars(found))
            assert found.tables == ()
            assert now.pop("assumed") == ""
            assert now.pop("neighbours") == asked(entry).relation()
            if any(now.pop(f"{end}_also{part}") for end in ("lower", "upper") for part in ("", "_method")):
                low, high = (float.fromhex(before[end]) for end in ("lower", "upper"))
                assert low <= found.lower <= found.upper <= high, entry  # by convexity, since then
                continue
            ends = {"lower": found.lower.hex(), "upper": found.upper.hex()}
            assert {**now, **ends} == before, entry


@pytest.mark.thorough
def test_verify_finds_the_kept_store_sound(root: Path, privsweep: Command) -> None:
    assert privsweep("verify", "--store", root) == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sweep", "failed"), [("quickstart", 0), (str(EVERY_PROBLEM), 2)], ids=["quickstart", "every-problem"]
)
def test_the_kept_sweeps_compute_nothing_again_but_what_has_a_higher_version(
    sweep: str, failed: int, root: Path, process: Callable[..., tuple[int, str, str]]
) -> None:
    with open_store(root) as store:
        assert load(sweep).digest in {manifest.digest for manifest in store.manifests()}
        rows = store.sql("select point_id, method_version from results").to_pylist()
    known = {(row["point_id"], row["method_version"]) for row in rows}
    raised = {point for point in expand(load(sweep).grids) if point.method.name in RAISED}
    again = sum((point.id, point.method.version) not in known for point in raised)
    before = {path: path.read_bytes() for path in root.glob("data/**/*.parquet")}
    code, out, _ = process("run", sweep, "--store", root, "--engine", "serial", "--json")
    report = json.loads(out)
    assert (report["computed"], report["missing"], report["failed"]) == (again, 0, failed)
    assert code == (6 if failed else 0), "stored failures still count"
    after = {path: path.read_bytes() for path in root.glob("data/**/*.parquet")}
    assert {path: content for path, content in after.items() if path in before} == before
    assert (len(after) > len(before)) == (again > 0)
