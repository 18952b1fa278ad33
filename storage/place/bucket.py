"""A store in a bucket, s3://bucket/prefix, behind a folder that mirrors it.

The bucket is authoritative: readers first make the folder equal to it (`refresh`), and writers change the
bucket before the folder. The rest of the package therefore works with folders only. An object appears whole
and is listed at once, as a file does after a rename, and a new object is put only if no object has its name.
"""

import hashlib
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.errors import StoreError
from storage.place import disk, mirror
from storage.place.folder import Folder
from storage.place.layout import MARK
from storage.place.mirror import RECORDS, SWEEPS, is_mirrored
from storage.place.server import asking, content_of, longest, put_new, refused

# The objects of a store in a bucket, named relative to the address of the store.

_MOST_OBJECTS = 1_000_000
_LARGEST = 2**46  # bytes of an object; S3 allows less
_AT_ONCE = 64  # most objects in one fetch
_BYTES_AT_ONCE = 64e6  # most bytes in one fetch, since memory holds them

Listing = dict[str, dict[str, Any]]
"""Properties of listed objects by name."""


@dataclass(frozen=True)
class Objects:
    """The objects below an address; every method raises `StoreError` if the server refuses.

    Attributes:
        address: Address of the store, for example `s3://bucket/prefix`.
        endpoint: Address of the server, or "" for the server of AWS.
    """

    address: str
    endpoint: str

    def put(self, name: str, content: bytes) -> None:
        """Write an object; an existing object of the same content is kept, and otherwise replaced."""
        with self._asking("write", name) as server:
            key = self._key(name)
            if not put_new(server, key, content) and content_of(server, key) != content:
                server.pipe_file(key, content, timeout=longest(len(content)))

    def copy(self, old: str, new: str) -> None:
        """Copy an object to another name, if it exists."""
        with self._asking("write", new) as server, suppress(FileNotFoundError):
            server.cp_file(self._key(old), self._key(new), timeout=longest())

    def delete(self, name: str) -> None:
        """Delete an object if it exists."""
        with self._asking("delete", name) as server:
            server.rm_file(self._key(name), timeout=longest())

    def first(self, name: str = "") -> dict[str, Any] | None:
        """Return the properties of the first object whose name begins with `name`, or None."""
        bucket, _, prefix = self._key(name).partition("/")
        if not name and prefix:
            prefix += "/"
        with self._asking("read", name) as server:
            found = _page(server, Bucket=bucket, Prefix=prefix, MaxKeys=2)
        # Web consoles mark a folder by an empty object whose name is that of the folder and a slash.
        objects = (one for one in found.get("Contents", []) if not (one["Key"] == prefix and not name))
        return next(objects, None)

    def named(self, name: str) -> Listing:
        """Return a listing of the object of this name, empty if it does not exist."""
        found = self.first(name)
        is_it = found is not None and found["Key"] == self._key(name).partition("/")[2]
        return {name: found} if found and is_it else {}

    def listed(self, prefix: str) -> Listing:
        """Return the objects below a prefix, without names that cannot be file names."""
        bucket, _, store = f"{self._key('')}/".partition("/")
        below = store + (f"{prefix.rstrip('/')}/" if prefix else "")
        names: Listing = {}
        with self._asking("read") as server:
            more: dict[str, str] = {}
            while True:
                page = _page(server, Bucket=bucket, Prefix=below, **more)
                listed = (one for one in page.get("Contents", []) if one["Key"].startswith(below))
                found = {one["Key"].removeprefix(store): one for one in listed}
                if more and names.keys() >= found.keys():  # also without any key
                    raise ValueError("its listing does not end")
                names |= found
                if len(names) > _MOST_OBJECTS:
                    raise ValueError(f"it has more than {_MOST_OBJECTS} objects")
                if not page.get("IsTruncated"):
                    break
                more = {"ContinuationToken": page["NextContinuationToken"]}
        folders = {above.as_posix() for name in names if is_mirrored(name) for above in Path(name).parents}
        return {name: info for name, info in names.items() if is_mirrored(name) and name not in folders}

    def fetch(self, wanted: Listing, scratch: Path) -> dict[str, tuple[str, Path]]:
        """Return a tag and a fetched file for each object that still exists."""
        fetched = {}
        for some in _portions(wanted):
            with self._asking("read") as server:
                keys = [self._key(name) for name in some]
                limit = longest(sum(wanted[name]["Size"] for name in some))
                contents = server.cat_ranges(keys, None, None, on_error="return", timeout=limit)
            for name, content in zip(some, contents, strict=True):
                if isinstance(content, FileNotFoundError):
                    continue
                if isinstance(content, BaseException):
                    raise refused("read", self.place(name), content)
                path = scratch / hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
                path.write_bytes(content)
                changed = wanted[name]["LastModified"].timestamp()
                os.utime(path, (changed, changed))
                fetched[name] = (wanted[name]["ETag"], path)
        return fetched

    def place(self, name: str) -> str:
        """Return the address of an object."""
        return f"{self.address}/{name}".rstrip("/")

    def _key(self, name: str) -> str:
        return self.place(name).removeprefix("s3://")

    def _asking(self, action: str, name: str = "") -> AbstractContextManager[Any]:
        """Return a context that yields the server and turns its errors into one sentence."""
        return asking(self.endpoint, action, self.place(name))


def _page(server: Any, **asked: Any) -> dict[str, Any]:
    """Return one page of a listing."""
    found: dict[str, Any] = server.call_s3("list_objects_v2", **asked, timeout=longest())
    # Every S3 listing has these keys; an HTML page has not.
    whole = "Name" in found and (not found.get("IsTruncated") or "NextContinuationToken" in found)
    if not whole or not all(map(_is_object, found.get("Contents", []))):
        raise ValueError("the endpoint is not an S3 server")
    return found


def _is_object(found: dict[str, Any]) -> bool:
    """Return whether an entry of a listing has the properties of an object."""
    return {"Key", "ETag", "LastModified"} <= found.keys() and 0 <= found.get("Size", -1) < _LARGEST


def _portions(wanted: Listing) -> Iterator[list[str]]:
    """Yield the names of objects that are fetched together."""
    some: list[str] = []
    size = 0
    for name, info in wanted.items():
        if some and (len(some) == _AT_ONCE or size + info["Size"] > _BYTES_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(name)
        size += info["Size"]
    if some:
        yield some


_TRIES = 10  # listings, since objects may vanish during one of them


class Bucket(Folder):
    """A store in a bucket; its root is the mirror, which exists only if the store does.

    Attributes:
        endpoint: Address of the server, or "" for the server of AWS.
    """

    is_remote = True

    def __init__(self, address: str, endpoint: str, root: Path) -> None:
        super().__init__(root)
        self.name = self.address = address
        self.endpoint = endpoint
        self._objects = Objects(address, endpoint)
        self._refreshed = -math.inf
        mirror.make(root, address, endpoint)

    def shown(self, path: object) -> str:
        """Return the address of the object that a file mirrors, or the path of any other file."""
        below = Path(str(path))
        if below == self.root:
            return self.address
        return self._objects.place(self._name(below)) if below.is_relative_to(self.root) else str(path)

    def refresh(self, *, older_than: float = 0.0, afresh: bool = False) -> None:
        """Make the mirror equal to the bucket."""
        if time.monotonic() - self._refreshed < older_than:
            return
        if afresh:
            mirror.forget(self.root)
        self.pull()
        self._refreshed = time.monotonic()

    def _create(self, content: bytes) -> None:
        """Put the mark of the store, unless the address has other objects."""
        if self.take(self.root / MARK):
            return
        self.refresh()  # clears the mirror of a store that was deleted
        foreign = self.foreign()
        if foreign and not self.take(self.root / MARK):  # another machine may have created the store
            raise StoreError(f"Expected a store or no objects, got {self.address}, which has {foreign}.")
        if not foreign:
            self.write(self.root / MARK, content)

    def write(self, path: Path, content: bytes) -> None:
        """Write the object of a file atomically, then the file."""
        disk.step(disk.WRITE, path)
        self.put(path, content)

    def rename(self, old: Path, new: Path) -> None:
        """Rename the object of a file, or the objects of all files in a folder."""
        files = [old] if old.is_file() else sorted(path for path in old.rglob("*") if path.is_file())
        for path in files:
            target = new / path.relative_to(old)
            disk.step(disk.RENAME, target)
            self._objects.copy(self._name(path), self._name(target))
            self.unlink(path)
            self.take(target)
        shutil.rmtree(old, ignore_errors=True)

    def remove(self, path: Path) -> None:
        """Delete the object of a file, or the objects of all files in a folder."""
        if path.is_dir() and not path.is_symlink():
            for file in sorted(path.rglob("*")):
                if file.is_file():
                    self.unlink(file)
        super().remove(path)

    def put(self, path: Path, content: bytes) -> None:
        """Write the object of a file, then fetch the file from the bucket.

        An existing object of the same content is kept, and otherwise replaced.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        self._objects.put(self._name(path), content)
        self.take(path)

    def take(self, path: Path) -> bool:
        """Fetch the object of a file, and return whether it exists.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        found = self._objects.named(self._name(path))
        if not found:
            return False
        with self._scratch() as scratch:
            fetched = self._objects.fetch(found, scratch)
            self._install(fetched)
        return bool(fetched)

    def delete(self, path: Path) -> None:
        """Delete the object of a file, then the file, if they exist.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        name = self._name(path)
        if is_mirrored(name):
            self._objects.delete(name)
            self._make_mirror()
            mirror.discard(self.root, name)
        path.unlink(missing_ok=True)

    def foreign(self) -> str:
        """Return the key of some object below the address, or "" if there are no objects.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        found = self._objects.first()
        return str(found["Key"]) if found else ""

    def pull(self) -> None:
        """Make the folder equal to the bucket.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        self._make_mirror()
        mirror.remove_strays(self.root)
        for _ in range(_TRIES):
            with self._scratch() as scratch:
                if self._pulled(scratch):
                    return
        raise StoreError(f"Cannot read {self.address}: its objects change too quickly; try again.")

    def _pulled(self, scratch: Path) -> bool:
        """Make the folder equal to the bucket; return False if the listing may be incomplete.

        Sweeps are listed first and installed last, since a sweep is written after its parts. If the record of
        a replacement is new, parts were replaced during the listing, whose pages may then show neither the
        old parts nor the new one.
        """
        known = mirror.tags(self.root)
        if not self.take(self.root / MARK):  # not a store: do not list it, since it may be very large
            mirror.clear(self.root, known)
            return True
        sweeps = self._objects.listed(SWEEPS)
        wanted_sweeps = self._changed(sweeps, known)
        fetched_sweeps = self._objects.fetch(wanted_sweeps, scratch)
        rest = {name: info for name, info in self._objects.listed("").items() if not name.startswith(SWEEPS)}
        wanted = self._changed(rest, known)
        fetched = self._objects.fetch(wanted, scratch)
        self._install(fetched)
        vanished = wanted.keys() - fetched.keys() or wanted_sweeps.keys() - fetched_sweeps.keys()
        if vanished or any(name.startswith(RECORDS) and name not in known for name in wanted):
            return False
        self._install(fetched_sweeps)
        for name in known.keys() - sweeps.keys() - rest.keys():
            mirror.drop(self.root, name, known[name])
        return True

    def _changed(self, listed: Listing, known: Mapping[str, str]) -> Listing:
        """Return the listed objects that the folder lacks or has in another state."""

        def is_here(name: str, info: dict[str, Any]) -> bool:
            try:
                return (self.root / name).stat().st_size == int(info["Size"])
            except OSError:
                return False

        return {
            name: info
            for name, info in listed.items()
            if known.get(name) != info["ETag"] or not is_here(name, info)
        }

    def _install(self, fetched: Mapping[str, tuple[str, Path]]) -> None:
        """Move fetched files into the mirror, parts before the records of their replacement."""
        for name, (tag, path) in sorted(fetched.items()):
            mirror.install(self.root, name, tag, path)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _make_mirror(self) -> None:
        """Create the mirror if it was deleted, since writes must reach the bucket anyway."""
        if not (self.root.parent / mirror.INDEX).exists():
            mirror.make(self.root, self.address, self.endpoint)

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        self._make_mirror()
        mirror.remove_leftovers(self.root)
        with (
            mirror.in_one_sentence(self.root),
            tempfile.TemporaryDirectory(prefix=mirror.FETCHED, dir=self.root.parent) as scratch,
        ):
            yield Path(scratch)
