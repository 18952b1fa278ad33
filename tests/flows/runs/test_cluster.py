"""Sweeps on a Ray cluster of several nodes: the same bits, whichever nodes have the code and the store."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage import open_store
from storage.parts import parts as parts_of
from storage.place.located import located
from tests.busy import stretched
from tests.flows.runs.test_faults import (
    POINTS,
    REAL,
    SLOW,
    answers,
    answers_of_the_serial_engine,
    rows_and_points,
    wait_for_parts,
)
from tests.ray_cluster import RayCluster, interpreter_without
from tests.storage.made_up import read_rows

pytestmark = pytest.mark.xdist_group("ray")

Start = Callable[..., Any]
Run = Callable[..., tuple[int, str, str]]

PRIVATE = ["unshare", "--map-root-user", "--mount"]
"""A command with file systems of its own, in which a folder can be hidden without being root."""


def hidden(folder: Path) -> list[str]:
    """A command that runs another one for which a folder is an empty one of its own."""
    return [*PRIVATE, "sh", "-c", f'mount -t tmpfs none "{folder}" && exec "$@"', "sh"]


@pytest.fixture(scope="module")
def runs(folder: Path) -> Path:
    """The folder of the stores, which the second node of the cluster does not see."""
    if subprocess.run([*PRIVATE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not allow private file systems")
    runs = folder / "runs"
    runs.mkdir()
    return runs


@pytest.fixture(scope="module")
def evaluations(folder: Path) -> Path:
    """A file with one line for every evaluation of a slow point: its worker's process id."""
    return folder / "evaluations"


@pytest.fixture(scope="module")
def cluster(folder: Path, runs: Path, evaluations: Path) -> Iterator[RayCluster]:
    """A head that has everything, and a node that has neither our packages nor the folder of the stores."""
    with RayCluster({"FAULTY_LOG": str(evaluations)}) as cluster:
        cluster.start_head(cpus=1)
        bare = interpreter_without(["_privsweep", "privsweep"], folder)
        cluster.start_node(cpus=1, python=bare, under=hidden(runs))
        yield cluster


@pytest.mark.thorough
def test_nodes_without_the_code_and_the_store_compute_the_same_bits(
    cluster: RayCluster, folder: Path, runs: Path, evaluations: Path, process: Run
) -> None:
    spec, store = folder / "mixed.toml", runs / "mixed"
    spec.write_text(SLOW.format(name="mixed", points=156) + REAL)  # slow: the first batch, of one point
    cluster.wait_for_nodes(2)
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
    assert (
        "Ray cluster of 2 nodes: code was sent to the nodes; "
        "1 node shares the store, and the others send their parts here to be stored"
    ) in err.splitlines()
    assert json.loads(out)["computed"] == 172
    assert len(set(evaluations.read_text().split())) == 2, "both nodes have worked"
    with open_store(store) as opened:
        assert rows_and_points(opened) == (156, 156)
        assert opened.verify() == []
        assert answers(opened) == answers_of_the_serial_engine(folder / "serial")
        told = opened.sql("select distinct git_commit, git_dirty, versions from results")
    assert told.num_rows == 1, "rows of sent code record its version"
    assert list(store.glob(".*")) == [], "no token is left"


JOIN = """
import sys
from storage.place.located import located
from tasks.engine import Engine
from tasks.errors import EngineError
from tasks.guard import Limits
from tasks.work import Job
try:
    list(Engine(name="ray").outcomes([], Job(sweep="none", limits=Limits()), located(sys.argv[1])))
except EngineError as error:
    sys.exit(str(error))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("token", ["b" * 64, None])
def test_a_wrong_token_or_none_is_one_sentence_and_nothing_else(
    cluster: RayCluster, runs: Path, token: str | None
) -> None:
    environment = {**os.environ, **cluster.environment, "RAY_ADDRESS": cluster.address}
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE"):
        environment.pop(name)
    if token is not None:
        environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    command = [sys.executable, "-c", JOIN, str(runs / "token")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=200)
    assert done.stderr == (
        f"The Ray cluster at RAY_ADDRESS={cluster.address} cannot be joined: it refused the token, or is "
        "not a Ray head; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as on its nodes.\n"
    )


def workers_of(node: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The workers of a node that have begun to work on batches."""
    if node.poll() is not None:
        return []
    return [
        p for p in psutil.Process(node.pid).children(recursive=True) if p.name().startswith("ray::faulty")
    ]


@pytest.mark.soak
@pytest.mark.parametrize(("every", "duration"), [(20, 180), (60, 600)])
def test_nodes_killed_again_and_again_cost_a_batch_each_and_come_back(
    folder: Path, start: Start, capsys: pytest.CaptureFixture[str], every: float, duration: float
) -> None:
    """T2: one of two nodes is killed with all of its processes and replaced, again and again."""
    points = int(duration * 14)  # two processors and ten points a second each, minus the losses
    spec, store = folder / f"deaths-{every}.toml", folder / f"deaths-{every}"
    spec.write_text(SLOW.format(name=f"deaths-{every}", points=points))
    log = folder / f"deaths-{every}.log"
    kills, back = 0, []
    with RayCluster({"FAULTY_LOG": str(log)}) as cluster:
        cluster.start_head(cpus=0)
        nodes = [cluster.start_node(cpus=1), cluster.start_node(cpus=1)]
        address = ("--ray-address", cluster.address)
        running = start("run", spec, "--store", store, "--json", *address, environment=cluster.environment)
        wait_for_parts(store, 1, running)
        began = time.monotonic()
        while running.alive and time.monotonic() - began < duration:
            killed = time.monotonic()
            cluster.kill(nodes.pop(0))
            nodes.append(cluster.start_node(cpus=1))
            kills += 1
            while running.alive and not workers_of(nodes[-1]):
                late = time.monotonic() - killed > stretched(60)
                assert not late, "its processor is back within a minute"
                time.sleep(0.5)
            back.append(time.monotonic() - killed)
            while running.alive and time.monotonic() - killed < every:
                time.sleep(0.5)
        code, out, err = running.end(timeout=stretched(3 * duration))
    assert code == 0, err
    assert json.loads(out)["computed"] == points
    evaluations = len(log.read_text().split())
    with open_store(store) as opened:
        sizes = [len(read_rows(path, ["point_id"])) for path in parts_of(located(store))]
        assert rows_and_points(opened) == (points, points)
        assert opened.verify() == []
    with capsys.disabled():
        print(
            f"\n{kills} nodes killed, one every {every} s: {evaluations - points} of {points} points "
            f"computed again, batches of {max(sizes)}; processors back after {max(back):.0f} s at most"
        )
    assert kills >= 0.7 * duration / max(every, sum(back) / kills)
    assert evaluations - points <= kills * max(sizes)


@pytest.mark.soak
@pytest.mark.parametrize("victim", ["head", "gcs_server"])
def test_a_killed_head_ends_the_run_with_one_sentence_and_another_cluster_computes_the_rest(
    folder: Path, start: Start, process: Run, capsys: pytest.CaptureFixture[str], victim: str
) -> None:
    """T4: the head's machine dies, or its process that holds the state of the cluster.

    Nodes finish their work without a head, so there is enough work to outlast the detection of its loss.
    """
    points = 6 * POINTS
    spec, store = folder / f"{victim}.toml", folder / victim
    spec.write_text(SLOW.format(name=victim, points=points))
    arguments = ("run", spec, "--store", store, "--json", "--workers", 8, "--ray-address")
    with RayCluster() as cluster:
        cluster.start_head(cpus=1)
        cluster.start_node(cpus=1)
        running = start(*arguments, cluster.address, environment=cluster.environment)
        wait_for_parts(store, 3, running)
        assert cluster.head is not None
        below = psutil.Process(cluster.head.pid).children(recursive=True)
        began = time.monotonic()
        if victim == "head":
            cluster.kill(cluster.head)
        else:
            next(process for process in below if process.name().startswith(victim)).kill()
        code, out, err = running.end()
        seconds = time.monotonic() - began
    with open_store(store) as opened:
        stored = rows_and_points(opened)[1]
        assert opened.verify() == []
    assert (code, out) == (5, "")
    assert err.splitlines()[-1] == (
        f"privsweep: The head of the Ray cluster does not answer (Connection refused): {stored} of {points} "
        "points are stored; the same command resumes."
    )
    assert "Traceback" not in err
    with capsys.disabled():
        print(f"\nended {seconds:.0f} s after the {victim} was killed, with {stored} of {points} points")
    assert seconds < stretched(90)
    with RayCluster() as cluster:
        cluster.start_head(cpus=1)
        code, out, err = process(*arguments, cluster.address, environment=cluster.environment)
    assert code == 0, err
    assert json.loads(out)["computed"] == points - stored
    with open_store(store) as opened:
        assert rows_and_points(opened) == (points, points)
