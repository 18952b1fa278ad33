"""Memory on Ray: batches that do not fit a node together wait; a node that runs short stores no failure."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage import open_store
from tests.busy import stretched
from tests.flows.runs.test_faults import SLOW, rows_and_points, wait_for_parts
from tests.ray_cluster import RayCluster

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("ray")]

Start = Callable[..., Any]
Run = Callable[..., tuple[int, str, str]]

LARGE = """
name = "{name}"
[[grid]]
problem = "unamplified-epsilon"
methods = [{{name = "faulty.large", seconds = 0.5, bytes = {bytes}}}]
product = {{sigma = {{linear = [1, 2, 12]}}, delta = 1e-5}}
"""


@pytest.mark.parametrize(("bytes_", "at_once"), [(1e5, 2), (2e9, 1)])
def test_batches_whose_memory_exceeds_the_node_together_are_computed_one_after_another(
    folder: Path, process: Run, bytes_: float, at_once: int
) -> None:
    spec, store, log = (folder / f"large-{at_once}{end}" for end in (".toml", "", ".log"))
    spec.write_text(LARGE.format(name=f"large-{at_once}", bytes=bytes_))
    with RayCluster({"FAULTY_LOG": str(log)}) as cluster:
        cluster.start_head(2, "--memory=4000000000")
        code, out, err = process(
            "run",
            spec,
            "--store",
            store,
            "--json",
            "--ray-address",
            cluster.address,
            environment=cluster.environment,
        )
    assert code == 0, err
    assert json.loads(out)["statuses"] == {"ok": 12}
    with open_store(store) as opened:
        assert rows_and_points(opened) == (12, 12)
    points = accumulate(1 if line == "begins" else -1 for line in log.read_text().split())
    assert max(points) == at_once


OTHER_PROGRAM = """
import sys, time, psutil
most, held = float(sys.argv[1]), []
while True:
    memory = psutil.virtual_memory()
    if memory.total - memory.available < most:
        held.append(bytearray(b"x") * 100_000_000)
    else:
        time.sleep(0.1)
"""
"""A program that fills the memory of the machine up to a number of bytes, until it is ended."""
POINTS = 1000
LOGS = "session_*/logs/raylet.*"
ENDED = "based on the killing policy"
"""Ray's log of a process that it ended for lack of memory."""


def test_batches_that_ray_ends_for_lack_of_memory_are_computed_when_there_is_memory_again(
    folder: Path, start: Start
) -> None:
    spec, store, log = (folder / f"short{end}" for end in (".toml", "", ".log"))
    spec.write_text(SLOW.format(name="short", points=POINTS))
    memory = psutil.virtual_memory()
    most = memory.total - memory.available + 3e9
    with RayCluster(
        {"FAULTY_LOG": str(log), "RAY_memory_usage_threshold": f"{most / memory.total}"}
    ) as cluster:
        cluster.start_head(2)
        address = ("--ray-address", cluster.address)
        running = start("run", spec, "--store", store, "--json", *address, environment=cluster.environment)
        wait_for_parts(store, 1, running)
        other = subprocess.Popen([sys.executable, "-c", OTHER_PROGRAM, str(most + 5e8)])
        try:
            end = time.monotonic() + stretched(60)
            while not any(ENDED in log.read_text() for log in cluster.folder.glob(LOGS)):
                assert time.monotonic() < end, "Ray has not ended a batch"
                time.sleep(0.5)
        finally:
            other.kill()
            other.wait()
        code, out, err = running.end(timeout=stretched(300))
    assert code == 0, err
    assert json.loads(out)["statuses"] == {"ok": POINTS}
    with open_store(store) as opened:
        assert rows_and_points(opened) == (POINTS, POINTS)
        assert opened.verify() == []


@pytest.mark.soak
def test_on_a_machine_that_ray_counts_as_full_no_healthy_point_fails(folder: Path, start: Start) -> None:
    """Ray ends every batch within a second, so the run stores finished batches, or ends with a sentence."""
    spec, store = folder / "full.toml", folder / "full"
    spec.write_text(SLOW.format(name="full", points=180))
    environment = {"RAY_memory_usage_threshold": "0.05"}
    arguments = ("run", spec, "--engine", "ray", "--store", store, "--workers", 2, "--json")
    code, _, err = start(*arguments, environment=environment).end(timeout=stretched(1500))
    assert code in (0, 5), err
    with open_store(store) as opened:
        stored = set(opened.stored("unamplified-epsilon").values())
        assert stored <= {"ok"}
    if code == 5:
        assert "Ray has ended every batch for 600 s because the memory of its nodes is used up" in err
        assert "the same command resumes" in err
