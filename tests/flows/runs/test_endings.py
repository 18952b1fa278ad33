"""The end of a run: no success without all of its points in the store."""

import contextlib
import os
import pty
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.runs.progress import Pace
from flows.runs.run import run
from flows.spec.sweep import parse
from storage import open_store
from tasks.engine import Engine
from tasks.errors import EngineError
from tasks.work import Done
from tests.busy import stretched
from tests.flows.conftest import SCRIPT

SWEEP = """
name = "whole"
[[grid]]
problem = "unamplified-epsilon"
methods = ["{method}"]
product = {{sigma = {{linear = [1, 2, 100]}}, delta = 1e-5}}
"""
ROLE = Path(__file__).parents[3] / "deploy/role"


def named(name: str, processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """The processes of a name, without those that end while it is read."""
    found = []
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if each.name() == name:
                found.append(each)
    return found


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("seconds", [0.0, 1.5])
def test_a_run_whose_ray_dies_at_its_start_is_no_success_of_a_role(
    seconds: float, folder: Path, start: Callable[..., Any]
) -> None:
    """While it starts, Ray raises an exception without a class of its own; later, it may end the process."""
    (folder / "bin").mkdir(exist_ok=True)
    command = folder / "bin" / "privsweep"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPT} "$@"\n')
    command.chmod(0o755)
    (folder / "whole.toml").write_text(SWEEP.format(method="faulty.slow"))
    store = folder / f"died-{seconds}"
    words = ("sweep", "whole.toml", "--engine", "ray", "--store", store, "--workers", 1)
    path = f"{command.parent}:/usr/bin:/bin"
    running = start(*words, program=("sh", ROLE), environment={"PATH": path})
    while not (raylets := named("raylet", running.below)):
        assert running.alive, running.end()
        time.sleep(0.02)
    time.sleep(seconds)
    raylets[0].kill()
    ended, out, err = running.end()
    assert "Traceback" not in err
    if not seconds:
        assert (ended, out) == (5, "")
        assert (
            err.splitlines()[-1] == "privsweep: Ray did not start: The current node timed out during startup."
        )
    with open_store(store) as opened:
        assert (ended == 0) == (len(opened.stored("unamplified-epsilon")) == 100), err


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
def test_a_run_works_in_spite_of_proxies_that_reach_nothing(folder: Path, start: Callable[..., Any]) -> None:
    (folder / "proxy.toml").write_text(SWEEP.format(method="unamplified.exact"))
    words = ("run", "proxy.toml", "--engine", "ray", "--store", folder / "proxy", "--workers", 1)
    nowhere = dict.fromkeys(("http_proxy", "HTTPS_PROXY", "all_proxy"), "http://127.0.0.1:9")
    without = {"NO_PROXY": "example.org", "no_proxy": ""}
    code, out, err = start(*words, environment=nowhere | without).end()
    assert code == 0, err
    assert "100 points, 100 computed" in out


def read_all(terminal: int, into: bytearray) -> None:
    """Read the output of a terminal until one of its ends is closed."""
    with contextlib.suppress(OSError):
        while more := os.read(terminal, 100_000):
            into += more


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(
    ("times", "closed"),
    [
        pytest.param(2, False, marks=pytest.mark.thorough, id="Ctrl-C"),
        pytest.param(20, False, marks=pytest.mark.soak, id="Ctrl-C, 20 times"),
        pytest.param(20, True, marks=pytest.mark.soak, id="closed terminal, 20 times"),
    ],
)
def test_a_run_that_is_stopped_while_ray_starts_leaves_nothing(
    closed: bool, times: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "stopped.toml").write_text(SWEEP.format(method="faulty.slow"))
    monkeypatch.setenv("HOME", str(folder / "home"))
    for k in range(times):
        words = ("run", "stopped.toml", "--engine", "ray", "--store", str(folder / f"{closed}-{times}-{k}"))
        process, terminal = pty.fork()
        if not process:
            os.chdir(folder)
            os.execv(sys.executable, [sys.executable, str(SCRIPT), *words, "--workers", "2"])
        said = bytearray()
        reading = threading.Thread(target=read_all, args=(terminal, said), daemon=True)
        if not closed:
            reading.start()  # a full terminal stops the process that writes to it
        driver = psutil.Process(process)
        below = driver.children
        while not named("gcs_server", below()):
            time.sleep(0.02)
        time.sleep(4.0 * k / times)  # until it has started, and a little longer
        family = below(recursive=True)
        if closed:
            os.close(terminal)
        else:
            os.write(terminal, b"\x03")
        left = psutil.wait_procs([driver, *family], timeout=stretched(60))[1]
        for each in left:
            each.kill()
        assert (driver.wait(), left) == (130, []), f"run {k}"
        if not closed:
            reading.join()
            assert b"the same command resumes." in said
            os.close(terminal)


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(("engine", "seconds"), [("serial", 6.0), ("ray", 30.0)])
def test_time_in_which_all_of_a_run_is_stopped_does_not_count(
    engine: str, seconds: float, folder: Path, start: Callable[..., Any]
) -> None:
    limits = "[limits]\npoint_seconds = 4\n[[grid]]"
    slow = SWEEP.format(method="faulty.slow").replace("[[grid]]", limits).replace("100]", "12]")
    (folder / "suspended.toml").write_text(
        slow.replace('"faulty.slow"', '{name = "faulty.slow", seconds = 2}')
    )
    words = ("run", "suspended.toml", "--engine", engine, "--store", folder / engine, "--workers", 2)
    running = start(*words)
    while not running.computing:
        assert running.alive, running.end()
        time.sleep(0.1)
    time.sleep(4.0)  # so that points are being computed
    everything = [psutil.Process(running.process.pid), *running.below]
    for each in everything:
        each.suspend()
    time.sleep(seconds)
    for each in everything:
        each.resume()
        time.sleep(0.1)  # the parent first: it must not count the time before the first look
    code, out, err = running.end()
    assert code == 0, out + err
    assert "12 computed, 0 stored before, 0 failed" in out


def test_a_run_whose_parts_disappear_is_no_success(tmp_path: Path) -> None:
    sweep = parse(SWEEP.format(method="unamplified.exact").encode(), "whole.toml")

    def remove(_pace: Pace, done: Done | str | None) -> None:
        if isinstance(done, Done):
            for path in tmp_path.glob("data/*/*.parquet"):
                path.unlink()

    lost = r"store lacks some of its points: 0 of 100 points are stored; the same command resumes\.$"
    with open_store(tmp_path, missing_ok=True) as store:
        with pytest.raises(EngineError, match=lost):
            run(sweep, store, engine=Engine(name="serial"), watch=remove)
        report = run(sweep, store, engine=Engine(name="serial"))
    assert (report.computed, report.now.missing) == (100, 0)


PROFILES = """
active = "gone"
[profiles.gone]
PREFECT_API_URL = "http://127.0.0.1:1/api"
"""


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("PREFECT_API_URL", "http://me:secret@127.0.0.1:1/api?key=secret", "http://127.0.0.1:1/api"),
        ("PREFECT_PROFILE", "gone", "gone"),
    ],
)
def test_a_server_that_does_not_answer_is_named_with_the_variable_that_chose_it(
    name: str, value: str, shown: str, folder: Path, process: Callable[..., Any]
) -> None:
    (folder / "profiles.toml").write_text(PROFILES)
    (folder / "whole.toml").write_text(SWEEP.format(method="faulty.slow"))
    words = ("run", "whole.toml", "--engine", "ray", "--store", folder / name, "--workers", 1)
    environment = {name: value, "PREFECT_PROFILES_PATH": str(folder / "profiles.toml")}
    ended, out, err = process(*words, environment=environment)
    assert (ended, out) == (5, "")
    assert "secret" not in err
    sentence = err.splitlines()[-1]
    assert sentence.startswith(
        f"privsweep: Prefect did not start with {name}={shown} (RuntimeError: Failed to"
    )
    assert sentence.endswith(f": start that server, or unset {name} to let the run start its own.")
