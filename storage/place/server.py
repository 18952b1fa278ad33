"""The server of a bucket: connections to it, its patience, and its errors as one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.client import HTTPException
from os import getpid
from threading import Thread
from typing import Any

from storage.errors import StoreError

PATIENCE = 10.0  # seconds for the whole first answer of a server
WAIT_SECONDS = 180.0  # for an answer with all tries; a server that stalls is given up earlier
_SLOWEST = 20_000.0  # bytes that are sent or received in a second
_FIRST_BYTES = 65536  # of an answer whose end is not awaited
_TAKEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")  # some servers send numbers only


def connected(endpoint: str) -> Any:
    """Return a connection to the server at an endpoint.

    Args:
        endpoint: Address of the server, or "" for the server that the environment names.

    Raises:
        StoreError: The package s3fs is not installed.
    """
    return _connected(endpoint, getpid())


@cache
def _connected(endpoint: str, _process: int) -> Any:
    """Return a connection for one process, since a connection does not survive a fork."""
    try:
        from s3fs import S3FileSystem
    except ImportError as error:
        raise StoreError("A store in a bucket needs s3fs: pip install 'privsweep[s3]'.") from error
    server = S3FileSystem(endpoint_url=endpoint or None, use_listings_cache=False, skip_instance_cache=True)
    server.retries = 2  # each makes five attempts, and a server that stalls delays every one of them
    return server


@cache
def check_answer(endpoint: str) -> None:
    """Raise an error if a server accepts no connection or sends no whole answer in time; any answer will do.

    The driver would try ten times, which takes minutes, as is right only in the middle of a sweep, and would
    read for as long as a byte arrives now and then. Servers of AWS are not asked.

    Args:
        endpoint: Address of the server, or "" for a server that need not be asked.

    Raises:
        StoreError: The server is silent, or too slow.
    """
    if not endpoint or endpoint.endswith(".amazonaws.com"):
        return
    late: list[bool] = []
    # The limit of a socket is for each of its reads, so the whole is timed from outside.
    asked = Thread(target=lambda: late.append(_is_late(endpoint)), daemon=True)
    asked.start()
    asked.join(PATIENCE)
    if late != [False]:
        raise StoreError(f"The server {endpoint} did not answer within {PATIENCE:g} s.")


def _is_late(endpoint: str) -> bool:
    """Return whether a server stays silent; read its answer, or the begin of a long one."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        try:
            answer = urlopen(endpoint, timeout=PATIENCE)
        except HTTPError as error:
            answer = error
        with answer:
            answer.read(_FIRST_BYTES)
    except OSError as error:
        return isinstance(error, TimeoutError) or isinstance(getattr(error, "reason", None), TimeoutError)
    except (ValueError, HTTPException):  # the driver names the mistake
        pass
    return False


def longest(size: int = 0) -> float:
    """Return the seconds after which a request is given up, although bytes may still arrive.

    Args:
        size: Bytes that are sent or received, beyond those of a listing.
    """
    return WAIT_SECONDS + size / _SLOWEST


@contextmanager
def asking(endpoint: str, action: str, place: str) -> Iterator[Any]:
    """Yield a connection to the server at an endpoint; turn its errors into one sentence.

    Args:
        endpoint: Address of the server, or "" for the server that the environment names.
        action: Verb for the error message, for example `read`.
        place: Address of the object, for the error message.

    Raises:
        StoreError: The server refused, or cannot be reached.
    """
    server = connected(endpoint)
    from aiohttp import ClientError as BrokenOff
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield server
    except (
        *(OSError, BotoCoreError, ClientError, ResponseParserError, BrokenOff),
        *(ValueError, RuntimeError),  # of a number or a time that the server invented
    ) as error:
        raise refused(action, place, error) from error


def put_new(server: Any, key: str, content: bytes) -> bool:
    """Put an object unless its name is taken; return whether it was put."""
    try:
        server.pipe_file(key, content, mode="create", timeout=longest(len(content)))
    except OSError as error:
        answer = getattr(error.__cause__, "response", None) or {}
        if isinstance(error, FileExistsError) or answer.get("Error", {}).get("Code") in _TAKEN:
            return False
        raise
    return True


def content_of(server: Any, key: str) -> bytes | None:
    """Return the content of an object, or None if it does not exist."""
    try:
        return bytes(server.cat_file(key, timeout=longest(server.info(key, timeout=longest())["size"])))
    except FileNotFoundError:
        return None


def refused(action: str, place: str, error: BaseException) -> StoreError:
    """Return the error for an action that failed at a place, with the server's reason."""
    why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    if why == "FSTimeoutError":
        why = "the server answers too slowly"
    return StoreError(f"Cannot {action} {place}: {why}.")
