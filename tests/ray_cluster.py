"""A Ray cluster of several nodes on this machine: heads and nodes are processes that a test may kill."""

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from flows.runs.ports import free_port
from tests.busy import stretched

TOKEN = "a" * 64
START = """
from ray._private import services
services.get_node_ip_address = lambda address=None: '127.0.0.1'  # else that of the machine
from ray.scripts.scripts import main
main()
"""
JOINED = """
import sys, time, ray
address, number, seconds = sys.argv[1:]
give_up = time.monotonic() + float(seconds)
ray.init(address=address, log_to_driver=False, logging_level=40)
while sum(node["Alive"] for node in ray.nodes()) < int(number):
    assert time.monotonic() < give_up, ray.nodes()
    time.sleep(0.2)
"""
PATIENCE = 90.0  # seconds for a head to listen, on a busy machine


class RayCluster:
    """Nodes in sessions of their own, with a token; used in a `with` block, which ends all of them."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self._environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_USAGE_STATS_ENABLED": "0",
            **(environment or {}),
        }
        self.folder = Path(tempfile.mkdtemp(prefix="psc-", dir="/tmp"))
        self.address = f"127.0.0.1:{free_port()}"
        self.head: subprocess.Popen[bytes] | None = None
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        """Environment of a process that uses the cluster; it stays on loopback."""
        loopback = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, **loopback}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            error.add_note(self.printed())
        for process in self._started:
            self.kill(process)
        for member in psutil.process_iter(["cmdline"]):  # agents that have outlived their raylet
            if any(str(self.folder) in word for word in member.info["cmdline"] or []):
                with suppress(psutil.NoSuchProcess):
                    member.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_head(self, cpus: int, *more: str) -> None:
        """Start the head with its own node, and wait until it listens; `more` are options of `ray start`."""
        host, port = self.address.split(":")
        options = ["--head", f"--port={port}", f"--temp-dir={self.folder}", "--include-dashboard=false"]
        self.head = self._start([*options, f"--num-cpus={cpus}", *more])
        give_up = time.monotonic() + stretched(PATIENCE)
        while time.monotonic() < give_up and self.head.poll() is None:
            with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
                return
            time.sleep(0.2)
        raise AssertionError((self.folder / "0.log").read_text())

    def start_node(
        self,
        cpus: int,
        python: Path = Path(sys.executable),
        under: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """Start one more node, with another interpreter or under another command if need be."""
        options = [f"--address={self.address}", f"--num-cpus={cpus}"]
        return self._start(options, python, under)

    def wait_for_nodes(self, number: int) -> None:
        """Wait until this many nodes have joined."""
        seconds = stretched(PATIENCE)
        command = [sys.executable, "-c", JOINED, self.address, str(number), str(seconds)]
        subprocess.run(command, env=os.environ | self.environment, check=True, capture_output=True)

    def printed(self) -> str:
        """Return the exit code and the last lines of every node, for the report of a failed test."""
        ends = []
        for number, process in enumerate(self._started):
            lines = (self.folder / f"{number}.log").read_text(errors="replace").splitlines()
            ends += [f"node {number}, exit code {process.poll()}:", *lines[-20:]]
        return "\n".join(ends)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a node with all of its processes, as a machine that loses its power."""
        with suppress(psutil.NoSuchProcess):
            top = psutil.Process(process.pid)
            for member in [*top.children(recursive=True), top]:
                with suppress(psutil.NoSuchProcess):
                    member.kill()
        process.wait()

    def _start(
        self,
        options: Sequence[str],
        python: Path = Path(sys.executable),
        under: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        command = [*under, str(python), "-c", START, "start", "--block", *options]
        command += ["--node-ip-address=127.0.0.1", "--object-store-memory=100000000"]
        environment = dict(self._environment)
        if python != Path(sys.executable):
            environment.pop("PYTHONPATH", None)
        with (self.folder / f"{len(self._started)}.log").open("w") as log:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._started.append(process)
        return process


def interpreter_without(names: Sequence[str], folder: Path) -> Path:
    """Return an interpreter with all packages of ours but some, whose entries begin with these names."""
    packages = Path(sysconfig.get_path("purelib"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    copy = folder / "venv" / "lib" / version / "site-packages"
    copy.mkdir(parents=True)
    for entry in packages.iterdir():
        if not entry.name.startswith(tuple(names)):
            (copy / entry.name).symlink_to(entry)
    base = Path(sys.executable).resolve()
    (folder / "venv" / "bin").mkdir()
    python = folder / "venv" / "bin" / "python"
    python.symlink_to(base)
    (folder / "venv" / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n"
    )
    return python
