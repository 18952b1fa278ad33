"""The Prefect server of a run: it answers only to its run, and starts on another port, or says why not."""

import errno
import fcntl
import json
import os
import pwd
import re
import shutil
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from flows.runs import orchestration, server
from flows.runs.plan import Plan
from flows.runs.ports import free_port
from flows.runs.progress import Pace
from privcore import PrivsweepError
from storage.place.located import CACHE_VARIABLE

SHARED = pytest.mark.xdist_group("own-server")
"""Mark of tests that ask the same server, which takes half a minute to set up its database."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.OwnServer]:
    """A server at work."""
    with server.own_server(tmp_path_factory.mktemp("own") / "home") as own:
        own.wait()
        yield own


def asked(own: server.OwnServer, password: str | None, host: str | None = None) -> httpx.Response:
    """Its answer to a question about all flow runs, with this password, sent to this host."""
    name, _, word = (password or "").partition(":")
    return httpx.post(
        f"{own.address}/flow_runs/filter",
        json={},
        auth=(name, word) if password else None,
        headers={"Host": host} if host else {},
        timeout=60,
        trust_env=False,
    )


@pytest.mark.thorough
@SHARED
def test_the_run_that_started_it_may_ask(own: server.OwnServer) -> None:
    answer = asked(own, own.password)
    assert (answer.status_code, answer.json()) == (200, [])


@pytest.mark.thorough
@SHARED
@pytest.mark.parametrize("password", [None, "privsweep:", "privsweep:" + 64 * "0", "admin:pass"])
def test_nobody_else_may_ask(own: server.OwnServer, password: str | None) -> None:
    assert asked(own, password).status_code == 401


@pytest.mark.thorough
@SHARED
@pytest.mark.parametrize("host", ["evil.example", "evil.example:4200", "localhost", "127.0.0.1.evil.example"])
def test_a_page_whose_name_points_here_is_refused_even_with_the_password(
    own: server.OwnServer, host: str
) -> None:
    """A browser names the host of the page, not the address to which that name points."""
    assert asked(own, own.password, host).status_code == 400
    health = httpx.get(f"{own.address}/health", headers={"Host": host}, timeout=60, trust_env=False)
    assert health.status_code == 400


@pytest.mark.thorough
@SHARED
@pytest.mark.parametrize(("word", "kind"), [("password", "auth_success"), (None, None), ("wrong", None)])
def test_events_are_taken_from_nobody_else(own: server.OwnServer, word: str | None, kind: str | None) -> None:
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import connect

    address = own.address.replace("http", "ws") + "/events/in"
    token = own.password if word == "password" else word

    def handshake() -> Any:
        with connect(address, subprotocols=["prefect"], proxy=None) as socket:  # type: ignore[list-item]
            socket.send(json.dumps({"type": "auth", "token": token}))
            return json.loads(socket.recv(timeout=60))["type"]

    if kind:
        assert handshake() == kind
    else:
        with pytest.raises((ConnectionClosed, InvalidStatus)):
            handshake()


@pytest.mark.thorough
@SHARED
def test_its_password_is_not_among_its_arguments_and_its_folder_is_private(own: server.OwnServer) -> None:
    assert own._process is not None
    assert not any(own.password.split(":")[1] in word for word in psutil.Process(own._process.pid).cmdline())
    assert own._home.stat().st_mode & 0o777 == 0o700
    assert not any(own.password.split(":")[1] in path.read_text() for path in own._home.glob("*.log"))


def test_every_server_has_a_password_of_its_own(tmp_path: Path) -> None:
    assert server.OwnServer(tmp_path).password != server.OwnServer(tmp_path).password


def test_the_state_of_prefect_next_to_a_store_is_closed_to_others(tmp_path: Path) -> None:
    store, folder = tmp_path / "store", tmp_path / ".prefect"
    assert orchestration._hidden_folder(store) == folder
    folder.chmod(0o755)
    (folder / "prefect.db").touch()
    assert orchestration._hidden_folder(store) == folder
    assert folder.stat().st_mode & 0o777 == 0o700, "an earlier release let others in"
    assert (folder / "prefect.db").exists(), "the history of earlier runs stays"


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which every user may write, as in /tmp."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def planted(folder: Path) -> None:
    """Let another user make a folder that everyone can read."""
    folder.mkdir(mode=0o755)
    (folder / "logging.yml").write_text("filters: {evil: {(): os.system, command: id}}")
    for path in (folder, folder / "logging.yml"):
        os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_folder_that_another_user_planted_is_not_the_state_of_prefect(shared: Path, tmp_path: Path) -> None:
    planted(shared / ".prefect")
    own = shared / f".prefect-{os.getuid()}"
    assert orchestration._hidden_folder(shared / "store") == own
    assert own.stat().st_mode & 0o777 == 0o700
    own.rmdir()
    planted(own)
    assert orchestration._hidden_folder(shared / "store") == tmp_path / "cache" / "prefect"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_settings_of_another_user_in_the_working_folder_are_refused(shared: Path) -> None:
    file = shared / ".env"
    file.write_text('PREFECT_LOGGING={"config_path": "evil.yml"}\n')
    orchestration._refuse_foreign_settings(file)
    os.chown(file, pwd.getpwnam("nobody").pw_uid, -1)
    with pytest.raises(PrivsweepError, match=r"\.env belongs to another user"):
        orchestration._refuse_foreign_settings(file)
    file.write_text("OTHER=1\n")
    orchestration._refuse_foreign_settings(file)
    orchestration._refuse_foreign_settings(shared / "missing")


def test_a_link_in_the_place_of_the_state_of_prefect_is_not_followed(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir(mode=0o755)
    (shared / ".prefect").symlink_to(tmp_path / "precious")
    assert orchestration._hidden_folder(shared / "store") == shared / f".prefect-{os.getuid()}"
    assert (tmp_path / "precious").stat().st_mode & 0o777 == 0o755


def test_the_state_of_prefect_is_not_where_others_can_rename_it(shared: Path, tmp_path: Path) -> None:
    shared.chmod(0o2775)
    assert orchestration._hidden_folder(shared / "store") == tmp_path / "cache" / "prefect"
    assert list(shared.iterdir()) == []


def test_without_a_private_folder_a_run_is_refused_in_one_sentence(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.chmod(0o777)
    (tmp_path / "cache").touch()
    monkeypatch.delenv("PREFECT_HOME")
    sentence = r"^Expected a folder for Prefect's state .* set PREFECT_HOME or PRIVSWEEP_CACHE to"
    with pytest.raises(server.HomeError, match=sentence) as refused:
        orchestration.under_prefect("sweep", Pace(Plan(total=0)), iter([]), shared / "store")
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("name", ["start.lock", "server.log"])
def test_the_files_of_a_server_are_not_written_through_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(server, "_COMMAND", "raise SystemExit('no {parent}')")
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match=name), server.own_server(tmp_path / "home"):
        pytest.fail("nothing started")
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.thorough
@SHARED
def test_a_port_that_somebody_else_took_is_replaced_by_another_one(
    own: server.OwnServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(own._home / "prefect.db", tmp_path)  # setting up another one takes long
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [int(taken.getsockname()[1])]
        monkeypatch.setattr(server, "free_port", lambda: ports.pop() if ports else free_port())
        monkeypatch.setattr(server, "HEALTH_SECONDS", 0.2)  # the socket above accepts, and never answers
        with server.own_server(tmp_path) as another:
            another.wait()
            with urllib.request.urlopen(f"{another.address}/health", timeout=30) as answer:
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
