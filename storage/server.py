"""The server of a bucket: how to reach it, and one sentence for whatever goes wrong there."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from os import getpid
from typing import Any

from storage.errors import StoreError

_TAKEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")  # not every server says more


def connected(endpoint: str) -> Any:
    """Return the server at an endpoint, "" for the one that the environment names.

    Raises:
        StoreError: What it takes is not installed.
    """
    return _connected(endpoint, getpid())


@cache
def _connected(endpoint: str, _process: int) -> Any:
    """Return a server for one process: a connection does not survive a fork."""
    try:
        from s3fs import S3FileSystem
    except ImportError as error:
        raise StoreError("A store in a bucket needs s3fs: pip install 'privsweep[s3]'.") from error
    server = S3FileSystem(endpoint_url=endpoint or None, use_listings_cache=False, skip_instance_cache=True)
    server.retries = 2  # of five tries each, all of which a server that stalls makes wait for
    return server


@contextmanager
def asking(endpoint: str, action: str, place: str) -> Iterator[Any]:
    """Yield the server at an endpoint; whatever goes wrong there becomes one sentence.

    Args:
        endpoint: Its address, "" for what the environment names.
        action: What is about to be done, such as `read`.
        place: The address that it is done to.

    Raises:
        StoreError: The server refused, or cannot be reached.
    """
    server = connected(endpoint)
    from aiohttp import ClientError as BrokenOff
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield server
    except (OSError, BotoCoreError, ClientError, ResponseParserError, BrokenOff, ValueError) as error:
        raise refused(action, place, error) from error


def put_new(server: Any, key: str, content: bytes) -> bool:
    """Put an object unless there is one of that name; return whether it was put."""
    try:
        server.pipe_file(key, content, mode="create")
    except OSError as error:
        answer = getattr(error.__cause__, "response", None) or {}
        if isinstance(error, FileExistsError) or answer.get("Error", {}).get("Code") in _TAKEN:
            return False
        raise
    return True


def content_of(server: Any, key: str) -> bytes | None:
    """Return the content of an object, or None where there is none."""
    try:
        return bytes(server.cat_file(key))
    except FileNotFoundError:
        return None


def refused(action: str, place: str, error: BaseException) -> StoreError:
    """Return the error that says what could not be done where, and why, in the server's words."""
    why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return StoreError(f"Cannot {action} {place}: {why}.")
