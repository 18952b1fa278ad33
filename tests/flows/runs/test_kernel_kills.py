"""Points that the kernel ends for lack of memory, in a control group with little memory."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import open_store
from tests.flows.conftest import SCRIPT

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("ray")]

ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
SWEEP = """
name = "filling"
[[grid]]
problem = "unamplified-epsilon"
methods = [{name = "faulty.slow", seconds = 1}, {name = "faulty.filling", seconds = 2}]
product = {sigma = [1, 2, 3], delta = 1e-5}
"""  # a point of the second method takes 1.5e9 bytes


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A control group with this much memory."""
    first = (
        Path("/sys/fs/cgroup/memory") if Path("/sys/fs/cgroup/memory").exists() else Path("/sys/fs/cgroup")
    )
    group = first / f"privsweep-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if first.name == "memory" else "memory.max")).write_text(
            str(int(request.param))
        )
    except OSError:
        pytest.skip("this machine does not allow control groups")
    yield group
    group.rmdir()


def kills(group: Path) -> int:
    """Number of processes of the group that the kernel has ended."""
    (file,) = [*group.glob("memory.oom_control"), *group.glob("memory.events")]
    return int(re.findall(r"^oom_kill (\d+)$", file.read_text(), re.MULTILINE)[0])


@pytest.mark.parametrize(
    ("group", "engine", "statuses"),
    [
        pytest.param(1.2e9, "serial", {"ok": 3, "out_of_memory": 3}, id="too little for a point"),
        pytest.param(1.9e9, "ray", {"ok": 3, "out_of_memory": 3}, id="too little for a point, on Ray"),
        pytest.param(3.4e9, "ray", {"ok": 6}, id="enough for one point at a time"),
    ],
    indirect=["group"],
)
def test_they_are_computed_again_with_more_room_and_are_out_of_memory_only_alone(
    group: Path, engine: str, statuses: dict[str, int], folder: Path, start: Callable[..., Any]
) -> None:
    (folder / "filling.toml").write_text(SWEEP)
    store = folder / f"filling-{engine}-{len(statuses)}"
    words = ("run", "filling.toml", "--engine", engine, "--store", store, "--workers", 2, "--json")
    code, out, err = start(*words, program=["sh", "-c", ENTER, group, sys.executable, SCRIPT]).end()
    assert json.loads(out)["statuses"] == statuses, err
    assert code == (0 if len(statuses) == 1 else 6)
    assert kills(group) >= len(statuses)
    with open_store(store) as opened:
        assert {row["detail"] for row in opened.sql("select detail from failures").to_pylist()} <= {
            "The kernel ended its process for lack of memory."
        }
        assert opened.verify() == []
