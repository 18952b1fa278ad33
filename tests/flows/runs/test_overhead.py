"""Cost of the pipeline itself: a hundred thousand points of a trivial method, from TOML to stored rows."""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage import open_store

POINTS = 100_000
BIG = """
name = "overhead"
[[grid]]
problem = "unamplified-delta"
methods = ["unamplified.exact"]
product = {sigma = {geometric = [0.3, 20, 250]}, epsilon = {linear = [0.01, 10, 400]}}
"""


SLEEPY = """
name = "sleepy"
[[grid]]
problem = "unamplified-epsilon"
methods = [{name = "faulty.slow", seconds = 0.01}]
product = {sigma = {linear = [1, 2, 100000]}, delta = 1e-5}
"""


@pytest.mark.soak
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(
    ("name", "sweep", "limit"),
    [("overhead", BIG, 0.5e-3), ("sleepy", SLEEPY, 2e-3)],
    ids=["trivial", "10 ms"],
)
def test_what_the_pipeline_adds_to_a_point_is_small(
    folder: Path,
    start: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    name: str,
    sweep: str,
    limit: float,
) -> None:
    """T36: the second sweep is of a hundred thousand points of 10 ms."""
    spec, store = folder / f"{name}.toml", folder / name
    spec.write_text(sweep)
    began = time.monotonic()
    running = start("run", spec, "--engine", "ray", "--store", store, "--workers", 2, "--json")
    driver, memory = psutil.Process(running.process.pid), 0
    while running.alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            memory = max(memory, driver.memory_info().rss)
        time.sleep(0.2)
    code, out, err = running.end(timeout=1200)
    seconds = time.monotonic() - began
    assert code == 0, err
    assert json.loads(out)["computed"] == POINTS
    with open_store(store) as opened:
        (row,) = opened.sql("select count(*) as rows, sum(seconds) as inside from results").to_pylist()
    database = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (tasks,) = connection.execute("select count(*) from task_run").fetchone()
    overhead = (seconds - row["inside"] / 2) / POINTS
    with capsys.disabled():
        print(
            f"\n{POINTS} points: {seconds:.1f} s, {row['inside']:.1f} core seconds of them in the method; "
            f"overhead {1e3 * overhead:.3f} ms a point, {tasks} task runs, driver {memory / 1e6:.0f} MB"
        )
    assert row["rows"] == POINTS
    assert overhead < limit
    assert tasks <= 500
    assert memory < 1e9
