"""Ray on this machine: only the processes that compute, which start without waiting for others."""

import subprocess
import sys
from pathlib import Path

import pytest

from tasks.ray_node import PORTS, free_port

STARTED = """
import psutil
from tasks import cluster
with cluster.started_here(workers=1):
    import ray
    from ray._private.node import Node
    assert Node.__name__ == "Node", "the change lasts as long as the start"
    print(ray.get(ray.remote(lambda: 6 * 7).remote()))
    for process in psutil.Process().children(recursive=True):
        print(*process.cmdline())
assert not psutil.Process().children(recursive=True)
"""


def test_a_port_is_not_one_that_a_connection_gets_by_chance() -> None:
    first, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert {free_port() for _ in range(50)} <= set(PORTS)
    assert max(PORTS) < max(first, 32768), "some machines give all ports to connections"


@pytest.mark.thorough
def test_ray_computes_without_dashboard_monitor_and_reader_of_logs_and_leaves_no_process() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STARTED], capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    answer, *commands = ran.stdout.splitlines()
    assert answer == "42"
    assert any("raylet" in command for command in commands)
    for part in ("dashboard.py", "monitor.py"):
        assert not any(word.endswith(part) for command in commands for word in command.split()), commands
