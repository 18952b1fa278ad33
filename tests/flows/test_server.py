"""The Prefect server of a run: it starts although somebody else took its port, or says why it does not."""

import socket
import time
import urllib.request
from pathlib import Path

import pytest

from flows import server


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
        with server.own_server(tmp_path) as address:
            with urllib.request.urlopen(f"{address}/health", timeout=30) as answer:
                assert answer.status == 200
            assert not ports


def test_a_server_that_ends_at_once_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_COMMAND", "raise SystemExit('no {parent}')")
    started = time.monotonic()
    sentence = r"did not start; .*server\.log may say why\."
    with pytest.raises(server.SchedulerError, match=sentence), server.own_server(tmp_path):
        pytest.fail("nothing started")
    assert time.monotonic() - started < 60.0
    assert "no " in (tmp_path / "server.log").read_text()
