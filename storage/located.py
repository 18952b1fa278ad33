"""Where a store is: a folder is a folder; an address of a bucket is the folder that mirrors it here."""

import hashlib
import math
import os
import re
import time
from pathlib import Path

from storage import mirror
from storage.bucket import Bucket
from storage.errors import StoreError
from storage.server import asking

FRESH = 1.0
"""Seconds for which an open store does not look at its bucket again."""

CACHE_VARIABLE = "PRIVSWEEP_CACHE"
"""Names the folder of the mirrors; else it is `privsweep` in the user's folder for caches."""

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_FOLDER = "store"
_DEPTH = 6  # folders above a file of a store, at most, its root included

_MIRROR = re.compile(rf"[A-Za-z0-9._-]+-[0-9a-f]{{12}}/{_FOLDER}")

_looked: dict[Path, float] = {}
_mirrors: dict[Path, Bucket] = {}


def located(path: str | Path) -> Path:
    """Return the folder to work in: of an address, its mirror, which need not exist yet.

    Args:
        path: A folder, or an address `s3://bucket/prefix`, which may have lost a slash as a `Path`.

    Raises:
        StoreError: It is an address of another kind, or what it takes to read buckets is not installed.

    Example:
        >>> str(located("store"))
        'store'
    """
    match = _ADDRESS.fullmatch(str(path))
    if match is None:
        return Path(path)
    name, *prefix = match[2].rstrip("/").split("/")
    plain = _BUCKET.fullmatch(name) and all(re.fullmatch(r"[^\x00-\x1f?*\[\]]+", part) for part in prefix)
    if match[1].lower() != "s3" or not plain or {".", ".."}.intersection(prefix):
        shown = f"{match[1]}://{match[2]}"[:200]
        raise StoreError(f"Expected a folder or s3://bucket/prefix for the store, got {shown!r}.")
    address = "/".join(["s3:/", name, *prefix])
    with asking("", "read", address) as server:
        endpoint = server.s3.meta.endpoint_url
    if endpoint.endswith(".amazonaws.com"):
        endpoint = ""  # whatever the region
    digest = hashlib.blake2b(f"{endpoint} {address}".encode(), digest_size=6).hexdigest()
    spoken = re.sub(r"[^A-Za-z0-9._-]", "-", "-".join([name, *prefix]))[:80]
    folder = _cache() / f"{spoken}-{digest}" / _FOLDER
    mirror.make(folder, address, endpoint)
    _mirrors[folder] = Bucket(address, endpoint, folder)
    return folder


def _cache() -> Path:
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).absolute()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "privsweep"
    except RuntimeError as error:
        raise StoreError(
            f"Expected {CACHE_VARIABLE} to name a folder for copies of buckets, since this user has no home."
        ) from error


def bucket_of(path: Path) -> Bucket | None:
    """Return the bucket that a file or folder of a store belongs to, or None where the folder is all."""
    for folder in (path, *list(path.parents)[:_DEPTH]):
        is_there = (folder.parent / mirror.INDEX).exists()
        if bucket := _mirrors.get(folder):
            if not is_there:  # somebody deleted it; what is written must reach the bucket all the same
                mirror.make(folder, bucket.address, bucket.endpoint)
            return bucket
        if is_there and _MIRROR.fullmatch(f"{folder.parent.name}/{folder.name}"):
            address, endpoint = mirror.origin(folder)
            return Bucket(address, endpoint, folder)
    return None


def address_of(root: Path) -> Path:
    """Return what other machines call a store: its address, or the folder as it is."""
    bucket = bucket_of(root)
    return Path(bucket.address) if bucket else root


def shown(text: str) -> str:
    """Return a text about stores with their addresses in place of mirrors' paths."""

    def address(match: re.Match[str]) -> str:
        bucket = bucket_of(Path(match[0]))
        return bucket.address if bucket else match[0]

    try:
        return re.sub(rf"{re.escape(str(_cache()))}/{_MIRROR.pattern}\b", address, text)
    except StoreError:  # no cache, or a damaged one: the text may be about that
        return text


def refresh(root: Path, *, older_than: float = 0.0, afresh: bool = False) -> None:
    """Make a mirror equal to its bucket; any other folder stays as it is.

    Args:
        root: The store.
        older_than: Seconds since this process last did so, below which nothing is done.
        afresh: Whether to fetch also what the mirror has, since its own disk may have damaged it.

    Raises:
        StoreError: The server refused, or cannot be reached.
    """
    bucket = bucket_of(root)
    if bucket is None or time.monotonic() - _looked.get(root, -math.inf) < older_than:
        return
    if afresh:
        mirror.forget(bucket.folder)
    bucket.pull()
    _looked[root] = time.monotonic()
