"""The page with live computation: its answers and its errors."""

import asyncio
import http.client
import itertools
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from flows.page import live
from flows.page.clerk import KEPT_BYTES, Clerk
from flows.page.impatient import LOOKS, READING, SILENCE, Impatient
from flows.page.live import BusyError, Desk, question
from flows.page.serve import application
from flows.printing import rounded_up
from privcore import LimitError, PrivsweepError, Status, evaluate, find, find_problem
from privcore.point import Point
from tests.flows.page.browser import click, wait

pytestmark = [pytest.mark.sampled(5), pytest.mark.xdist_group("page")]

FIELDS = {"sigma": 1.23, "delta": 1e-5}
BODY = json.dumps({"problem": "unamplified-epsilon", "fields": FIELDS}).encode()
JSON = {"Content-Type": "application/json"}
MIXED = b"mixed(.5," * 500 + b"uniform(2)" + b")" * 500
LONG = {"sigma": 1.0, "steps": 1_000_000, "delta": 1e-6, "participations": 50, "epochs": 100}
"""Fields of an allocation that take longer than a question may."""
SENT_AHEAD = 30e6
"""Bytes that the server may need for 200 answers on a connection; it needed 100 MB as it read on for each."""


@pytest.fixture(scope="module")
def server(
    store: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`privsweep serve` in a process of its own, and its port."""
    command = [sys.executable, "-m", "flows.cli", "serve", "--store", str(store), "--port", "0", "--json"]
    scratch = tmp_path_factory.mktemp("scratch")
    environment = os.environ | {"TMPDIR": str(scratch)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        yield process, int(address.rstrip("/").rpartition(":")[2])
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert list(scratch.glob("privsweep-*")) == []
    finally:
        process.kill()
        process.communicate()


def asked(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body=body, headers=named)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def test_it_computes_what_the_command_line_would(server: tuple[Any, int]) -> None:
    status, content = asked(server[1], "POST", "/api/ask", BODY, **JSON)
    problem = find_problem("unamplified-epsilon").from_fields(FIELDS)
    truth = evaluate(Point(problem=problem, method=find("unamplified.exact")()))
    told = json.loads(content)
    assert (status, told["status"]) == (200, "ok")
    assert (told["lower"], told["upper"]) == (truth.lower, truth.upper)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("expected", "path", "body", "headers"),
    [
        (415, "/api/ask", BODY, {"Content-Type": "text/plain"}),
        (413, "/api/ask", b" " * 20_000, JSON),
        (422, "/api/ask", b"[]", JSON),
        (422, "/api/ask", BODY.replace(b"1.23", b"NaN"), JSON),
        (403, "/api/ask", BODY, JSON | {"Host": "evil.example"}),
        (403, "/api/ask", BODY, JSON | {"Origin": "http://evil.example"}),
        (405, "/catalogue.json", BODY, JSON),
    ],
)
def test_it_refuses_what_is_no_question_from_its_own_page(
    server: tuple[Any, int], expected: int, path: str, body: bytes, headers: dict[str, str]
) -> None:
    assert asked(server[1], "POST", path, body, **headers)[0] == expected


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/data/", "/docs"]
)
def test_it_serves_no_file_but_those_of_the_page(server: tuple[Any, int], path: str) -> None:
    assert asked(server[1], "GET", path)[0] == 404
    assert asked(server[1], "GET", "/catalogue.json")[0] == 200


def test_it_listens_on_the_loopback_interface_only(server: tuple[subprocess.Popen[str], int]) -> None:
    process, port = server
    listening = [
        c.laddr for c in psutil.Process(process.pid).net_connections() if c.status == psutil.CONN_LISTEN
    ]
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", port)]


@pytest.mark.thorough
def test_the_button_computes_what_is_not_stored(browser: webdriver.Chrome, server: tuple[Any, int]) -> None:
    browser.get("about:blank")
    browser.get(f"http://127.0.0.1:{server[1]}/#problem=unamplified-epsilon&sigma=1.23&delta=1e-5&steps=1")
    click(browser, "#compute")
    problem = find_problem("unamplified-epsilon").from_fields(FIELDS)
    truth = evaluate(Point(problem=problem, method=find("unamplified.exact")()))
    said = wait(browser, "#live").text
    assert f"{rounded_up(truth.upper)}] proved, computed now" in said
    browser.find_element(By.ID, "exact-sigma").send_keys("4")
    assert browser.find_element(By.ID, "computed").text == ""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 9_000,
        b'{"problem": "unamplified-epsilon"}',
        b'{"problem": "no-such", "fields": {}}',
        b'{"problem": ["unamplified-epsilon"], "fields": {}}',
        b'{"problem": "unamplified-epsilon", "fields": {"sigma": 1, "delta": 2}}',
        b'{"problem": "label-advantage", "fields": {"mechanism": "llp", "prior": "column(/etc/passwd,x)"}}',
        b'{"problem": "unamplified-delta", "fields": {"sigma": 1, "epsilon": 1e-400}}',
        b'{"problem": "label-advantage", "fields": {"mechanism": "rr", "prior": 1, "label_epsilon": 1e400}}',
        b'{"problem": "membership-advantage", "fields": {"records": 9, "law": "%s"}}' % MIXED,
    ],
)
def test_what_is_no_question_is_refused_in_one_sentence(body: bytes) -> None:
    with pytest.raises(PrivsweepError, match=r"^[A-Z][^\n]*[.?]$"):
        question(body)


@pytest.mark.parametrize("word", ["column", "certain"])
def test_no_question_opens_a_file(word: str, tmp_path: Path) -> None:
    (file := tmp_path / "eta.csv").write_text("eta\n0\n1\n")
    fields = {"mechanism": "llp", "bag_size": 2, "prior": f"{word}({file},eta)"}
    with pytest.raises(PrivsweepError, match="which only the command line reads"):
        question(json.dumps({"problem": "label-advantage", "fields": fields}).encode())


def test_a_question_ends_when_its_time_is_over() -> None:
    body = b'{"problem": "allocation-epsilon", "fields": {"sigma": 1, "steps": 1000, "delta": 1e-6}}'
    with Desk(seconds=1e-6) as desk:
        told = desk.answer(body)
    assert told["status"] == Status.TIMEOUT


def test_a_desk_that_is_stopped_does_not_wait_for_what_it_computes() -> None:
    body = b'{"problem": "allocation-epsilon", "fields": %s}' % json.dumps(LONG).encode()
    said: list[object] = []

    def answered(desk: Desk) -> None:
        try:
            said.append(desk.answer(body)["status"])
        except PrivsweepError as error:
            said.append(str(error))

    with Desk() as desk:
        threads = [threading.Thread(target=answered, args=(desk,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        assert said == []
    for thread in threads:
        thread.join()
    assert len(said) == 3
    assert Status.OK not in said


def test_a_browser_that_goes_away_amid_its_question_is_no_error(tmp_path: Path) -> None:
    headers = [(b"host", b"127.0.0.1:1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/api/ask", "headers": headers, "query_string": b""}

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def nobody(_: object) -> None:
        """Hear nothing."""

    with Desk() as desk:
        asyncio.run(application(tmp_path, desk, 1)(scope, gone, nobody))


def test_only_so_many_questions_are_taken_in_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PER_MINUTE", 3)
    with Desk() as desk:
        for _ in range(3):
            with pytest.raises(PrivsweepError, match="Expected JSON"):
                desk.answer(b"{")
        with pytest.raises(BusyError, match="at most 3 questions a minute"):
            desk.answer(b"{")


def test_only_so_many_questions_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WAITING", 0)
    goes_on, begun = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> Any:
        begun.set()
        goes_on.wait(20)
        raise PrivsweepError("It was enough.")

    def answered(desk: Desk) -> None:
        with suppress(PrivsweepError):
            desk.answer(BODY)

    monkeypatch.setattr(Clerk, "answer", slow)
    with Desk() as desk:
        first = threading.Thread(target=answered, args=(desk,))
        first.start()
        assert begun.wait(20)
        with pytest.raises(BusyError, match="are waiting"):
            desk.answer(BODY)
        goes_on.set()
        first.join()


def test_a_port_that_is_taken_is_a_sentence(server: tuple[Any, int], store: Path) -> None:
    command = [sys.executable, "-m", "flows.cli", "serve", "--store", str(store), "--port", str(server[1])]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ)
    )
    assert done.returncode == 2
    assert done.stderr == f"privsweep: Expected a free port, got {server[1]}: address already in use.\n"


# ------------------------------------------------------------------------------ many clients, large questions


def status_of(connection: socket.socket, port: int) -> bytes:
    """The first line of the answer to a request on an open connection, whose rest is read, too."""
    connection.sendall(f"GET /index.html HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    reply = http.client.HTTPResponse(connection)
    reply.begin()
    reply.read()
    return str(reply.status).encode()


def test_two_hundred_idle_clients_and_fifty_busy_ones_are_served(server: tuple[Any, int]) -> None:
    port = server[1]
    with ExitStack() as stack:

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))

        idle = [connected() for _ in range(200)]
        busy = [connected() for _ in range(50)]
        assert {status_of(each, port) for _ in range(10) for each in busy} == {b"200"}
        assert status_of(idle[0], port) == b"200"


@contextmanager
def serving(store: Path, soft: int, hard: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server with these limits of open files, and its port; its errors are a pipe."""
    command = [sys.executable, "-m", "flows.cli", "serve", "--store", str(store), "--port", "0", "--json"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),  # noqa: PLW1509
    )
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        yield process, int(address.rstrip("/").rpartition(":")[2])
    finally:
        process.terminate()
        process.communicate()


def test_a_low_soft_limit_of_open_files_is_raised_for_many_clients(store: Path) -> None:
    """The soft limit of some systems is 256; half of the requests failed, and errors filled the terminal."""
    with serving(store, 256, 4096) as server:
        test_two_hundred_idle_clients_and_fifty_busy_ones_are_served(server)


@pytest.mark.thorough
def test_a_low_hard_limit_of_open_files_leaves_fewer_connections_and_no_errors(store: Path) -> None:
    with serving(store, 256, 256) as (process, port):
        with ExitStack() as stack:
            many = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(400)]
            for each in many:
                stack.enter_context(each)
            time.sleep(SILENCE + SILENCE / LOOKS)
        assert asked(port, "GET", "/index.html")[0] == 200
        process.terminate()
        assert process.communicate()[1] == ""


def test_a_limit_of_open_files_that_no_browser_can_use_is_a_sentence(store: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", "serve", "--store", str(store), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (105, 105)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "privsweep: Expected a limit of at least 130 open files (`ulimit -n`), got 105.\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("upgrade", [b"", b"Connection: upgrade\r\nUpgrade: x\r\n"], ids=["plain", "upgrade"])
def test_requests_sent_ahead_do_not_fill_the_memory(
    server: tuple[subprocess.Popen[str], int], upgrade: bytes
) -> None:
    process, port = psutil.Process(server[0].pid), server[1]
    requests = (b"GET /page.css HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (port, upgrade)) * 10_000
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        status_of(connection, port)
        connection.setblocking(False)
        before, answers, left = process.memory_info().rss, 0, requests
        while answers < 200:
            readable, writable, _ = select.select([connection], [connection], [], 60)
            assert readable or writable, "neither reads nor answers"
            if writable:
                left = left[connection.send(left) :] or requests
            if readable:
                got = connection.recv(1 << 20)
                assert got, "closed by the server"
                answers += got.count(b"HTTP/1.1 200")
        assert process.memory_info().rss - before < SENT_AHEAD


def test_requests_sent_ahead_are_answered_one_after_another(server: tuple[Any, int]) -> None:
    host = b"Host: 127.0.0.1:%d\r\n" % server[1]
    unread = b"POST /api/ask HTTP/1.1\r\n%sContent-Length: 9000\r\n\r\n" % host + b" " * 9000
    whole = b"GET /page.css HTTP/1.1\r\n" + host + b"Accept: %s\r\n\r\n" % (b"x" * 9000)
    last = b"GET /nothing HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server[1]), timeout=60) as connection:
        sender = threading.Thread(target=connection.sendall, args=((unread + whole) * 100 + last,))
        sender.start()
        answers = b"".join(iter(lambda: connection.recv(1 << 20), b""))
        sender.join()
    assert re.findall(rb"HTTP/1\.1 (\d+)", answers) == [b"415", b"200"] * 100 + [b"404"]


@pytest.mark.thorough
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHos", b"POST"], ids=["nothing", "half", "word"])
def test_a_client_that_falls_silent_is_shown_out(server: tuple[Any, int], sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server[1]), timeout=6 * SILENCE) as silent:
        silent.sendall(sent)
        with suppress(ConnectionResetError):
            assert silent.recv(1) == b"", "closed by the server, without an answer"


def looks_until_closed(answers: Iterator[object]) -> int | None:
    """The looks after which a client is shown out who reads a byte between two looks, or None."""
    connection = Impatient.__new__(Impatient)
    connection.loop = Mock()
    connection.transport = Mock()
    sizes = itertools.count(10**6, -1)
    connection.transport.get_write_buffer_size = lambda: next(sizes)
    for look in range(1, 100):
        connection.cycle = next(answers)  # type: ignore[assignment]
        connection._looked()
        if connection.transport.abort.called:
            return look
    return None


def test_a_client_that_reads_an_answer_too_slowly_is_shown_out() -> None:
    answer = Mock(response_complete=False)
    assert looks_until_closed(itertools.repeat(answer)) == LOOKS * READING / SILENCE + 1
    assert looks_until_closed(Mock(response_complete=False) for _ in itertools.count()) is None


@pytest.mark.thorough
def test_half_a_question_is_refused_after_a_while(server: tuple[Any, int]) -> None:
    head = f"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1:{server[1]}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server[1]), timeout=6 * SILENCE) as silent:
        silent.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert silent.recv(12) == b"HTTP/1.1 408"


@pytest.mark.thorough
def test_no_process_keeps_the_memory_of_large_questions() -> None:
    me = psutil.Process()
    others = set(me.children(recursive=True))
    with Desk() as desk:
        before = me.memory_info().rss
        for k in range(3):
            fields = {"law": f"zipf(1.{k + 1},10000000)", "records": 1000}
            content = desk.answer(json.dumps({"problem": "membership-advantage", "fields": fields}).encode())
            assert content["status"] == Status.OK
            assert me.memory_info().rss - before < KEPT_BYTES / 10
            ours = set(me.children(recursive=True)) - others
            assert sum(each.memory_info().rss for each in ours) < 2 * KEPT_BYTES


@pytest.mark.thorough
def test_a_process_that_stalls_is_ended_after_its_time_and_the_next_question_is_answered() -> None:
    me = psutil.Process()
    others = set(me.children(recursive=True))
    with Desk(seconds=10.0) as desk:
        assert desk.answer(BODY)["status"] == Status.OK
        for process in set(me.children(recursive=True)) - others:
            process.suspend()
        with pytest.raises(LimitError, match=r"took longer than 10 s"):
            desk.answer(BODY)
        assert desk.answer(BODY)["status"] == Status.OK
