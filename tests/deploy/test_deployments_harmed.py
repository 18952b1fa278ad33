"""Prefect's states after failures of points, batches, runs, its server or its worker; ten minutes."""

import json
import re
import shlex
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import pytest
import yaml

from storage import open_store
from tests.busy import stretched
from tests.deploy.prefect_here import FINAL, PrefectHere, Told

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("prefect")]

BERLIN = ZoneInfo("Europe/Berlin")
POINTS = 300
SLOW = """
name = "{name}"
[[grid]]
problem = "unamplified-epsilon"
methods = [{{name = "faulty.slow", seconds = {seconds}}}]
product = {{sigma = {{linear = [1, 2, {points}]}}, delta = 1e-5}}
"""
FAILING = """
name = "failing"
[[grid]]
problem = "unamplified-epsilon"
methods = ["faulty.mixed"]
product = {sigma = [1, 2], steps = [1, 8], delta = 1e-5}
"""  # eight steps cost too much to be started
POISON = """
name = "poison"
[[grid]]
problem = "unamplified-epsilon"
methods = ["faulty.mixed"]
product = {sigma = [1, 2], steps = [1, 6], delta = 1e-5}
"""  # six steps kill the worker

HOPELESS = """
name = "hopeless"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = [1, 2], delta = 1e-5}
[[grid]]
problem = "unamplified-epsilon"
methods = ["faulty.mixed"]
product = {sigma = [1, 2], steps = 8, delta = 1e-5}
"""  # eight steps cost too much to be started, and there are no others


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory, told: tuple[Told, str]) -> Iterator[PrefectHere]:
    """A server to which `make deploy` has deployed everything, and a deployment with faulty methods."""
    here = PrefectHere(tmp_path_factory.mktemp("harmed"))
    try:
        here.start_server()
        here.make_deploy(PRIVSWEEP_WEBHOOK=told[1])
        shipped = here.deployment("quickstart")
        copied = ("flow_id", "parameters", "tags", "job_variables", "pull_steps", "work_pool_name")
        here.ask(
            "deployments/",
            name="faulty",
            entrypoint="deployed_with_faults.scheduled_sweep",
            **{name: shipped[name] for name in copied},
        )
        here.start_worker()
        yield here
    finally:
        here.stop()


@pytest.fixture
def sweep(prefect: PrefectHere) -> Callable[[str, str], str]:
    """Write a sweep into the working directory of runs; return its path, as a parameter."""

    def sweep(name: str, text: str) -> str:
        (prefect.root / f"{name}.toml").write_text(text)
        return f"{name}.toml"

    return sweep


def rows(store: Path, query: str = "select count(*) as n from results") -> Any:
    with open_store(store) as opened:
        return next(iter(opened.sql(query).to_pylist()[0].values()))


def parts(store: Path) -> int:
    return len(list(store.glob("data/*/*.parquet")))


def wait_for_parts(prefect: PrefectHere, store: str, number: int) -> None:
    prefect.wait(lambda: parts(prefect.root / store) >= number, f"{number} parts in {store}")


# ------------------------------------------------------------------------------------------ deployments


def test_make_deploy_schedules_the_quickstart_alone(prefect: PrefectHere) -> None:
    deployed = {each["name"]: each for each in prefect.ask("deployments/filter") if each["name"] != "faulty"}
    assert {name: len(each["schedules"]) for name, each in deployed.items()} == {
        "any-sweep": 0,
        "quickstart": 1,
    }
    assert deployed["quickstart"]["schedules"][0]["schedule"]["timezone"] == "Europe/Berlin"
    for each in deployed.values():
        assert each["parameters"]["sweep"] == "quickstart"
        assert each["global_concurrency_limit"] is None
        assert "privsweep" in each["tags"]
        assert each["description"]


@pytest.mark.parametrize(("first", "last"), [("2031-03-28", "2031-04-02"), ("2031-10-24", "2031-10-29")])
def test_schedules_keep_local_time_when_clocks_change(prefect: PrefectHere, first: str, last: str) -> None:
    """Clocks change on the 30th of March and on the 26th of October."""
    deployment = prefect.deployment("quickstart")
    days = {"start_time": f"{first}T12:00:00Z", "end_time": f"{last}T12:00:00Z"}
    prefect.ask(f"deployments/{deployment['id']}/resume_deployment")
    prefect.ask(f"deployments/{deployment['id']}/schedule", **days, min_runs=10, max_runs=10)
    times = [datetime.fromisoformat(run["expected_start_time"]) for run in prefect.runs("quickstart")]
    prefect.ask(f"deployments/{deployment['id']}/pause_deployment")
    local = [each.astimezone(BERLIN) for each in times if first <= str(each.date()) <= last]
    assert len(local) == 5
    assert {(each.hour, each.minute) for each in local} == {(3, 0)}
    assert len({each.utcoffset() for each in local}) == 2, "a change of clocks is among them"


# ----------------------------------------------------------------------------- points, batches and runs fail


def test_a_failing_point_shows_in_the_name_of_the_state(
    prefect: PrefectHere, sweep: Callable[[str, str], str], told: tuple[Told, str]
) -> None:
    run = prefect.end_of(prefect.start_run("faulty", sweep=sweep("failing", FAILING), store="failing"))
    assert (run["state_type"], run["state_name"]) == ("COMPLETED", "Completed with failures")
    message = run["state"]["message"]
    assert message.startswith("4 points, 4 computed")
    assert "2 failed (2 timeout)" in message
    command = shlex.split(message.split("privsweep ", 1)[1])
    shown = prefect.command(sys.executable, "-m", "flows.cli", *command, "--json")
    assert len(json.loads(shown)) == 2
    (warning,) = prefect.logs(run["id"], level=30)
    assert warning.startswith("2 of 4 points of faulty.mixed failed: timeout: ")
    table = yaml.safe_load(prefect.artifacts(run["id"])["failing-computed"]["data"])
    assert [row["statuses"] for row in table] == ["2 ok, 2 timeout"]
    prefect.wait(lambda: any("Completed with failures" in text for text in told[0]), "a message arrives", 60)
    assert any("select * from failures" in text for text in told[0])


def test_a_method_without_any_answer_ends_the_run_as_failed_each_time(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    path = sweep("hopeless", HOPELESS)
    for computed in (4, 0):
        run_id = prefect.start_run("faulty", retry_delay=2, sweep=path, store="hopeless")
        run = prefect.end_of(run_id)
        assert (run["state_type"], run["run_count"]) == ("FAILED", 1), "a retry cannot help"
        assert run["state"]["message"].startswith(
            f"faulty.mixed answered no point of unamplified-epsilon. 4 points, {computed} computed"
        )
        assert run["name"].endswith("UTC: 4 points, 2 failed")
        tasks = prefect.ask("task_runs/filter", flow_runs={"id": {"any_": [run_id]}})
        ends = {each["name"].split(":")[0]: each["state_type"] for each in tasks}
        expected = {"unamplified.exact": "COMPLETED", "faulty.mixed": "FAILED"} if computed else {}
        assert ends == {f"{method} on unamplified-epsilon": end for method, end in expected.items()}
    run = prefect.end_of(prefect.start_run("faulty", sweep=path, store="hopeless", max_failed=0.5))
    assert run["state_name"] == "Completed with failures"


def test_a_worker_that_dies_twice_leaves_crashed_rows_and_a_warning(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    run = prefect.end_of(prefect.start_run("faulty", sweep=sweep("poison", POISON), store="poison"))
    assert (run["state_type"], run["state_name"]) == ("COMPLETED", "Completed with failures")
    assert "2 failed (2 crashed)" in run["state"]["message"]
    warnings = prefect.logs(run["id"], level=30)
    assert warnings
    assert all("failed: crashed: Its worker died twice." in line for line in warnings)
    assert rows(prefect.root / "poison", "select count(*) from results where status = 'crashed'") == 2
    assert rows(prefect.root / "poison", "select count(*) from results where status = 'ok'") == 2


def test_a_store_that_cannot_be_written_is_tried_again_and_then_told_in_one_sentence(
    prefect: PrefectHere, told: tuple[Told, str]
) -> None:
    (prefect.root / "file").write_text("no folder")
    run_id = prefect.start_run("quickstart", retry_delay=2, sweep="membership-privacy", store="file/store")
    run = prefect.end_of(run_id)
    names = [name for name, _ in prefect.history(run_id)]
    assert (run["state_type"], run["state_name"], run["run_count"]) == ("FAILED", "Failed", 3)
    assert names.count("AwaitingRetry") == 2
    one_sentence(run["state"]["message"])
    assert "file" in run["state"]["message"]
    prefect.wait(lambda: any("Failed" in text for text in told[0]), "a message arrives", 60)


def test_a_mistake_in_a_sweep_is_not_tried_again(prefect: PrefectHere) -> None:
    run_id = prefect.start_run("quickstart", retry_delay=2, sweep="quickstar", store="unused")
    run = prefect.end_of(run_id)
    assert (run["state_type"], run["run_count"]) == ("FAILED", 1)
    assert run["state"]["message"] == "Unknown sweep quickstar. Did you mean quickstart?"
    assert not any("Traceback" in line for line in prefect.logs(run_id))
    assert not (prefect.root / "unused").exists()


def test_a_cluster_that_is_not_there_is_tried_again_and_then_told_in_one_sentence(
    prefect: PrefectHere,
) -> None:
    deployed = prefect.deployment("quickstart")
    env = deployed["job_variables"]["env"] | {
        "RAY_ADDRESS": "127.0.0.1:9",
        "PREFECT_FLOWS_DEFAULT_RETRIES": "1",
        "PREFECT_FLOWS_DEFAULT_RETRY_DELAY_SECONDS": "2",
    }
    run_id = prefect.ask(
        f"deployments/{deployed['id']}/create_flow_run",
        parameters={"sweep": "membership-privacy", "store": "clusterless"},
        job_variables={"env": env},
        state={"type": "SCHEDULED"},
    )["id"]
    run = prefect.end_of(run_id)
    assert (run["state_type"], run["run_count"]) == ("FAILED", 2)
    assert run["state"]["message"] == (
        "Cannot reach a Ray cluster at RAY_ADDRESS=127.0.0.1:9: Connection refused."
    )


def one_sentence(message: str) -> None:
    assert "\n" not in message
    assert "Traceback" not in message
    assert message.endswith(".")


# ----------------------------------------------------------------------------------------- one run at a time


def waits_for_the_store(prefect: PrefectHere, run_id: str) -> bool:
    return any("Waiting until another run" in line for line in prefect.logs(run_id))


def test_runs_of_several_deployments_wait_for_the_store(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    path = sweep("alone", SLOW.format(name="alone", seconds=0.5, points=POINTS))
    first = prefect.start_run("faulty", sweep=path, store="alone")
    wait_for_parts(prefect, "alone", 1)
    others = [
        prefect.start_run("faulty", sweep=path, store="alone"),
        prefect.start_run("any-sweep", sweep="membership-privacy", store="alone"),
    ]
    for other in others:
        prefect.wait(partial(waits_for_the_store, prefect, other), "it waits")
    assert prefect.run(first)["state_type"] == "RUNNING"
    ended = [prefect.end_of(each) for each in (first, *others)]
    assert [(each["state_name"], each["run_count"]) for each in ended] == [("Completed", 1)] * 3
    assert rows(prefect.root / "alone") == POINTS + 165


# --------------------------------------------------------------------------------------------- ended, killed


def test_a_cancelled_run_keeps_its_batches_and_the_next_computes_the_rest(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    path = sweep("cancelled", SLOW.format(name="cancelled", seconds=0.1, points=POINTS))
    run_id = prefect.start_run("faulty", sweep=path, store="cancelled")
    wait_for_parts(prefect, "cancelled", 2)
    prefect.cli("flow-run", "cancel", run_id)
    run = prefect.end_of(run_id)
    assert run["state_type"] == "CANCELLED"
    prefect.wait(lambda: not prefect.below_worker(), "nothing runs below the worker", 60)
    kept = rows(prefect.root / "cancelled")
    assert 0 < kept < POINTS
    assert any(
        line.startswith(f"Stopped: {kept} of {POINTS} points are stored") for line in prefect.logs(run_id)
    )
    again = prefect.end_of(prefect.start_run("faulty", sweep=path, store="cancelled"))
    assert again["state"]["message"].startswith(f"{POINTS} points, {POINTS - kept} computed")
    assert rows(prefect.root / "cancelled", "select count(distinct point_id) from results") == POINTS


def test_a_run_whose_ray_is_killed_at_its_start_is_a_success_only_with_all_points(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    path = sweep("raylet", SLOW.format(name="raylet", seconds=0.1, points=POINTS))
    run_id = prefect.start_run("faulty", retry_delay=2, sweep=path, store="raylet")
    find = lambda: [each for each in prefect.below_worker() if each.name() == "raylet"]
    prefect.wait(find, "Ray starts")[0].kill()
    run = prefect.end_of(run_id)
    stored = rows(prefect.root / "raylet") if parts(prefect.root / "raylet") else 0
    assert run["state_type"] in ({"COMPLETED"} if stored == POINTS else {"CRASHED", "FAILED"})


def test_sigterm_ends_a_run_with_one_sentence(prefect: PrefectHere, sweep: Callable[[str, str], str]) -> None:
    path = sweep("terminated", SLOW.format(name="terminated", seconds=0.1, points=POINTS))
    run_id = prefect.start_run("faulty", sweep=path, store="terminated")
    wait_for_parts(prefect, "terminated", 1)
    (flow,) = psutil.Process(prefect.worker.pid).children() if prefect.worker else []
    flow.terminate()
    run = prefect.end_of(run_id)
    kept = rows(prefect.root / "terminated")
    assert 0 < kept < POINTS
    assert run["state_type"] == "CANCELLED"
    assert run["state"]["message"].startswith(f"Stopped: {kept} of {POINTS} points are stored")
    prefect.wait(lambda: not prefect.below_worker(), "nothing runs below the worker", 60)


def test_a_run_that_is_killed_counts_as_crashed_and_somebody_is_told(
    prefect: PrefectHere, sweep: Callable[[str, str], str], told: tuple[Told, str]
) -> None:
    path = sweep("killed", SLOW.format(name="killed", seconds=0.1, points=POINTS))
    run_id = prefect.start_run("faulty", sweep=path, store="killed")
    wait_for_parts(prefect, "killed", 1)
    (flow,) = psutil.Process(prefect.worker.pid).children() if prefect.worker else []
    flow.kill()
    began = time.monotonic()
    assert prefect.end_of(run_id)["state_type"] == "CRASHED"
    print(f"\na killed run counted as crashed after {time.monotonic() - began:.0f} s")
    prefect.wait(
        lambda: any(re.search(r"killed 2\S+ \S+ UTC: Crashed", text) for text in told[0]),
        "a message arrives",
        60,
    )


def test_t5_a_run_ends_with_its_worker_and_the_next_resumes(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    path = sweep("workerless", SLOW.format(name="workerless", seconds=0.1, points=POINTS))
    run_id = prefect.start_run("faulty", sweep=path, store="workerless")
    wait_for_parts(prefect, "workerless", 1)
    assert prefect.worker is not None
    below = prefect.below_worker()
    prefect.worker.kill()
    prefect.worker.wait()
    began = time.monotonic()
    ended = prefect.end_of(run_id)
    print(f"\nT5: a run without its worker ended after {time.monotonic() - began:.0f} s")
    prefect.wait(lambda: not any(each.is_running() for each in below), "nothing of the run is left", 60)
    kept = rows(prefect.root / "workerless")
    assert ended["state_type"] == "CRASHED"
    assert ended["state"]["message"].startswith(
        f"Its worker is gone. Stopped: {kept} of {POINTS} points are stored"
    )
    prefect.start_worker()
    again = prefect.end_of(prefect.start_run("faulty", sweep=path, store="workerless"))
    assert again["state"]["message"].startswith(f"{POINTS} points, {POINTS - kept} computed")


def test_t5_a_run_ends_without_its_server_and_the_next_one_is_not_blocked(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    path = sweep("serverless", SLOW.format(name="serverless", seconds=0.1, points=POINTS))
    run_id = prefect.start_run("faulty", sweep=path, store="serverless")
    wait_for_parts(prefect, "serverless", 2)
    assert prefect.server is not None
    prefect.server.send_signal(signal.SIGKILL)
    prefect.server.wait()
    prefect.server = None
    began = time.monotonic()
    prefect.wait(lambda: manifest(prefect.root / "serverless") == "complete", "the sweep is complete")
    print(f"\nT5: without its server, the data path ended after {time.monotonic() - began:.0f} s")
    assert rows(prefect.root / "serverless") == POINTS
    prefect.start_server()
    began = time.monotonic()
    ended = prefect.end_of(run_id)["state_name"]
    print(f"T5: {ended} {time.monotonic() - began:.0f} s after the new server was up")
    assert ended in {"Completed", "Crashed"}, "the latter if it was not notified in time"

    def next_one() -> dict[str, Any] | None:
        run = prefect.end_of(prefect.start_run("faulty", sweep=path, store="serverless"))
        return run if run["state_type"] == "COMPLETED" else None

    run = prefect.wait(next_one, "a new run is let in", 400)
    print(f"T5: the next run had ended {time.monotonic() - began:.0f} s after the new server was up")
    assert run["state"]["message"].startswith(f"{POINTS} points, 0 computed")


def manifest(store: Path) -> str:
    with open_store(store) as opened:
        return next((each.status for each in opened.manifests()), "none")


def test_t5_a_run_killed_with_its_worker_counts_as_crashed_and_the_next_resumes(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    path = sweep("zombie", SLOW.format(name="zombie", seconds=0.1, points=POINTS))
    run_id = prefect.start_run("faulty", sweep=path, store="zombie")
    wait_for_parts(prefect, "zombie", 2)
    assert prefect.worker is not None
    for process in [psutil.Process(prefect.worker.pid), *prefect.below_worker()]:
        process.kill()
    prefect.worker.wait()
    began = time.monotonic()
    kept = rows(prefect.root / "zombie")
    assert 0 < kept < POINTS
    run = prefect.end_of(run_id)
    seconds = time.monotonic() - began
    print(f"\nT5: the zombie counted as crashed after {seconds:.0f} s")
    assert run["state_type"] == "CRASHED"
    assert run["state"]["message"].startswith("No heartbeat for 90 seconds.")
    assert seconds < stretched(180)
    prefect.start_worker()

    def next_one() -> dict[str, Any] | None:
        ended = prefect.end_of(prefect.start_run("faulty", sweep=path, store="zombie"))
        return ended if ended["state_type"] == "COMPLETED" else None

    again = prefect.wait(next_one, "a new run is let in", 400)
    print(f"T5: the next run had ended {time.monotonic() - began:.0f} s after the kill")
    assert again["state"]["message"].startswith(f"{POINTS} points, {POINTS - kept} computed")


# -------------------------------------------------------------------------------------------------- how much


def asked_of_the_database(prefect: PrefectHere, query: str, **values: str) -> list[Any]:
    """The first column of an answer of Prefect's database."""
    with closing(sqlite3.connect(f"file:{prefect.folder}/home/prefect.db?mode=ro", uri=True)) as database:
        return [row[0] for row in database.execute(query, values)]


def recorded(prefect: PrefectHere) -> dict[str, int]:
    """Number of rows of each table of Prefect's database, after the last late row."""

    def now() -> dict[str, int]:
        tables = asked_of_the_database(prefect, "select name from sqlite_master where type = 'table'")
        return {
            name: asked_of_the_database(prefect, f'select count(*) from "{name}"')[0]
            for name in tables
            if not name.startswith(("sqlite", "alembic"))
        }

    counts: dict[str, int] = {}
    while counts != (counts := now()):
        time.sleep(15)
    return counts


def recorded_of(prefect: PrefectHere, run_id: str, event: str = "%") -> int:
    """Number of event rows of a run: each event has a row for every related resource."""
    query = """
        with those as (select id from events where event like :event and id in (
            select event_id from event_resources where resource_id = 'prefect.flow-run.' || :run))
        select (select count(*) from those)
            + (select count(*) from event_resources where event_id in (select id from those))"""
    (number,) = asked_of_the_database(prefect, query, event=event, run=run_id)
    return int(number)


def test_t36_a_hundred_thousand_points_leave_five_hundred_rows_in_prefect_at_most(
    prefect: PrefectHere, sweep: Callable[[str, str], str]
) -> None:
    """Heartbeats are counted with the others, and grow with the time of a run, not with its points."""
    path = sweep("many", SLOW.format(name="many", seconds=0.01, points=100_000))
    before = recorded(prefect)
    began = time.monotonic()
    run_id = prefect.start_run("faulty", sweep=path, store="many", workers=8, reports=None)
    prefect.wait(lambda: prefect.run(run_id)["state_type"] in FINAL, "the run ends", 900)
    seconds = time.monotonic() - began
    assert prefect.run(run_id)["state_name"] == "Completed"
    new = {name: more for name, n in recorded(prefect).items() if (more := n - before.get(name, 0)) > 0}
    events, beats = (recorded_of(prefect, run_id, event) for event in ("%", "prefect.flow-run.heartbeat"))
    print(
        f"\nT36: {sum(new.values())} rows after {seconds:.0f} s, {events} of events of the run, "
        f"{beats} of its heartbeats: {new}"
    )
    assert rows(prefect.root / "many") == 100_000
    assert 0 < beats <= 9 * (2 + seconds / 30)
    assert beats < events <= new["events"] + new["event_resources"]
    assert sum(new.values()) <= 500
