"""A Prefect server for one run: on the loopback interface, and stopped when the run ends.

Prefect would start its own server, but that server survives a killed run forever, and Ctrl-C in a terminal
stops it before it can record the end of the flow. Ours answers only to the run that has its password.
"""

import os
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import TextIO

from flows.runs.ports import free_port
from privcore.errors import ExitCode, PrivsweepError
from storage.place.disk import without_links
from tasks import own_process

START_SECONDS = 180.0  # its first start sets up a database, which takes 20 s on a busy machine
HEALTH_SECONDS = 5.0
_TRIES = 3
"""Between choosing a free port and listening on it, another process may take it: the server then ends."""
_COMMAND = "from tasks.own_process import die_with; die_with({parent}); import uvicorn; uvicorn.main()"
_SETTINGS = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "DO_NOT_TRACK": "1",
}


class SchedulerError(PrivsweepError):
    """Prefect did not start; points that were finished meanwhile are stored."""

    exit_code = ExitCode.GONE


class LocksError(SchedulerError):
    """Files cannot be locked in the folder of Prefect's database; waiting does not help."""

    exit_code = ExitCode.MISUSE


class HomeError(SchedulerError):
    """No folder for Prefect's state is safe from other users; waiting does not help."""

    exit_code = ExitCode.MISUSE


@contextmanager
def own_server(home: Path) -> Iterator["OwnServer"]:
    """Start a server without waiting for it; it is stopped at the end of the block.

    Args:
        home: Folder of its database and its log, shared by all runs on one store.

    Raises:
        SchedulerError: Files cannot be locked in that folder.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    home.mkdir(mode=0o700, exist_ok=True)
    server = OwnServer(home)
    try:
        server.answers()
        yield server
    finally:
        server.stop()


class OwnServer:
    """A server that sets up its database while its owner does other work.

    All calls must be in the thread that ends last: the server is killed when the thread that started it ends.

    Attributes:
        password: Name and password that every request needs, separated by a colon; new for each server.
    """

    def __init__(self, home: Path) -> None:
        self.password = f"privsweep:{secrets.token_hex(32)}"
        self._home = home
        self._log = home / "server.log"
        self._lock: TextIO | None = None
        self._locked = self._answered = False
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._starts = 0
        self._give_up = time.monotonic() + START_SECONDS

    @property
    def address(self) -> str:
        """Address of its API."""
        return f"http://127.0.0.1:{self._port}/api"

    def answers(self) -> bool:
        """Return whether it answers now; start it, or start it again on another port.

        Raises:
            SchedulerError: It ended, or did not answer in time; its log or the sentence says why.
        """
        if self._answered:
            return True
        if not self._may_start():
            return False
        if self._process is None or self._process.poll() is not None:
            if self._starts == _TRIES:
                raise SchedulerError(f"The Prefect server did not start; {self._log} may say why.")
            self._starts += 1
            self._port = free_port()
            self._process = _start(self._port, self.password, self._home, self._log)
            self._give_up = time.monotonic() + START_SECONDS
            return False
        if _is_healthy(self.address):
            self._answered = True
            self._release()
        elif time.monotonic() > self._give_up:
            raise SchedulerError(f"The Prefect server did not answer within {START_SECONDS:g} s.")
        return self._answered

    def wait(self) -> None:
        """Wait until it answers; raise `SchedulerError` if it never does."""
        while not self.answers():
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it, if it was started."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._release()

    def _may_start(self) -> bool:
        """Return whether no other run is starting a server: two must not set up one database at once."""
        if self._locked:
            return True
        if self._lock is None:
            self._lock = open(self._home / "start.lock", "w", opener=without_links)  # noqa: SIM115
        try:
            flock(self._lock, LOCK_EX | LOCK_NB)  # the kernel releases it when its holder ends
        except BlockingIOError:
            if time.monotonic() > self._give_up:
                raise SchedulerError(
                    f"Another run has been starting a server in {self._home} for {START_SECONDS:g} s."
                ) from None
            return False
        except OSError as error:
            raise LocksError(
                f"Expected file locks for Prefect's database in {self._home}, got: {error.strerror}; set "
                "PREFECT_HOME to a folder on a local disk."
            ) from error
        self._locked = True
        return True

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _start(port: int, password: str, home: Path, log: Path) -> "subprocess.Popen[bytes]":
    command = own_process.command(_COMMAND.format(parent=os.getpid()))
    command += ["--factory", "flows.runs.guarded_server:app", "--lifespan", "on"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    command += ["--app-dir", own_process.own_folders()[0]]  # uvicorn's default is the working folder
    # Only the user can read the environment of a process; everyone can read its arguments.
    own = {"PREFECT_HOME": str(home.absolute()), "PREFECT_SERVER_API_AUTH_STRING": password}
    with open(log, "w", opener=without_links) as output:
        return subprocess.Popen(
            command,
            env=own_process.environment() | _SETTINGS | own,
            cwd=home,  # a file of the working folder, such as prefect.toml, would configure the server
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # so that Ctrl-C in a terminal does not reach the server
        )


def _is_healthy(address: str) -> bool:
    local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with local.open(f"{address}/health", timeout=HEALTH_SECONDS) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
