"""`privsweep serve`: the page with live computation, on the loopback interface only."""

import asyncio
import os
import socket
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from flows.page.build import build
from flows.page.connections import connections
from flows.page.impatient import SILENCE, Impatient
from flows.page.live import LARGEST, BusyError, Desk
from flows.printing import as_json
from flows.runs.signals import signals_interrupt
from privcore import DomainError, PrivsweepError
from storage import Store

HOST = "127.0.0.1"
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def application(folder: Path, desk: Desk, port: int) -> FastAPI:
    """Return the application: the files of a page, and `POST /api/ask`.

    Args:
        folder: The page.
        desk: The desk that answers questions.
        port: Port of the server; requests for any other host are rejected.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    @app.middleware("http")
    async def own_requests_only(
        request: Request, answer: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Reject requests that another page makes a browser send, for another host or from another origin."""
        origin = request.headers.get("origin")
        if request.headers.get("host") not in hosts or (origin and origin.partition("//")[2] not in hosts):
            return _refused(403, f"Expected a request to {HOST}:{port} from its own page.")
        response = await answer(request)
        response.headers.update(HEADERS)
        return response

    @app.post("/api/ask")
    async def asked(request: Request) -> Response:
        """Answer one question."""
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _refused(415, "Expected JSON.")
        try:
            body = await _body(request)
        except _BodyError as error:
            return _refused(error.status, str(error))
        try:
            content = await run_in_threadpool(desk.answer, body)
        except BusyError as error:
            return _refused(429, str(error))
        except PrivsweepError as error:
            return _refused(422, str(error))
        return Response(as_json(content), media_type="application/json")

    app.mount("/", StaticFiles(directory=folder, html=True))
    return app


class _BodyError(Exception):
    """The body of a request is too long, or did not arrive."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def _body(request: Request) -> bytes:
    """Return the body of a request."""
    body = b""
    try:
        async with asyncio.timeout(SILENCE):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST:
                    raise _BodyError(413, f"Expected a question of at most {LARGEST} bytes.")
    except TimeoutError:
        raise _BodyError(408, f"Expected the whole question within {SILENCE:g} s.") from None
    except ClientDisconnect:
        raise _BodyError(400, "Expected the whole question.") from None  # not received
    return body


def _refused(status: int, sentence: str) -> Response:
    return Response(as_json({"error": sentence}), status_code=status, media_type="application/json")


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise DomainError(f"Expected a free port, got {port}: {reason}.") from None


class _Server(uvicorn.Server):
    """A server that says when it accepts requests, and stops computing when it exits."""

    def __init__(self, settings: uvicorn.Config, desk: Desk, ready: Callable[[], None]) -> None:
        super().__init__(settings)
        self._desk, self._ready = desk, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept requests; from now on, Ctrl-C ends the server in good order."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the computation, then exit."""
        self._desk.stop()
        super().handle_exit(sig, frame)


def serve(store: Store, port: int, ready: Callable[[str], None]) -> None:
    """Build the page and serve it until Ctrl-C or SIGTERM.

    Args:
        store: The store of the answers.
        port: Port to listen on; 0 chooses a free port.
        ready: Called with the address once requests are accepted.

    Raises:
        DomainError: The port is taken, or too few files may be open.
    """
    most = connections()
    with (
        signals_interrupt(),
        _listening(port) as listening,
        tempfile.TemporaryDirectory(prefix="privsweep-page-") as scratch,
        Desk() as desk,
    ):
        folder = Path(scratch) / "page"
        build(store, folder, live=True)
        taken = listening.getsockname()[1]
        settings = uvicorn.Config(
            application(folder, desk, taken),
            log_level="warning",
            access_log=False,
            http=Impatient,
            limit_concurrency=most + 1,  # from this number on, the library refuses
            backlog=most,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
            server_header=False,
        )
        address = f"http://{HOST}:{taken}/"
        with suppress(KeyboardInterrupt):  # the usual end
            _Server(settings, desk, lambda: ready(address)).run(sockets=[listening])
