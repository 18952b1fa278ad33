"""Ray on this machine: only the processes that compute, which start without waiting for others."""

import subprocess
import sys

import pytest

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
