"""Debian's Firefox, headless and cut off from everything but the loopback interface.

Firefox itself speaks WebDriver BiDi over a socket on the loopback interface, so no driver is needed.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

PROGRAM = "firefox-esr"
PREFERENCES = {
    # No proxy listens there, and Firefox does not use it for the loopback interface.
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}
EVENTS = ("log.entryAdded", "network.beforeRequestSent")
PATIENCE = 60.0
"""Seconds to wait for the start, for a reply, and for an element."""


class Firefox:
    """A tab of Firefox, with the messages of its console and its requests.

    Attributes:
        complaints: Errors and warnings of the console.
        requested: Addresses that were requested.
    """

    def __init__(self, socket: Connection) -> None:
        self._socket, self._last = socket, 0
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self._send("session.new", capabilities={})
        self._send("session.subscribe", events=list(EVENTS))
        self._tab = self._send("browsingContext.getTree")["contexts"][0]["context"]

    def visit(self, address: str) -> None:
        """Load a page, even if only the part after # differs."""
        for url in ("about:blank", address):
            self._send("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def execute_async_script(self, script: str, *args: Any) -> Any:
        """Return the value that the script gives to its last argument, a function."""
        body = f"""async (given) => JSON.stringify(await new Promise((done) => {{
            (function () {{ {script} }}).apply(null, [...JSON.parse(given), done]);
        }}))"""
        found = self._send(
            "script.callFunction",
            functionDeclaration=body,
            arguments=[{"type": "string", "value": json.dumps(args)}],
            awaitPromise=True,
            target={"context": self._tab},
        )
        assert found["type"] == "success", found["exceptionDetails"]["text"]
        return json.loads(found["result"]["value"])

    def text(self, selector: str) -> str:
        """Return the text of the element of a selector, once the page shows it."""
        script = """
            const [selector, done] = arguments;
            const found = document.querySelector(selector);
            done(found?.checkVisibility() ? found.innerText : "");
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := self.execute_async_script(script, selector):
                return str(found)
            time.sleep(0.05)
        raise AssertionError(f"The page does not show {selector}.")

    def _send(self, method: str, **params: Any) -> Any:
        """Send a command, and return its result; events that come before it are kept."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message["type"] == "event":
                self._keep(message["method"], message["params"])
            elif message["id"] == self._last:
                assert message["type"] == "success", message
                return message["result"]

    def _keep(self, event: str, params: Any) -> None:
        if event == "network.beforeRequestSent":
            self.requested.append(params["request"]["url"])
        elif params["level"] in ("error", "warn"):
            self.complaints.append(params["text"])


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """A browser with a fresh profile; without the program, a test is skipped."""
    program = shutil.which(PROGRAM)
    if program is None:
        pytest.skip(f"Debian's package {PROGRAM} is not installed.")
    profile.mkdir()
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    command = [
        program,
        "--headless",
        "--no-remote",
        "--remote-debugging-port",
        "0",
        "--profile",
        str(profile),
    ]
    log = profile / "stderr.txt"
    with log.open("wb") as errors:
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        with connect(f"{_address(running, log)}/session", max_size=None, proxy=None) as socket:
            yield Firefox(socket)
    finally:
        running.terminate()
        running.wait(PATIENCE)


def _address(running: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address of the socket, which Firefox prints."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and running.poll() is None:
        if found := re.search(r"BiDi listening on (ws://\S+)", log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"Firefox did not start: {log.read_text(errors='replace')[-500:]}")
