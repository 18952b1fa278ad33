"""The Prefect server of a run: it starts although somebody else took its port, or says why it does not."""

import errno
import fcntl
import os
import re
import socket
import urllib.request
from pathlib import Path

import pytest

from flows.runs import server


@pytest.mark.thorough
def test_a_port_that_somebody_else_took_is_replaced_by_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [int(taken.getsockname()[1])]
        free = server._free_port
        monkeypatch.setattr(server, "_free_port", lambda: ports.pop() if ports else free())
        monkeypatch.setattr(server, "HEALTH_SECONDS", 0.2)  # the socket above accepts, and never answers
        with server.own_server(tmp_path) as own:
            own.wait()
            with urllib.request.urlopen(f"{own.address}/health", timeout=30) as answer:
                assert answer.status == 200
            assert not ports


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """T14: NFS without locks; the store itself takes none."""

    def refuse(_file: object, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(server, "flock", refuse)
    sentence = rf"Expected file locks .* got: {os.strerror(number)}; set PREFECT_HOME to a folder on a local"
    with pytest.raises(server.SchedulerError, match=sentence), server.own_server(tmp_path):
        pytest.fail("nothing started")


def test_a_lock_that_is_held_for_ever_is_waited_for_as_long_as_a_start_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T14: the lock of a killed process is free; a process stuck at its start blocks no others."""
    monkeypatch.setattr(server, "START_SECONDS", 0.5)
    with (tmp_path / "start.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(server.SchedulerError, match="Another run"), server.own_server(tmp_path) as own:
            own.wait()


def test_nothing_in_the_store_takes_a_lock(repository: Path) -> None:
    """T14: therefore a lock cannot be stale, and a file system without locks is enough."""
    takers = {
        str(path.relative_to(repository))
        for package in ("storage", "tasks", "privcore", "flows")
        for path in (repository / package).rglob("*.py")
        if re.search(r"\b(flock|lockf|filelock|FileLock)\b", path.read_text())
    }
    assert takers == {"flows/runs/server.py", "tasks/cluster.py"}  # for Prefect's database, for Ray's folder


def test_a_server_that_ends_at_once_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_COMMAND", "raise SystemExit('no {parent}')")
    monkeypatch.setattr(server, "START_SECONDS", 1e6)  # a wait for the server would not end
    sentence = r"did not start; .*server\.log may say why\."
    with pytest.raises(server.SchedulerError, match=sentence), server.own_server(tmp_path) as own:
        own.wait()
    assert "no " in (tmp_path / "server.log").read_text()
