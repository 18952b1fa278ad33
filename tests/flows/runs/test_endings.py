"""The end of a run: no success without all of its points in the store."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.runs.plan import Plan
from flows.runs.run import run
from flows.spec.sweep import parse
from storage import open_store
from tasks.errors import EngineError
from tasks.work import Done
from tests.flows.conftest import SCRIPT

SWEEP = """
name = "whole"
[[grid]]
problem = "unamplified-epsilon"
methods = ["{method}"]
product = {{sigma = {{linear = [1, 2, 100]}}, delta = 1e-5}}
"""
ROLE = Path(__file__).parents[3] / "deploy/role"


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(("seconds", "code"), [(0.0, 5), (0.5, 1)], ids=["by Python", "by Ray"])
def test_a_run_whose_ray_dies_at_its_start_is_no_success_of_a_role(
    seconds: float, code: int, folder: Path, start: Callable[..., Any]
) -> None:
    """While it starts, Ray raises an exception without a class of its own, or ends the process with 1."""
    (folder / "bin").mkdir(exist_ok=True)
    command = folder / "bin" / "privsweep"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPT} "$@"\n')
    command.chmod(0o755)
    (folder / "whole.toml").write_text(SWEEP.format(method="faulty.slow"))
    store = folder / f"died-{seconds}"
    words = ("sweep", "whole.toml", "--engine", "ray", "--store", store, "--workers", 1)
    path = f"{command.parent}:/usr/bin:/bin"
    running = start(*words, program=("sh", ROLE), environment={"PATH": path})
    while not (raylets := [each for each in running.below if each.name() == "raylet"]):
        assert running.alive, running.end()
        time.sleep(0.02)
    time.sleep(seconds)
    raylets[0].kill()
    ended, out, err = running.end()
    assert (ended, out) == (code, ""), err
    if code == 5:
        assert (
            err.splitlines()[-1] == "privsweep: Ray did not start: The current node timed out during startup."
        )
    assert "Traceback" not in err
    with open_store(store) as opened:
        assert not opened.stored("unamplified-epsilon")


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
def test_a_run_works_in_spite_of_a_proxy_that_reaches_nothing(
    name: str, folder: Path, start: Callable[..., Any]
) -> None:
    (folder / "proxy.toml").write_text(SWEEP.format(method="unamplified.exact"))
    words = ("run", "proxy.toml", "--engine", "ray", "--store", folder / name, "--workers", 1)
    nowhere = {name: "http://127.0.0.1:9", "NO_PROXY": "example.org", "no_proxy": ""}
    code, out, err = start(*words, environment=nowhere).end()
    assert code == 0, err
    assert "100 points, 100 computed" in out


def test_a_run_whose_parts_disappear_is_no_success(tmp_path: Path) -> None:
    sweep = parse(SWEEP.format(method="unamplified.exact").encode(), "whole.toml")

    def remove(_plan: Plan, done: Done | str | None) -> None:
        if isinstance(done, Done):
            for path in tmp_path.glob("data/*/*.parquet"):
                path.unlink()

    lost = r"store lacks some of its points: 0 of 100 points are stored; the same command resumes\.$"
    with open_store(tmp_path, missing_ok=True) as store:
        with pytest.raises(EngineError, match=lost):
            run(sweep, store, engine_name="serial", watch=remove)
        report = run(sweep, store, engine_name="serial")
    assert (report.computed, report.now.missing) == (100, 0)
