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
from storage.errors import StoreError, reason
from storage.folder import Folder
from storage.located import located

TENDED_EVERY = 60.0  # seconds: a file of its kind that is a day old is cleared away by the next run


@contextmanager
def lit(place: Folder) -> Iterator[str]:
    """Have a beacon in a store for the length of the block; yield what `seen` has to be told.

    Args:
        place: The store; it is made if it does not exist. A bucket is the same from everywhere and needs no
            beacon.

    Raises:
        StoreError: The disk refused.
    """
    place.create()
    token = secrets.token_hex(8)
    if place.is_remote:
        yield token
        return
    beacon = _path(place, token)
    try:
        disk.write(beacon, b"")
        disk.sync_folder(place.root)
    except OSError as error:
        raise StoreError(f"Cannot write {beacon}: {reason(error)}.") from error
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


def seen(address: str, token: str) -> Folder | None:
    """Return the store in which the beacon is lit, or None if this process cannot publish there.

    Args:
        address: From the process that lit the beacon.
        token: From `lit`.
    """
    try:
        place = located(address)
        if place.is_remote:
            return place if place.take(place.root / layout.MARK) else None
        return place if _path(place, token).exists() and os.access(place.root, os.W_OK) else None
    except (StoreError, OSError):
        return None


def _path(place: Folder, token: str) -> Path:
    return place.root / f".beacon.{token}.tmp"  # a name that is cleared away a day after its owner was killed
