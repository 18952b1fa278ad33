"""Sweeps on imaginary clusters: the simulated schedule against schedules worked out by hand."""

import itertools
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.runs.forecast import (
    DISPATCH,
    END,
    END_OF_PART,
    END_OF_RAY,
    START,
    Cluster,
    ClusterError,
    read_cluster,
    simulate,
)
from flows.runs.plan import PER_BATCH, PER_POINT, Work, make_plan, work_of
from flows.spec.sweep import Sweep, parse
from storage import open_store
from storage.place.located import located
from tasks import engine
from tasks.guard import Limits
from tasks.work import Job
from tests.busy import idle
from tests.flows.small_store import Command
from tests.ray_cluster import RayCluster

GRID = """
name = "trial"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = {geometric = [0.5, 20, 300]}, delta = {geometric = [1e-9, 1e-3, 40]}}
[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.decomposition", "allocation.certified"]
product = {sigma = {geometric = [0.5, 20, 30]}, steps = {range = [10, 990, 20]}, delta = 1e-5}
where = "steps > 100 or sigma > 1"
"""


def trial(text: str = GRID) -> Sweep:
    return parse(text.encode(), "trial.toml")


def work(seconds: list[float], points: int = 1000) -> Work:
    return Work(
        seconds=np.array(seconds),
        points=points,
        planning=1.5,
        driver_bytes=1e6,
        measured_share=0,
        sampled=None,
    )


def workers(nodes: int, cores: int, spread: float = 0.0) -> Cluster:
    return Cluster(nodes=nodes, cores=cores, spread=spread)


def test_one_worker_takes_the_sum_and_is_always_busy() -> None:
    schedule = simulate(work([5.0, 3.0, 2.0]), workers(1, 1))
    assert schedule.span == pytest.approx(10 + DISPATCH)
    assert schedule.busy == pytest.approx(1, abs=1e-3)
    assert schedule.tail == 0
    assert schedule.longest == 5


def test_the_worker_that_is_free_first_gets_the_next_batch() -> None:
    """5 | 4 3: the batch of 3 follows the one of 4 to 7, and one of 2 the one of 5 to 7, with a tie at 7."""
    schedule = simulate(work([5.0, 4.0, 3.0, 2.0, 1.0]), workers(1, 2))
    assert schedule.span == pytest.approx(8, abs=5 * DISPATCH)
    assert schedule.tail == pytest.approx(1, abs=5 * DISPATCH)
    assert schedule.busy == pytest.approx(15 / 16, abs=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_no_schedule_beats_the_work_and_longest_first_is_within_a_third_of_the_best(seed: int) -> None:
    """Graham (1969): at most 4/3 - 1/(3 m) of the optimum, found among all assignments of 8 batches."""
    random = np.random.default_rng(seed)
    seconds = sorted(random.uniform(1, 20, 8).tolist(), reverse=True)
    count = 2 + seed % 2
    loads = [
        max(sum(s for s, w in zip(seconds, given, strict=True) if w == one) for one in range(count))
        for given in itertools.product(range(count), repeat=8)
    ]
    took = simulate(work(seconds), workers(count, 1)).span
    assert min(loads) <= took + 1e-9
    assert took <= (4 / 3 - 1 / (3 * count)) * min(loads) + 8 * DISPATCH


def test_the_driver_limits_how_many_batches_start_a_second() -> None:
    schedule = simulate(work([0.01] * 10_000), workers(100, 10))
    assert schedule.span == pytest.approx(10_000 * DISPATCH, rel=0.01)
    assert schedule.commits_per_second[0] == pytest.approx(1 / DISPATCH, rel=0.01)
    assert schedule.busy < 0.05


def test_nodes_of_different_speed_take_longer_and_leave_a_tail() -> None:
    batches = [10.0] * 400
    same, different = (simulate(work(batches), workers(20, 2, spread)) for spread in (0.0, 0.2))
    assert same.span == pytest.approx(100, abs=1)
    assert different.span > same.span
    assert different.tail > same.tail
    assert different.busy < same.busy


def test_the_speeds_of_nodes_are_spread_as_said_around_one() -> None:
    logs = np.log(Cluster(nodes=999, cores=1, spread=0.1).slowness())
    assert logs.mean() == pytest.approx(0, abs=1e-12)
    assert logs.std() == pytest.approx(0.1, rel=0.01)
    assert Cluster(nodes=1, cores=4).slowness().tolist() == [1.0]


def test_starting_and_ending_come_on_top_and_a_cluster_that_is_there_already_need_not_end() -> None:
    alone, together = (simulate(work([4.0]), workers(nodes, 1)) for nodes in (1, 2))
    assert alone.makespan == pytest.approx(1.5 + START + alone.span + END + END_OF_PART + END_OF_RAY)
    assert together.makespan == pytest.approx(alone.makespan - END_OF_RAY)


def test_the_end_of_a_run_takes_longer_the_more_parts_it_lists() -> None:
    few, many = (simulate(work([1.0] * batches), workers(2, 5)) for batches in (10, 10_000))
    assert few.makespan - few.span == pytest.approx(1.5 + START + END + 10 * END_OF_PART)
    assert many.makespan - many.span == pytest.approx(1.5 + START + END + 10_000 * END_OF_PART)


def test_nothing_to_do_takes_the_time_of_planning() -> None:
    schedule = simulate(work([], points=0), workers(3, 3))
    assert schedule.makespan == 1.5
    assert schedule.store_bytes == 0


def test_a_plan_gives_the_batches_that_a_run_would_have(tmp_path: Path) -> None:
    made = work_of(trial(), open_store(tmp_path / "store", missing_ok=True), 4)
    plan = make_plan(trial(), open_store(tmp_path / "store", missing_ok=True), workers=4)
    expected = [b.seconds + PER_BATCH + PER_POINT * len(b) for b in plan.batches]
    assert made.seconds.tolist() == expected
    assert (made.points, made.sampled, made.measured_share) == (plan.new, None, 0.0)


@pytest.mark.thorough
def test_drawn_points_tell_nearly_what_all_points_tell(tmp_path: Path) -> None:
    exact = work_of(trial(), open_store(tmp_path / "store", missing_ok=True), 2)
    drawn = work_of(trial(), open_store(tmp_path / "store", missing_ok=True), 2, max_points=10)
    assert drawn.sampled is not None
    assert drawn.points == pytest.approx(exact.points, rel=0.02)
    assert drawn.seconds.sum() == pytest.approx(exact.seconds.sum(), rel=0.05)
    assert len(drawn.seconds) == pytest.approx(len(exact.seconds), rel=0.2)


@pytest.mark.thorough
def test_rows_of_the_store_correct_the_estimates(tmp_path: Path) -> None:
    store = tmp_path / "store"
    small = trial("""
    name = "small"
    [[grid]]
    problem = "unamplified-epsilon"
    methods = ["unamplified.exact"]
    product = {sigma = {geometric = [0.7, 9, 40]}, delta = 1e-5}
    """)
    plan = make_plan(small, open_store(store, missing_ok=True))
    list(engine.run_serially(plan.batches, Job(sweep="small", limits=Limits()), located(store)))
    before, after = (
        work_of(trial(), open_store(place, missing_ok=True), 2) for place in (tmp_path / "none", store)
    )
    assert 0 < after.measured_share < 1, "the other methods have no rows"
    assert after.seconds.sum() != before.seconds.sum()
    drawn = work_of(trial(), open_store(store, missing_ok=True), 2, max_points=10)
    assert drawn.measured_share == pytest.approx(after.measured_share, rel=0.1)


@pytest.mark.thorough
def test_a_sweep_of_a_hundred_million_points_is_simulated_in_seconds(
    tmp_path: Path, process: Callable[..., tuple[int, str, str]]
) -> None:
    spec = tmp_path / "huge.toml"
    spec.write_text("""
    name = "huge"
    [[grid]]
    problem = "allocation-epsilon"
    methods = [{name = "allocation.certified", tolerance = 0.01}]
    [grid.product]
    sigma = {geometric = [0.5, 5, 10000]}
    steps = {geometric = [10, 100000, 100]}
    delta = {geometric = [1e-10, 1e-3, 100]}
    """)
    arguments = ("plan", spec, "--cluster", "nodes=200,cores=32", "--store", tmp_path / "store")
    code, out, err = process(*arguments, "--json")
    assert code == 0, err
    told: dict[str, Any] = json.loads(out)
    assert told["points"] == 100_000_000
    assert told["batches"] > 100_000
    assert told["core_seconds"] / 6400 < told["makespan_seconds"]
    assert told["planning_seconds"] < told["makespan_seconds"]
    assert told["driver_bytes"] < 5e8
    assert told["planning_seconds"] < 100, "a microsecond a point"


def test_people_read_how_a_sweep_would_go(privsweep: Command, tmp_path: Path) -> None:
    assert privsweep("plan", "quickstart", "--cluster", "nodes=2,cores=4", "--store", tmp_path / "s") == 0
    out = privsweep.out
    assert out.startswith("quickstart: ")
    assert "; 2 nodes of 4 cores\n" in out
    assert [line.split()[0] for line in out.splitlines()[1:]] == [
        "time", "work", "end", "store", "driver", "costs",
    ]  # fmt: skip
    assert privsweep("plan", "quickstart", "--cluster", "many", "--store", tmp_path / "s") == 2
    assert privsweep.err == ("privsweep: Expected --cluster nodes=N,cores=N[,spread=X], got 'many'.\n")


WRONG = """
nodes=2|cores=2|nodes=2,cores=x|nodes=0,cores=1|nodes=1.5,cores=2|nodes=2;cores=2|nodes=2,cores=2,x=1|
nodes=2,nodes=2,cores=1|nodes=1000,cores=100000|nodes=2,cores=2,spread=3|nodes=²,cores=2|nodes=2,cores=2,|
nodes=1e9,cores=1|nodes=-1,cores=1
"""


@pytest.mark.parametrize("words", WRONG.replace("\n", "").split("|"))
def test_words_that_describe_no_cluster_are_refused_in_one_sentence(words: str) -> None:
    with pytest.raises(ClusterError, match=r"^Expected .*\.$"):
        read_cluster(words)


CERTIFIED = """
name = "{name}"
[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.certified"]
[grid.product]
sigma = {{geometric = [{first}, {last}, {count}]}}
steps = [100, 3000]
epochs = [1, 8]
delta = 1e-6
"""


@pytest.mark.soak
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(("nodes", "cores"), [(1, 1), (1, 2), (2, 1)])
def test_a_run_takes_what_was_simulated_to_within_15_percent(
    nodes: int,
    cores: int,
    folder: Path,
    process: Callable[..., tuple[int, str, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The store has other rows of the method, as after any first sweep; a busy machine may take longer.

    The first sweep takes a multiple of the seconds in which Prefect starts next to it and slows it down.
    """
    described = f"nodes={nodes},cores={cores}"
    store = folder / described
    small, large = folder / "before.toml", folder / f"large-{described}.toml"
    small.write_text(CERTIFIED.format(name="before", first=0.61, last=7.9, count=250 * nodes * cores))
    large.write_text(CERTIFIED.format(name="large", first=0.6, last=8, count=500 * nodes * cores))
    with ExitStack() as stack:
        where, environment = ["--workers", cores], None
        if nodes > 1:
            cluster = stack.enter_context(RayCluster())
            cluster.start_head(cpus=cores)
            for _ in range(nodes - 1):
                cluster.start_node(cpus=cores)
            where, environment = ["--ray-address", cluster.address], cluster.environment

        def told(command: str, sweep: Path, *options: object) -> dict[str, Any]:
            arguments = (command, sweep, *options, "--store", store, "--json")
            code, out, err = process(*arguments, environment=environment)
            assert code == 0, err
            return dict(json.loads(out))

        told("run", small, "--engine", "ray", *where)
        simulated = told("plan", large, "--cluster", described)
        alone = idle()
        began = time.perf_counter()
        told("run", large, "--engine", "ray", *where)
        took = time.perf_counter() - began
    with capsys.disabled():
        print(f"\n{described}: simulated {simulated['makespan_seconds']:.1f} s, measured {took:.1f} s")
    assert simulated["measured_share"] == pytest.approx(1)
    assert simulated["makespan_seconds"] <= 1.15 * took
    assert simulated["makespan_seconds"] >= 0.85 * took or not alone
