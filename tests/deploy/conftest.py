"""Messages that arrive at a webhook on this machine."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.deploy.prefect_here import Told


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[Told, str]]:
    """The messages that arrive at a webhook on this machine, and its address."""
    texts: Told = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield texts, f"http://127.0.0.1:{server.server_port}/hook"
        server.shutdown()
