"""After any process is killed, the store is whole and a second run computes the missing points."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.runs.batches import Batches, grouped
from flows.runs.ledger import Ledger
from flows.spec.sweep import parse
from storage import Store, open_store
from storage.parts import parts as parts_of
from storage.place.located import located
from tasks import engine
from tasks.work import Job
from tests.storage.made_up import read_rows

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("ray")]

Start = Callable[..., Any]
Run = Callable[..., tuple[int, str, str]]

POINTS = 200
SLOW = """
name = "{name}"
[[grid]]
problem = "unamplified-epsilon"
methods = [{{name = "faulty.slow", seconds = 0.1}}]
product = {{sigma = {{linear = [1, 2, {points}]}}, delta = 1e-5}}
"""

HOPELESS = """
name = "hopeless"
[[grid]]
problem = "unamplified-epsilon"
methods = ["faulty.mixed"]
product = {sigma = [1, 2], steps = 8, delta = 1e-5}
"""  # eight steps cost too much to be started


def parts(store: Path) -> list[Path]:
    return sorted(store.glob("data/*/*.parquet"))


def wait_for_parts(store: Path, number: int, running: Any) -> None:
    """Wait until this number of parts is published."""
    while len(parts(store)) < number:
        assert running.alive, running.end()
        time.sleep(0.05)


def wait_for_flows(name: str, number: int) -> None:
    """Wait until Prefect has recorded the start of this number of runs."""
    while len([state for state in flows(name) if state != "PENDING"]) < number:
        time.sleep(0.05)


def flows(name: str) -> list[str]:
    """The states of the runs of a sweep that Prefect has recorded."""
    database = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
    if not database.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        if not connection.execute("select * from sqlite_master where name = 'flow_run'").fetchall():
            return []
        states = connection.execute("select state_type from flow_run where name like ? || ' 2%'", [name])
        return [state for (state,) in states.fetchall()]


def rows_and_points(store: Store) -> tuple[int, int]:
    """Number of rows of the slow points, duplicates included, and number of points among them."""
    mine = [path for path in parts_of(store.place) if path.parent.name == "problem=unamplified-epsilon"]
    rows = sum(len(read_rows(path, ["point_id"])) for path in mine)
    return rows, len(store.stored("unamplified-epsilon"))


def ray_workers(running: Any) -> list[psutil.Process]:
    """The Ray workers of a run that have begun to work on batches."""
    return [p for p in running.below if p.name().startswith("ray::faulty")]


@contextlib.contextmanager
def paused(running: Any) -> Iterator[None]:
    """Pause the computation, so that a busy machine cannot finish it before the interruption."""
    computing = running.computing
    for process in computing:
        process.suspend()
    yield
    for process in computing:
        process.resume()


@dataclass
class Story:
    """A sweep that is interrupted, then killed, then finished, then run once more."""

    store: Path
    ends: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_over: dict[str, int] = field(default_factory=dict)
    listening: set[str] = field(default_factory=set)
    modes: set[str | None] = field(default_factory=set)
    scheduler: dict[str, int] = field(default_factory=dict)
    """The time when the files of Prefect were last written, after the last two runs."""


@pytest.fixture(scope="module")
def story(folder: Path, start: Start, process: Run) -> Story:
    spec = folder / "slow.toml"
    spec.write_text(SLOW.format(name="slow", points=POINTS))
    story = Story(folder / "story")
    arguments = ("run", spec, "--engine", "ray", "--store", story.store, "--workers", 2, "--json")

    def status(moment: str) -> None:
        code, out, err = process("status", "--store", story.store, "--json")
        assert code == 0, err
        story.reports[moment] = json.loads(out)[0]
        story.stored[moment] = story.reports[moment]["stored"]

    running = start(*arguments)
    wait_for_parts(story.store, 2, running)
    with paused(running):
        wait_for_flows("slow", 1)
        status("during")
    for each in running.below:
        with contextlib.suppress(psutil.NoSuchProcess):
            sockets = each.net_connections(kind="inet")
            listening = {s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN}
            story.listening |= {address.removeprefix("::ffff:") for address in listening}
            if each.name().startswith(("raylet", "gcs_server")):
                story.modes.add(each.environ().get("RAY_AUTH_MODE"))
    interrupted = running.below
    os.killpg(running.process.pid, signal.SIGINT)  # as Ctrl-C in a terminal
    story.ends["interrupted"] = running.end()
    status("interrupted")

    running = start(*arguments)
    wait_for_parts(story.store, len(parts(story.store)) + 2, running)
    with paused(running):
        wait_for_flows("slow", 2)
    killed = [p for p in running.below if not p.name().endswith("Agent")]  # Ray's take a minute to notice
    running.process.kill()
    running.end()
    time.sleep(2)  # the workers may still publish batches that they have just finished
    status("killed")

    for moment in ("finished", "again"):
        code, out, err = story.ends[moment] = process(*arguments)
        assert code == 0, err
        story.reports[moment] = json.loads(out)
        written = Path(os.environ["PREFECT_HOME"]).rglob("*")
        story.scheduler[moment] = max(path.stat().st_mtime_ns for path in written)
    story.left_over["interrupted"] = len(psutil.wait_procs(interrupted, timeout=20)[1])
    story.left_over["killed"] = len(psutil.wait_procs(killed, timeout=20)[1])
    return story


def test_status_tells_from_another_shell_how_far_a_run_is(story: Story) -> None:
    assert 0 < story.stored["during"] < POINTS
    assert story.reports["during"]["points"] == POINTS
    assert story.reports["during"]["missing"] == POINTS - story.stored["during"]
    (run,) = story.reports["during"]["runs"]
    assert run["state"] == "running"
    assert run["new"] == POINTS


def test_status_tells_what_runs_from_what_was_interrupted_or_killed(story: Story) -> None:
    states = {moment: report["state"] for moment, report in story.reports.items() if "state" in report}
    assert states == {"during": "running", "interrupted": "interrupted", "killed": "interrupted"}
    assert story.reports["interrupted"]["runs"] == [], "it has said good-bye"
    (killed,) = story.reports["killed"]["runs"]
    assert (killed["state"], killed["seconds_left"]) == ("killed", None)
    assert not (story.store / "running").exists(), "the run that finished has cleared away the one killed"


def test_ctrl_c_ends_with_130_and_one_sentence(story: Story) -> None:
    code, out, err = story.ends["interrupted"]
    assert code == 130
    assert not out
    stored = story.stored["interrupted"]
    last = err.splitlines()[-1]
    assert f"Stopped: {stored} of {POINTS} points are stored; the same command resumes." in last
    assert "Traceback" not in err


def test_all_of_a_run_listens_on_loopback_alone_and_its_ray_asks_for_a_token(story: Story) -> None:
    """T35: neither Ray nor Prefect can be reached from another machine."""
    assert story.listening == {"127.0.0.1"}
    assert story.modes == {"token"}


def test_nothing_is_left_running(story: Story) -> None:
    assert story.left_over == {"interrupted": 0, "killed": 0}


def test_a_run_after_a_kill_computes_exactly_the_missing_points(story: Story) -> None:
    assert story.stored["interrupted"] < story.stored["killed"] < POINTS
    assert story.reports["finished"]["computed"] == POINTS - story.stored["killed"]
    with open_store(story.store) as store:
        assert rows_and_points(store) == (POINTS, POINTS)
        assert store.verify() == []


def test_a_second_run_computes_nothing_says_so_and_starts_nothing(story: Story) -> None:
    report = story.reports["again"]
    assert (report["computed"], report["stored_before"], report["missing"]) == (0, POINTS, 0)
    assert story.scheduler["again"] == story.scheduler["finished"], "Prefect was not started"
    assert "computing" not in story.ends["again"][2]


def test_no_temporary_file_survives(story: Story) -> None:
    assert [p for p in story.store.rglob("*") if p.name.endswith(".tmp")] == []


def test_a_run_writes_nothing_into_the_home_directory(story: Story, folder: Path) -> None:
    assert story.ends
    assert [p for p in (folder / "home").rglob("*") if ".cache" not in p.parts] == []


def test_prefect_knows_how_each_run_ended_from_a_few_task_runs(story: Story) -> None:
    database = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (tasks,) = connection.execute("select count(*) from task_run").fetchone()
    assert sorted(flows("slow")) == ["CANCELLED", "COMPLETED", "RUNNING"], "one was killed"
    assert story.reports
    assert 0 < tasks < 100


def test_a_method_has_a_task_run_in_each_run_that_ends_as_the_run_did(story: Story) -> None:
    database = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        query = (
            "select task_run.name, task_run.state_type from task_run join flow_run "
            "on task_run.flow_run_id = flow_run.id where flow_run.name like 'slow 2%' "
            "and task_run.name like 'faulty.slow on unamplified-epsilon: %'"
        )
        found = connection.execute(query).fetchall()
    assert all(name.endswith((" points, 100%", " 1 point, 100%")) for name, _ in found), found
    states = sorted(state for _, state in found if state not in {"PENDING", "RUNNING"})
    assert states == ["CANCELLED", "COMPLETED"], "one was killed"
    assert story.reports


def test_a_sweep_typed_on_the_command_line_is_named_after_its_problem(
    folder: Path, start: Callable[..., Any]
) -> None:
    words = ("unamplified-epsilon", "sigma=1,2", "delta=1e-5", "--engine", "ray", "--workers", 1)
    code, _, err = start("run", *words, "--store", folder / "typed").end()
    assert code == 0, err
    assert flows("unamplified-epsilon, typed") == ["COMPLETED"]


def test_a_method_without_any_answer_fails_for_prefect_and_ends_with_code_6(
    folder: Path, process: Run
) -> None:
    spec = folder / "hopeless.toml"
    spec.write_text(HOPELESS)
    code, out, err = process("run", spec, "--engine", "ray", "--store", folder / "hopeless", "--workers", 1)
    assert code == 6, err
    assert "2 computed, 0 stored before, 2 failed" in out
    assert flows("hopeless") == ["FAILED"]


def test_the_manifest_lists_the_parts_of_all_runs(story: Story) -> None:
    with open_store(story.store) as store:
        (manifest,) = store.manifests()
    assert manifest.status == "complete"
    assert manifest.counts == {"ok": POINTS, "missing": 0}
    assert {Path(name).name for name in manifest.parts} == {path.name for path in parts(story.store)}


REAL = """
[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.certified", "allocation.decomposition"]
product = {sigma = [0.7, 1.3], steps = [10, 1000], delta = [1e-8, 1e-5]}
"""


@pytest.mark.thorough
def test_a_killed_worker_costs_nothing_but_time_and_changes_no_bit(folder: Path, start: Start) -> None:
    spec = folder / "worker.toml"
    spec.write_text(SLOW.format(name="worker", points=80) + REAL)
    store = folder / "worker"
    running = start("run", spec, "--engine", "ray", "--store", store, "--workers", 2, "--json")
    wait_for_parts(store, 2, running)
    ray_workers(running)[0].kill()
    code, out, err = running.end()
    assert code == 0, err
    report = json.loads(out)
    assert (report["computed"], report["failed"], report["missing"]) == (96, 0, 0)
    with open_store(store) as opened:
        assert rows_and_points(opened) == (80, 80)
        assert opened.verify() == []
        assert answers(opened) == answers_of_the_serial_engine(folder / "serial")


def answers(store: Store) -> list[dict[str, Any]]:
    query = "select point_id, lower, upper, value, status from results where problem = 'allocation-epsilon'"
    return sorted(store.sql(query).to_pylist(), key=lambda row: str(row["point_id"]))


def answers_of_the_serial_engine(store: Path) -> list[dict[str, Any]]:
    """The answers to the real grid, computed in another order by one process."""
    text = 'name = "serial"' + REAL.replace("[0.7, 1.3]", "[1.3, 0.7]")
    sweep = parse(text.encode(), "serial.toml")
    batches = Batches(grouped(Ledger(sweep.grids), frozenset(), sweep.limits), workers=1)
    job = Job(sweep=sweep.name, limits=sweep.limits)
    assert sum(done.points for done in engine.run_serially(batches, job, located(store))) == 16
    with open_store(store) as opened:
        return answers(opened)


@pytest.mark.soak
def test_two_runs_on_one_store_at_once_both_finish(folder: Path, start: Start) -> None:
    spec = folder / "both.toml"
    spec.write_text(SLOW.format(name="both", points=60))
    store = folder / "both"
    runs = [
        start("run", spec, "--engine", "ray", "--store", store, "--workers", 1, "--json") for _ in range(2)
    ]
    ends = [running.end() for running in runs]
    assert [code for code, *_ in ends] == [0, 0], ends
    assert all(json.loads(out)["missing"] == 0 for _, out, _ in ends)
    with open_store(store) as opened:
        table = opened.sql("select count(*) as rows, count(distinct point_id) as points from results")
        assert table.to_pylist() == [{"rows": 60, "points": 60}]
        assert opened.verify() == []


MIXED = """
name = "mixed"
[limits]
point_seconds = 2
[[grid]]
problem = "unamplified-epsilon"
methods = ["faulty.mixed"]
product = {sigma = 1, steps = STEPS, epochs = [1, 2], delta = 1e-5}
"""


@pytest.mark.thorough
def test_on_ray_only_the_points_that_kill_their_workers_are_crashed(folder: Path, process: Run) -> None:
    spec = folder / "mixed.toml"
    spec.write_text(MIXED.replace("STEPS", "[1, 6]"))
    store = folder / "mixed"
    code, out, err = process("run", spec, "--engine", "ray", "--store", store, "--json")
    assert code == 6, err
    assert json.loads(out)["statuses"] == {"ok": 1, "not_applicable": 2, "crashed": 1}
    with open_store(store) as opened:
        (row,) = opened.sql("select steps, detail from failures").to_pylist()
    assert row["steps"] == 6
    assert "worker died" in row["detail"]


FATAL = """
name = "fatal-{victim}"
[[grid]]
problem = "unamplified-epsilon"
methods = [{{name = "fatal.published", victim = "{victim}"}}]
product = {{sigma = {{linear = [1, 2, 30]}}, delta = 1e-5}}
"""


@pytest.mark.thorough
@pytest.mark.parametrize("victim", ["worker", pytest.param("ray", marks=pytest.mark.soak)])
def test_a_published_batch_is_not_computed_again_whatever_dies_before_it_is_reported(
    victim: str, folder: Path, process: Run
) -> None:
    spec = folder / f"fatal-{victim}.toml"
    spec.write_text(FATAL.format(victim=victim))
    store = folder / f"fatal-{victim}"
    code, out, err = process("run", spec, "--engine", "ray", "--store", store, "--workers", 1, "--json")
    assert code == 0, err
    assert store.with_suffix(".killed").exists()
    report = json.loads(out)
    assert (report["computed"], report["statuses"]) == (30, {"ok": 30})
    with open_store(store) as opened:
        assert rows_and_points(opened) == (30, 30), "each point was computed once"
        assert opened.verify() == []


def test_a_cluster_that_is_not_there_is_one_sentence(
    folder: Path, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = folder / "nowhere.toml"
    spec.write_text(SLOW.format(name="nowhere", points=2))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and refusing connections
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        code, out, err = process("run", spec, "--engine", "ray", "--store", folder / "nowhere")
    assert (code, out) == (5, "")
    assert err == f"privsweep: Cannot reach a Ray cluster at RAY_ADDRESS={address}: Connection refused.\n"
    assert not (folder / "nowhere").exists()


@pytest.mark.soak
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_killed_at_any_share_a_sweep_resumes(folder: Path, start: Start, process: Run, share: float) -> None:
    spec = folder / "soak.toml"
    spec.write_text(SLOW.format(name="soak", points=400))
    store = folder / f"soak-{share}"
    running = start("run", spec, "--engine", "ray", "--store", store, "--workers", 2)
    wait_for_parts(store, 1, running)
    time.sleep(20 * share)
    running.process.kill()
    running.end()
    time.sleep(3)
    with open_store(store) as opened:
        before = len(opened.stored("unamplified-epsilon"))
    code, out, err = process("run", spec, "--engine", "ray", "--store", store, "--workers", 2, "--json")
    assert code == 0, err
    assert json.loads(out)["computed"] == 400 - before
    with open_store(store) as opened:
        assert rows_and_points(opened) == (400, 400)
        assert opened.verify() == []


@pytest.mark.soak
def test_workers_killed_again_and_again_lose_nothing(folder: Path, start: Start) -> None:
    spec = folder / "massacre.toml"
    spec.write_text(SLOW.format(name="massacre", points=1200))
    store = folder / "massacre"
    running = start("run", spec, "--engine", "ray", "--store", store, "--workers", 2, "--json")
    wait_for_parts(store, 1, running)
    while running.alive:
        time.sleep(4)
        for victim in ray_workers(running)[:1] if running.alive else []:
            victim.kill()
    _, out, err = running.end()
    assert json.loads(out)["missing"] == 0, err
    with open_store(store) as opened:
        assert rows_and_points(opened)[1] == 1200
        assert opened.verify() == []
