"""The store at a path or address: a folder, or a bucket with its local mirror."""

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privcore.errors import DomainError
from storage.errors import StoreError, reason
from storage.place import disk, layout, mirror
from storage.place.bucket import Bucket
from storage.place.folder import Folder
from storage.place.layout import MARK
from storage.place.server import asking, check_answer

CACHE_VARIABLE = "PRIVSWEEP_CACHE"
"""Environment variable with the folder of the mirrors; by default `privsweep` in the user's cache folder."""

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?:/+(.*))?", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_FOLDER = "store"
_MIRROR = re.compile(rf"[A-Za-z0-9._-]+-[0-9a-f]{{12}}/{_FOLDER}")


def located(path: str | Path) -> Folder:
    """Return the store at a path or address; it need not exist yet.

    Args:
        path: A folder, or an address `s3://bucket/prefix`; a `Path` of such an address has one slash less.

    Raises:
        StoreError: The address is invalid, or the package for buckets is not installed.

    Example:
        >>> located("store").name
        'store'
    """
    match = _ADDRESS.fullmatch(re.sub(r"^s3:(?!/)", "s3:///", str(path), flags=re.IGNORECASE))
    if match is None:
        root = Path(path)
        is_mirror = (
            _MIRROR.fullmatch(f"{root.parent.name}/{root.name}") and (root.parent / mirror.INDEX).exists()
        )
        return Bucket(*mirror.origin(root), root) if is_mirror else Folder(root)
    name, *prefix = (match[2] or "").rstrip("/").split("/")
    if why := _refusal(match[1], name, prefix):
        raise StoreError(
            f"Expected a folder or s3://bucket/prefix for the store, got {_spelled(path)[:200]!r}: {why}."
        )
    address = "/".join(["s3:/", name, *prefix])
    with asking("", "read", address) as server:
        endpoint = server.s3.meta.endpoint_url
    check_answer(endpoint)
    if endpoint.endswith(".amazonaws.com"):
        endpoint = ""  # the same for every region
    digest = hashlib.blake2b(f"{endpoint} {address}".encode(), digest_size=6).hexdigest()
    spoken = re.sub(r"[^A-Za-z0-9._-]", "-", "-".join([name, *prefix]))[:80]
    return Bucket(address, endpoint, cache_folder() / f"{spoken}-{digest}" / _FOLDER)


def not_address(out: Path, what: str) -> None:
    """Reject the address of a bucket, or of anything else that is not on this machine, as a path to write to.

    Args:
        out: Path as the user wrote it.
        what: What is written, `file` or `folder`, for the message.

    Raises:
        DomainError: The path is such an address.

    Example:
        >>> not_address(Path("tables"), "folder")
    """
    if _ADDRESS.fullmatch(str(out)) or str(out).lower().startswith("s3:"):
        raise DomainError(f"Expected a {what} on this machine, got the address {_spelled(out)}.")


def _spelled(path: str | Path) -> str:
    """Return an address with both slashes; a `Path` keeps one.

    Example:
        >>> _spelled(Path("gs://bucket/prefix")), _spelled("s3:")
        ('gs://bucket/prefix', 's3:')
    """
    return re.sub(r"^([^/]+:)/+", r"\1//", str(path))


def outside_stores(out: Path, what: str) -> Path:
    """Return a path to write to, with links resolved.

    Args:
        out: Path as the user wrote it.
        what: What is written, `file` or `folder`, for the message.

    Raises:
        DomainError: The path is the address of a bucket, which may only hold stores, is inside a store, or is
            a link that leads back to itself.
    """
    not_address(out, what)
    try:
        target = out.resolve()
    except (OSError, RuntimeError):
        raise DomainError(f"Expected a {what}, got {out}, a link that leads back to itself.") from None
    for folder in (target, *target.parents):
        if (folder / MARK).exists():
            raise DomainError(
                f"Expected a {what} outside of every store, got {out} inside the store {folder}."
            )
    return target


def _refusal(scheme: str, name: str, prefix: list[str]) -> str:
    """Return the reason why an address is not that of a bucket, or ""."""
    if scheme.lower() != "s3":
        return "only the scheme s3 is known"
    if not name:
        return "it has no name of a bucket"
    if not _BUCKET.fullmatch(name):
        return "the name of a bucket has 3 to 255 letters, digits, dots, hyphens and underscores"
    if {".", ".."}.intersection(prefix) or not all(
        re.fullmatch(r"[^\x00-\x1f?*\[\]]+", part) for part in prefix
    ):
        return "a part of the prefix is empty, is dots, or has one of the characters ? * [ ]"
    return ""


def cache_folder() -> Path:
    """Return the folder for copies of buckets and for the shipped table.

    Raises:
        StoreError: The user has no home folder, or named an address.
    """
    if named := os.environ.get(CACHE_VARIABLE):
        if _ADDRESS.fullmatch(named):
            raise StoreError(f"Expected a folder in {CACHE_VARIABLE}, got the address {named[:200]}.")
        return Path(named).absolute()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "privsweep"
    except RuntimeError as error:
        raise StoreError(
            f"This user has no home folder to keep copies of buckets in: set {CACHE_VARIABLE} to a folder."
        ) from error


# A hidden file in a store with a token, by which a process elsewhere recognises the same store.
#
# On another machine, a folder of the same name may be a different folder, and results written there would
# be lost.

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
