"""A hidden file in a store with a token, by which a process elsewhere recognises the same store.

On another machine, a folder of the same name may be a different folder, and results written there would be
lost.
"""

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from storage import disk, layout
from storage.errors import StoreError, reason
from storage.folder import Folder
from storage.located import located

TENDED_EVERY = 60.0  # seconds; the next run deletes such files if they are a day old


@contextmanager
def shared_store_token(place: Folder) -> Iterator[str]:
    """Keep a hidden file in a store during the block; yield the token in its name.

    Args:
        place: The store; it is created if it does not exist. A bucket is the same store for every machine
            and needs no file.

    Raises:
        StoreError: The disk refused.
    """
    place.create()
    token = secrets.token_hex(8)
    if place.is_remote:
        yield token
        return
    file = _path(place, token)
    try:
        disk.write(file, b"")
        disk.sync_folder(place.root)
    except OSError as error:
        raise StoreError(f"Cannot write {file}: {reason(error)}.") from error
    over = threading.Event()
    keeper = threading.Thread(target=_tend, args=(file, over), name="shared-store token", daemon=True)
    keeper.start()
    try:
        yield token
    finally:
        over.set()
        keeper.join()
        disk.unlink(file)


def _tend(file: Path, over: threading.Event) -> None:
    """Keep the file young until its run is over, and create it again if it was deleted."""
    while not over.wait(TENDED_EVERY):
        with suppress(OSError):  # the store's disk is gone, which publishing will report
            file.touch()


def store_with(address: str, token: str) -> Folder | None:
    """Return the store that has the token, or None if this process cannot publish into it.

    Args:
        address: Address of the store, from the process that keeps the token.
        token: From `shared_store_token`.
    """
    try:
        place = located(address)
        if place.is_remote:
            return place if place.take(place.root / layout.MARK) else None
        return place if _path(place, token).exists() and os.access(place.root, os.W_OK) else None
    except (StoreError, OSError):
        return None


def _path(place: Folder, token: str) -> Path:
    return place.root / f".beacon.{token}.tmp"  # such names are deleted a day after their owner was killed
