"""The server of a bucket: how to reach it, and one sentence for whatever goes wrong there."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from storage.errors import StoreError


@cache
def connected(endpoint: str) -> Any:
    """Return the server at an endpoint, "" for the one that the environment names.

    Raises:
        StoreError: What it takes is not installed.
    """
    try:
        from s3fs import S3FileSystem
    except ImportError as error:
        raise StoreError("A store in a bucket needs s3fs: pip install 'privsweep[s3]'.") from error
    return S3FileSystem(endpoint_url=endpoint or None, use_listings_cache=False, skip_instance_cache=True)


@contextmanager
def asking(endpoint: str, action: str, place: str) -> Iterator[Any]:
    """Yield the server at an endpoint; that there is an object already is left to the caller.

    Args:
        endpoint: Its address, "" for what the environment names.
        action: What is about to be done, such as `read`.
        place: The address that it is done to.

    Raises:
        StoreError: The server refused, or cannot be reached.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield connected(endpoint)
    except FileExistsError:
        raise
    except (OSError, BotoCoreError, ClientError) as error:
        raise refused(action, place, error) from error


def refused(action: str, place: str, error: BaseException) -> StoreError:
    """Return the error that says what could not be done where, and why, in the server's words."""
    return StoreError(f"Cannot {action} {place}: {' '.join(str(error).split()).rstrip('.')}.")
