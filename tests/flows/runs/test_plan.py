"""Plans: new and stored points, their costs, and sweeps that are rejected before anything starts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from flows.runs.plan import Plan, make_plan
from flows.spec.sweep import Sweep, parse
from privcore import DomainError
from privcore.answer import Status
from storage import open_store
from storage.place.located import located
from tasks import engine
from tasks.guard import Limits
from tasks.work import Job
from tests.flows.small_store import Command

GRID = """
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {{sigma = {sigmas}, delta = [1e-8, 1e-5]}}
"""


def sweep_of(sigmas: str, more: str = "") -> Sweep:
    return parse(('name = "trial"' + more + GRID.format(sigmas=sigmas)).encode(), "trial.toml")


def compute(plan: Plan, store: Path) -> int:
    """Compute the points of a plan, without Ray and Prefect."""
    job = Job(sweep="trial", limits=Limits())
    return sum(done.points for done in engine.run_serially(plan.batches, job, located(store)))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the points of sigma 1 and 2."""
    store = tmp_path_factory.mktemp("plan") / "store"
    assert compute(make_plan(sweep_of("[1, 2]"), open_store(store, missing_ok=True)), store) == 4
    return store


def test_all_is_new_where_there_is_no_store(tmp_path: Path) -> None:
    plan = make_plan(sweep_of("[1, 2, 3]"), open_store(tmp_path / "store", missing_ok=True))
    assert (plan.total, plan.new, dict(plan.stored), plan.refused) == (6, 6, {}, None)
    assert sum(len(batch) for batch in plan.batches) == 6
    assert not (tmp_path / "store").exists()


def test_a_wider_grid_computes_only_what_is_new(store: Path) -> None:
    plan = make_plan(sweep_of("[1, 2, 3, 4, 5]"), open_store(store, missing_ok=True))
    assert (plan.total, plan.new, plan.stored) == (10, 6, {"ok": 4})
    assert {p.problem.as_fields()["sigma"] for b in plan.batches for p in b.points()} == {3.0, 4.0, 5.0}


def test_nothing_is_new_when_all_is_stored(store: Path) -> None:
    plan = make_plan(sweep_of("[2, 1]"), open_store(store, missing_ok=True))
    assert (plan.new, len(plan.batches), plan.cpu_seconds, plan.memory_bytes) == (0, 0, 0.0, 0.0)


def test_points_of_another_problem_or_method_do_not_count(store: Path) -> None:
    text = """
    name = "other"
    [[grid]]
    problem = "unamplified-delta"
    methods = ["unamplified.exact"]
    product = {sigma = [1, 2], epsilon = 1}
    [[grid]]
    problem = "allocation-epsilon"
    methods = ["allocation.certified", {name = "allocation.certified", tolerance = 0.01}]
    product = {sigma = [1, 2], delta = 1e-5, steps = 10}
    """
    plan = make_plan(parse(text.encode(), "other.toml"), open_store(store, missing_ok=True))
    assert plan.new == plan.total == 6
    assert [(group.kind.name, group.label, group.points) for group in plan.groups] == [
        ("unamplified-delta", "unamplified.exact", 2),
        ("allocation-epsilon", "allocation.certified", 2),
        ("allocation-epsilon", "allocation.certified(tolerance=0.01)", 2),
    ]
    assert all(group.seconds > 0 for group in plan.groups)


def test_points_beyond_the_limits_are_counted_and_get_a_row(tmp_path: Path) -> None:
    sweep = sweep_of("[1, 2]", "\n[limits]\npoint_seconds = 1e-9")
    plan = make_plan(sweep, open_store(tmp_path, missing_ok=True))
    assert (plan.beyond, plan.cpu_seconds) == (4, 0.0)
    job = Job(sweep="trial", limits=sweep.limits)
    (done,) = engine.run_serially(plan.batches, job, located(tmp_path))
    assert done.statuses == {"timeout": 4}
    assert make_plan(sweep, open_store(tmp_path, missing_ok=True)).new == 0, "a stored failure is done"
    assert make_plan(sweep, open_store(tmp_path, missing_ok=True), retry=True).new == 4, (
        "until it is asked for again"
    )


def test_what_one_worker_may_need_counts_for_every_worker(tmp_path: Path) -> None:
    alone, four = (
        make_plan(sweep_of("{linear = [1, 2, 4000]}"), open_store(tmp_path, missing_ok=True), workers=n)
        for n in (1, 4)
    )
    assert four.memory_bytes == pytest.approx(4 * alone.memory_bytes)
    assert len(four.batches) >= 4


def test_a_cluster_is_asked_for_its_size_only_where_something_is_new(store: Path) -> None:
    asked: list[int] = []

    def size() -> int:
        asked.append(40)
        return 40

    assert not make_plan(sweep_of("[1, 2]"), open_store(store, missing_ok=True), workers=size).batches
    assert asked == []
    large = sweep_of("{linear = [1, 2, 4000]}")
    batches = list(make_plan(large, open_store(store, missing_ok=True), workers=size).batches)
    assert asked == [40]
    assert batches == list(make_plan(large, open_store(store, missing_ok=True), workers=40).batches)


def test_a_contradiction_is_found_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="Expected participations <= steps"):
        make_plan(
            sweep_of("[1, 2], steps = [20, 5], participations = 10"), open_store(tmp_path, missing_ok=True)
        )


def test_plan_prints_what_it_would_do_and_writes_nothing(tmp_path: Path, privsweep: Command) -> None:
    Path("trial.toml").write_text('name = "trial"' + GRID.format(sigmas="[1, 2, 3]"))
    assert privsweep("plan", "trial.toml") == 0
    assert "trial: 6 points, 0 stored, 6 new" in privsweep.out
    content = privsweep.told("plan", "trial.toml")
    assert (content["points"], content["new"], content["refused"]) == (6, 6, None)
    assert [p.name for p in tmp_path.iterdir()] == ["trial.toml"]


def test_status_of_a_sweep_that_is_not_complete(store: Path, tmp_path: Path, privsweep: Command) -> None:
    spec = tmp_path / "trial.toml"
    spec.write_text('name = "trial"' + GRID.format(sigmas="[1, 2, 3]"))
    content = privsweep.told("status", spec, "--store", store)
    assert (content["points"], content["stored"], content["failed"], content["missing"]) == (6, 4, 0, 2)
    assert privsweep("status", spec, "--store", store) == 0
    numbers = privsweep.out.splitlines()[-1].split()
    assert numbers == ["trial", "6", "4", "0", "2", "not", "run"]


@pytest.mark.parametrize("command", ["plan", "run", "status"])
@pytest.mark.parametrize(
    ("sigma", "delta", "words"),
    [
        ("{linear = [1, 2, 1_000_000]}", "{linear = [0.1, 0.2, 1_000_000]}", "1,000,000,000,000 points"),
        ("{range = [1, 2, 1e-300]}", "0.1", "about 10^300 points"),
    ],
)
def test_a_monstrous_sweep_is_refused(
    command: str,
    sigma: str,
    delta: str,
    words: str,
    tmp_path: Path,
    privsweep: Command,
) -> None:
    spec = tmp_path / "big.toml"
    spec.write_text('name = "big"' + GRID.format(sigmas=sigma).replace("[1e-8, 1e-5]", delta))
    assert privsweep(command, spec) == 2
    assert words in privsweep.err
    assert not (tmp_path / "store").exists()


@pytest.mark.thorough
def test_refusing_a_monstrous_sweep_looks_at_no_point_and_takes_200_megabytes_at_most(tmp_path: Path) -> None:
    spec = tmp_path / "big.toml"
    spec.write_text(
        'name = "big"'
        + GRID.format(sigmas="{linear = [1, 2, 1_000_000_000_000]}").replace("[1e-8, 1e-5]", "0.1")
    )
    script = (
        "import pathlib, sys, time; from flows.cli.app import run; code = run(sys.argv[1:]); "
        "print(pathlib.Path('/proc/self/status').read_text(), time.process_time()); sys.exit(code)"
    )
    command = [sys.executable, "-c", script, "plan", str(spec)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "1,000,000,000,000 points" in done.stderr
    peak = re.search(r"VmHWM:\s*(\d+) kB", done.stdout)
    assert peak is not None
    assert int(peak[1]) * 1024 < 200e6
    assert float(done.stdout.split()[-1]) < 20.0, "of the processor; looking at each point would take days"


def test_max_points_is_a_limit_that_can_be_moved(tmp_path: Path) -> None:
    refused = make_plan(sweep_of("[1, 2]"), open_store(tmp_path, missing_ok=True), max_points=3).refused
    assert refused == "trial has 4 points, 4 of them in grid 1, more than --max-points 3."
    assert make_plan(sweep_of("[1, 2]"), open_store(tmp_path, missing_ok=True), max_points=4).refused is None


def test_a_stored_crash_is_computed_again(store: Path, tmp_path: Path) -> None:
    from tasks.work import give_up

    plan = make_plan(sweep_of("[9]"), open_store(tmp_path, missing_ok=True))
    job = Job(sweep="trial", limits=Limits())
    for batch in plan.batches:
        give_up(batch, job, located(tmp_path), Status.CRASHED, "Its worker died twice.")
    assert make_plan(sweep_of("[9]"), open_store(tmp_path, missing_ok=True)).new == 2
    assert compute(make_plan(sweep_of("[9]"), open_store(tmp_path, missing_ok=True)), tmp_path) == 2
    with open_store(tmp_path) as opened:
        assert opened.sql("select distinct status from results").to_pylist() == [{"status": "ok"}]
