"""A beacon: a hidden file in a store, by which a process elsewhere can tell that it sees the same store.

A folder of the same name on another machine may be another folder; what is written there would be lost.
"""

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from storage import disk, layout
from storage.errors import StoreError
from storage.located import bucket_of, located

TENDED_EVERY = 60.0  # seconds: a file of its kind that is a day old is cleared away by the next run


@contextmanager
def lit(store: Path) -> Iterator[str]:
    """Have a beacon in a store for the length of the block; yield what `sees` has to be told.

    Args:
        store: Folder or address; it is made where it does not exist. A bucket is the same from everywhere
            and needs no beacon.

    Raises:
        StoreError: The disk refused.
    """
    root = located(store)
    layout.create(root)
    token = secrets.token_hex(8)
    if bucket_of(root):
        yield token
        return
    beacon = _path(root, token)
    try:
        disk.write(beacon, b"")
        disk.sync_folder(root)
    except OSError as error:
        raise StoreError(f"Cannot write {beacon}: {layout.reason(error)}.") from error
    over = threading.Event()
    keeper = threading.Thread(target=_tend, args=(beacon, over), name="beacon", daemon=True)
    keeper.start()
    try:
        yield token
    finally:
        over.set()
        keeper.join()
        disk.unlink(beacon)


def _tend(beacon: Path, over: threading.Event) -> None:
    """Keep a beacon young until its run is over, and light it again should somebody have cleared it away."""
    while not over.wait(TENDED_EVERY):
        with suppress(OSError):  # the store's disk is away; who publishes there will say so
            beacon.touch()


def sees(store: Path, token: str) -> bool:
    """Return whether this process can publish into the store in which the beacon is lit.

    Args:
        store: What the process that lit it calls the store.
        token: From `lit`.
    """
    try:
        root = located(store)
        if bucket := bucket_of(root):
            return bucket.take(root / layout.MARK)
        return _path(root, token).exists() and os.access(root, os.W_OK)
    except (StoreError, OSError):
        return False


def _path(root: Path, token: str) -> Path:
    return root / f".beacon.{token}.tmp"  # a name that is cleared away a day after its owner was killed
