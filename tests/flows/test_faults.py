"""Whatever is killed, a store stays whole and a second run computes what is missing, with real processes."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage import Store, open_store

pytestmark = pytest.mark.xdist_group("ray")

Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[..., tuple[int, str, str]]

POINTS = 120
SLOW = """
name = "{name}"
[[grid]]
problem = "unamplified-epsilon"
methods = [{{name = "faulty.slow", seconds = 0.1}}]
product = {{sigma = {{linear = [1, 2, {points}]}}, delta = 1e-5}}
"""


def parts(store: Path) -> list[Path]:
    return sorted(store.glob("data/*/*.parquet"))


def wait_for_parts(store: Path, number: int, process: "subprocess.Popen[str]") -> None:
    """Wait until so many parts are published."""
    while len(parts(store)) < number:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def rows_and_points(store: Store) -> tuple[int, int]:
    """Number of rows in all parts, duplicates included, and number of points among them."""
    stored = store.stored("unamplified-epsilon")
    from storage.parts import parts as all_parts
    from storage.parts import read_part

    return sum(len(read_part(path, ["point_id"])) for path in all_parts(store.root)), len(stored)


def family(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def ray_workers(pid: int) -> list[psutil.Process]:
    """The Ray workers below a process that have begun to work on batches."""
    return [p for p in family(pid) if p.name().startswith("ray::_run_on")]


@dataclass
class Story:
    """A sweep that is interrupted, then killed, then finished, then run once more."""

    store: Path
    ends: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_over: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(folder: Path, start: Start, privsweep: Run) -> Story:
    spec = folder / "slow.toml"
    spec.write_text(SLOW.format(name="slow", points=POINTS))
    story = Story(folder / "story")
    arguments = ("run", spec, "--store", story.store, "--workers", 2, "--json")

    def status(moment: str) -> None:
        code, out, err = privsweep("status", "--store", story.store, "--json")
        assert code == 0, err
        story.reports[moment] = json.loads(out)[0]
        story.stored[moment] = story.reports[moment]["stored"]

    process = start(*arguments)
    wait_for_parts(story.store, 2, process)
    status("during")
    below = family(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C in a terminal does
    out, err = process.communicate(timeout=120)
    story.ends["interrupted"] = process.returncode, out, err
    _, alive = psutil.wait_procs(below, timeout=20)
    story.left_over["interrupted"] = len(alive)
    status("interrupted")

    process = start(*arguments)
    wait_for_parts(story.store, len(parts(story.store)) + 2, process)
    below = family(process.pid)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(below, timeout=60)
    story.left_over["killed"] = len(alive)
    status("killed")

    for moment in ("finished", "again"):
        code, out, err = story.ends[moment] = privsweep(*arguments)
        assert code == 0, err
        story.reports[moment] = json.loads(out)
    return story


def test_status_tells_from_another_shell_how_far_a_run_is(story: Story) -> None:
    assert 0 < story.stored["during"] < POINTS
    assert story.reports["during"]["points"] == POINTS
    assert story.reports["during"]["missing"] == POINTS - story.stored["during"]


def test_ctrl_c_ends_with_130_and_one_sentence(story: Story) -> None:
    code, out, err = story.ends["interrupted"]
    assert code == 130
    assert not out
    stored = story.stored["interrupted"]
    last = err.splitlines()[-1]
    assert f"Stopped: {stored} of {POINTS} points are stored; the same command goes on." in last
    assert "Traceback" not in err


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
    assert report["seconds"] < 5, "Ray and Prefect need longer than that to start"
    assert "computing" not in story.ends["again"][2]


def test_no_temporary_file_survives(story: Story) -> None:
    assert [p for p in story.store.rglob("*") if p.name.endswith(".tmp")] == []


def test_a_run_writes_nothing_into_the_home_directory(story: Story, folder: Path) -> None:
    assert story.ends
    assert [p for p in (folder / "home").rglob("*") if ".cache" not in p.parts] == []


def test_the_manifest_lists_the_parts_of_all_runs(story: Story) -> None:
    with open_store(story.store) as store:
        (manifest,) = store.manifests()
    assert manifest.status == "complete"
    assert manifest.counts == {"ok": POINTS, "missing": 0}
    assert {Path(name).name for name in manifest.parts} == {path.name for path in parts(story.store)}


def test_a_killed_worker_costs_nothing_but_time(folder: Path, start: Start) -> None:
    spec = folder / "worker.toml"
    spec.write_text(SLOW.format(name="worker", points=80))
    store = folder / "worker"
    process = start("run", spec, "--store", store, "--workers", 2, "--json")
    wait_for_parts(store, 2, process)
    victim = ray_workers(process.pid)[0]
    victim.kill()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    report = json.loads(out)
    assert (report["computed"], report["failed"], report["missing"]) == (80, 0, 0)
    with open_store(store) as opened:
        assert rows_and_points(opened) == (80, 80)
        assert opened.verify() == []


def test_two_runs_on_one_store_at_once_both_finish(folder: Path, start: Start) -> None:
    spec = folder / "both.toml"
    spec.write_text(SLOW.format(name="both", points=60))
    store = folder / "both"
    runs = [start("run", spec, "--store", store, "--workers", 1, "--json") for _ in range(2)]
    ends = [(*run.communicate(timeout=240), run.returncode) for run in runs]
    assert [code for *_, code in ends] == [0, 0], ends
    assert all(json.loads(out)["missing"] == 0 for out, *_ in ends)
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


def test_on_ray_only_the_points_that_kill_their_workers_are_crashed(folder: Path, privsweep: Run) -> None:
    spec = folder / "mixed.toml"
    spec.write_text(MIXED.replace("STEPS", "[1, 6]"))
    store = folder / "mixed"
    code, out, err = privsweep("run", spec, "--store", store, "--json")
    assert code == 1, err
    assert json.loads(out)["statuses"] == {"ok": 1, "not_applicable": 2, "crashed": 1}
    with open_store(store) as opened:
        (row,) = opened.sql("select steps, detail from failures").to_pylist()
    assert row["steps"] == 6
    assert "worker died" in row["detail"]


@pytest.mark.soak
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_killed_at_any_share_a_sweep_resumes(
    folder: Path, start: Start, privsweep: Run, share: float
) -> None:
    spec = folder / "soak.toml"
    spec.write_text(SLOW.format(name="soak", points=400))
    store = folder / f"soak-{share}"
    process = start("run", spec, "--store", store, "--workers", 2)
    while not parts(store):
        time.sleep(0.05)
    time.sleep(20 * share)
    process.kill()
    process.communicate()
    time.sleep(3)
    with open_store(store) as opened:
        before = len(opened.stored("unamplified-epsilon"))
    code, out, err = privsweep("run", spec, "--store", store, "--workers", 2, "--json")
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
    process = start("run", spec, "--store", store, "--workers", 2, "--json")
    wait_for_parts(store, 1, process)
    while process.poll() is None:
        time.sleep(4)
        for victim in ray_workers(process.pid)[:1] if process.poll() is None else []:
            victim.kill()
    out, err = process.communicate()
    assert json.loads(out)["missing"] == 0, err
    with open_store(store) as opened:
        assert rows_and_points(opened)[1] == 1200
        assert opened.verify() == []
