"""Ray's autoscaler, with its own provider of nodes on this machine: nodes come for a sweep, and go after it.

`ray.cluster_utils.AutoscalingCluster` starts the same processes, but it also stops all of Ray on the machine,
and reads a file that the package lacks.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ray.autoscaler._private.fake_multi_node.node_provider import FAKE_HEAD_NODE_ID

from storage import open_store
from tests.busy import stretched
from tests.flows.runs.test_faults import SLOW, rows_and_points
from tests.ray_cluster import PATIENCE, RayCluster

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("ray")]

Run = Callable[..., tuple[int, str, str]]

POINTS = 240
ENVIRONMENT = {
    "AUTOSCALER_UPDATE_INTERVAL_S": "1",
    "RAY_FAKE_CLUSTER": "1",
    "RAY_enable_autoscaler_v2": "1",
    "RAY_CLOUD_INSTANCE_ID": FAKE_HEAD_NODE_ID,
    "RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD_NODE_ID,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # all nodes listen on loopback
}
LEFT = """
import sys, time, ray
address, seconds = sys.argv[1:]
give_up = time.monotonic() + float(seconds)
ray.init(address=address, log_to_driver=False, logging_level=40)
while any(node["Alive"] and node["Resources"].get("CPU") for node in ray.nodes()):
    assert time.monotonic() < give_up, ray.nodes()
    time.sleep(0.5)
print(len(ray.nodes()))
"""


def configuration(address: str) -> dict[str, Any]:
    """A head that computes nothing, and nodes of one processor, which start when there is work."""
    commands = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")
    return {
        "cluster_name": "nodes-here",
        "max_workers": 2,
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": 0.1,
        "provider": {
            "type": "external",
            "module": "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider",
            "gcs_address": address,
            "launch_multiple": True,
            "head_node_id": FAKE_HEAD_NODE_ID,
        },
        "auth": {},
        "docker": {},
        "file_mounts": {},
        "cluster_synced_files": [],
        "file_mounts_sync_continuously": False,
        "rsync_exclude": [],
        "rsync_filter": [],
        "head_node_type": "ray.head.default",
        "available_node_types": {
            "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            "small": {
                "resources": {"CPU": 1, "object_store_memory": 100_000_000},
                "node_config": {},
                "min_workers": 0,
                "max_workers": 2,
            },
        },
        **{f"{name}_commands": [] for name in commands},
    }


@pytest.fixture
def cluster(folder: Path) -> Iterator[RayCluster]:
    with RayCluster(ENVIRONMENT | {"FAULTY_LOG": str(folder / "evaluations")}) as cluster:
        file = cluster.folder / "autoscaling.json"
        file.write_text(json.dumps(configuration(cluster.address)))
        cluster.start_head(0, f"--autoscaling-config={file}")
        cluster.wait_for_nodes(1)
        yield cluster


def test_nodes_come_for_a_sweep_and_go_after_it(cluster: RayCluster, folder: Path, process: Run) -> None:
    spec, store = folder / "scaled.toml", folder / "scaled"
    spec.write_text(SLOW.format(name="scaled", points=POINTS))
    address = ("--ray-address", cluster.address)
    code, out, err = process(
        "run", spec, "--store", store, "--json", *address, environment=cluster.environment
    )
    assert code == 0, err
    assert "Ray cluster of 0 nodes: code was sent to the nodes; no node has joined yet" in err.splitlines()
    assert json.loads(out)["computed"] == POINTS
    with open_store(store) as opened:
        assert rows_and_points(opened) == (POINTS, POINTS)
        assert opened.verify() == []
    assert len(set((folder / "evaluations").read_text().split())) == 2, "both nodes have worked"
    command = [sys.executable, "-c", LEFT, cluster.address, str(stretched(PATIENCE))]
    gone = subprocess.run(
        command, env=os.environ | cluster.environment, check=True, capture_output=True, text=True
    )
    assert gone.stdout.strip() == "3", "the head, and the two nodes that have left"
