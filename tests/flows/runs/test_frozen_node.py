"""A node that is alive for Ray and computes nothing: its batches are computed elsewhere."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage import open_store
from tests.flows.conftest import SUPPORT
from tests.flows.runs.test_faults import SLOW, rows_and_points, wait_for_parts
from tests.ray_cluster import RayCluster

pytestmark = pytest.mark.soak


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    """A head and a node with a processor each."""
    with RayCluster({"PYTHONPATH": str(SUPPORT)}) as cluster:
        cluster.start_head(cpus=1)
        yield cluster


@pytest.mark.parametrize("frozen", ["raylet and workers", "all"])
def test_a_frozen_node_does_not_hang_a_run(
    frozen: str, cluster: RayCluster, folder: Path, start: Callable[..., Any]
) -> None:
    node = cluster.start_node(cpus=1)
    cluster.wait_for_nodes(2)
    spec, store = folder / "frozen.toml", folder / f"frozen-{frozen}"
    spec.write_text(SLOW.format(name="frozen", points=40).replace("0.1", "1.0"))
    words = ("run", spec, "--engine", "ray", "--store", store, "--json", "--ray-address", cluster.address)
    running = start(*words, environment=cluster.environment)
    wait_for_parts(store, 5, running)
    for each in psutil.Process(node.pid).children(recursive=True):
        if frozen == "all" or each.name() == "raylet" or each.name().startswith("ray::faulty"):
            each.suspend()
    code, out, err = running.end(timeout=300)
    assert code == 0, err
    report = json.loads(out)
    assert (report["computed"], report["statuses"]) == (40, {"ok": 40})
    with open_store(store) as opened:
        assert rows_and_points(opened) == (40, 40)
