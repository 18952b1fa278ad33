"""A Prefect server for one run: on the loopback interface, and stopped when the run ends.

Prefect would start its own server, but that server survives a killed run forever, and Ctrl-C in a terminal
stops it before it can record the end of the flow.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import TextIO

from privcore.errors import ExitCode, PrivsweepError

START_SECONDS = 180.0  # its first start sets up a database, which takes 20 s on a busy machine
HEALTH_SECONDS = 5.0
_TRIES = 3
"""Between choosing a free port and listening on it, another process may take it: the server then ends."""
_COMMAND = "from tasks.parent_death import die_with; die_with({parent}); import uvicorn; uvicorn.main()"
_SETTINGS = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "DO_NOT_TRACK": "1",
}


class SchedulerError(PrivsweepError):
    """Prefect did not start, so nothing was computed."""

    exit_code = ExitCode.GONE


class LocksError(SchedulerError):
    """Files cannot be locked in the folder of Prefect's database; waiting does not help."""

    exit_code = ExitCode.MISUSE


@contextmanager
def own_server(home: Path) -> Iterator[str]:
    """Start a server and yield the address of its API; it is stopped at the end of the block.

    Args:
        home: Folder of its database and its log, shared by all runs on one store.

    Raises:
        SchedulerError: The server did not start; its log or the sentence says why.
    """
    home.mkdir(parents=True, exist_ok=True)
    log = home / "server.log"
    server = None
    try:
        with (home / "start.lock").open("w") as lock:
            _take(lock, home)  # two servers must not set up one database at once
            server, port = _started(home, log)
        yield f"http://127.0.0.1:{port}/api"
    finally:
        if server is not None:
            _stop(server)


def _take(lock: TextIO, home: Path) -> None:
    """Take a lock, which the kernel releases when its holder ends; wait for a limited time."""
    give_up = time.monotonic() + START_SECONDS
    while True:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise SchedulerError(
                    f"Another run has been starting a server in {home} for {START_SECONDS:g} s."
                ) from None
            time.sleep(0.1)
        except OSError as error:
            raise LocksError(
                f"Expected file locks for Prefect's database in {home}, got: {error.strerror}; set "
                "PREFECT_HOME to a folder on a local disk."
            ) from error
        else:
            return


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _started(home: Path, log: Path) -> "tuple[subprocess.Popen[bytes], int]":
    """Return a server that answers, and its port."""
    for _ in range(_TRIES):
        port = _free_port()
        server = _start(port, home, log)
        try:
            if _answers(server, port):
                return server, port
        except BaseException:
            _stop(server)
            raise
    raise SchedulerError(f"The Prefect server did not start; {log} may say why.")


def _start(port: int, home: Path, log: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", _COMMAND.format(parent=os.getpid())]
    command += ["--factory", "prefect.server.api.server:create_app", "--lifespan", "on"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    with log.open("w") as output:
        return subprocess.Popen(
            command,
            env=os.environ | _SETTINGS | {"PREFECT_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # so that Ctrl-C in a terminal does not reach the server
        )


def _answers(server: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait until the server answers and return True, or return False if it has ended."""
    local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    give_up = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < give_up:
        try:
            with local.open(f"http://127.0.0.1:{port}/api/health", timeout=HEALTH_SECONDS) as answer:
                if answer.status == 200:
                    return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    if server.poll() is None:
        raise SchedulerError(f"The Prefect server did not answer within {START_SECONDS:g} s.")
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
